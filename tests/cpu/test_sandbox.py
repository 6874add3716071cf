"""A sandboxed process may do anything; it is a result about itself and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from toprung.errors import ChildFault
from toprung.judge.sandbox.leftovers import sweep
from toprung.judge.sandbox.limits import Limits, tree_of
from toprung.judge.sandbox.process import Nursery, Process
from toprung.judge.wire.protocol import Load

pytestmark = pytest.mark.cpu

SERVE = "toprung.judge.child.main:serve"
MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


def load(process: Process, behaviour: str, timeout: float = 30) -> dict:
    folder = process.scratch / "candidate"
    folder.mkdir()
    (folder / "kernel.null").write_text(f'{{"load": "{behaviour}"}}')
    request = Load(dsl="null", folder=str(folder), main="kernel.null", target="cpu:native")
    return process.ask(request.to_dict(), timeout)


@pytest.fixture
def process(nursery: Nursery) -> Iterator[Process]:
    limits = Limits(
        memory_bytes=700 * MEBIBYTE, processes=24, file_bytes=64 * MEBIBYTE, output_bytes=MEBIBYTE
    )
    process = nursery.spawn(SERVE, limits=limits)
    yield process
    process.close()
    assert not process.scratch.exists()


def test_a_good_process_answers(process: Process) -> None:
    assert load(process, "zeros") == {"ok": True, "entry": "null", "is_module": False, "facts": {}}


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("exit", "ended by itself with exit code 0"),
        ("crash", "killed by SIGSEGV"),
        ("abort", "killed by SIGABRT"),
        ("flood", "standard output"),
        ("hog", "GiB of memory"),
        ("forks", "processes and threads"),
    ],
)
def test_a_bad_process_is_named_for_what_it_did(
    process: Process, behaviour: str, words: str
) -> None:
    with pytest.raises(ChildFault, match=words):
        load(process, behaviour)


def test_an_exception_comes_back_as_text(process: Process) -> None:
    reply = load(process, "fail")
    assert reply["ok"] is False
    assert reply["message"] == "RuntimeError: told to fail"
    assert "told to fail" in reply["traceback"]


def test_a_file_that_grows_too_large_is_refused(process: Process) -> None:
    assert "File too large" in load(process, "files")["message"]


def test_a_hang_ends_at_its_time_limit(process: Process) -> None:
    start = time.monotonic()
    with pytest.raises(ChildFault, match="did not answer within 1 s"):
        load(process, "sleep", timeout=1)
    assert time.monotonic() - start < 5


def test_nothing_is_left_of_a_fork_bomb(nursery: Nursery) -> None:
    before = set(tree_of(os.getpid()))
    process = nursery.spawn(SERVE, limits=Limits(memory_bytes=4 << 30, processes=24))
    with pytest.raises(ChildFault):
        load(process, "forks")
    process.close()
    deadline = time.monotonic() + 5
    while (left := set(tree_of(os.getpid())) - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def test_a_frozen_process_does_nothing(process: Process) -> None:
    load(process, "zeros")
    process.freeze()
    states = {
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        for pid in tree_of(process._first)
    }
    assert states == {"T"}
    process.thaw()
    folder = process.scratch / "candidate"
    again = Load(dsl="null", folder=str(folder), main="kernel.null", target="cpu:native")
    assert process.ask(again.to_dict(), 10)["ok"]


def test_its_environment_holds_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")
    nursery = Nursery()
    try:
        process = nursery.spawn(SERVE)
        load(process, "zeros")
        pids = list(tree_of(process._first))
        environ = b"".join(Path(f"/proc/{pid}/environ").read_bytes() for pid in pids)
        process.close()
    finally:
        nursery.close()
    assert b"PATH=" in environ
    assert b"sesame" not in environ


def test_what_a_killed_judge_left_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen(["true"])
    ended.wait()
    orphan, mine, other = (
        tmp_path / name
        for name in (f"toprung-{ended.pid}-a", f"toprung-{os.getpid()}-b", "other-1-c")
    )
    for folder in (orphan, mine, other):
        folder.mkdir()
    sweep()
    assert [folder.exists() for folder in (orphan, mine, other)] == [False, True, True]


def test_a_killed_judge_takes_everything_with_it(tmp_path: Path) -> None:
    script = tmp_path / "judge.py"
    script.write_text(
        "import time\n"
        "from toprung.judge.sandbox.process import Nursery\n"
        "nursery = Nursery()\n"
        f"processes = [nursery.spawn({SERVE!r}) for _ in range(2)]\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )
    judge = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE)
    assert judge.stdout is not None
    assert judge.stdout.readline() == b"up\n"
    below = list(tree_of(judge.pid))
    assert len(below) >= 5
    judge.kill()
    judge.wait()
    deadline = time.monotonic() + 10
    while any(map(running, below)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(running, below))


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
