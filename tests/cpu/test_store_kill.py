"""Writers that are killed at any moment lose nothing that was acknowledged."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

import samples
from toprung.model.event import AttemptStarted, Judged, Kept
from toprung.model.run import Proposal, Run
from toprung.store import Store

pytestmark = pytest.mark.cpu

KILLS = 40


def _climb(root: Path, run_id: str, acknowledge: int) -> None:
    """Go on with the run for ever; one byte is acknowledged after each event that was written."""
    with Store.open(root) as store:
        run = store.run(run_id)
        index = run.unfinished[0].index if run.unfinished else len(run.attempts)
        while True:
            candidate = samples.a_candidate(str(index))
            verdict = samples.passed(run.task, candidate)
            for event in (
                AttemptStarted(index=index, proposal=Proposal(candidate=candidate)),
                Judged(index=index, verdict=verdict, seconds=1.0),
                Kept(index=index),
            ):
                store.append(run_id, event)
                os.write(acknowledge, b".")
            store.put(os.urandom(20_000))
            index += 1


def _killed_writer(root: Path, run_id: str, after_s: float) -> int:
    """Fork a writer, kill it `after_s` after its first event, and count what it acknowledged."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _climb(root, run_id, writable)
        finally:
            os._exit(1)
    os.close(writable)
    try:
        first = os.read(readable, 1)
        time.sleep(after_s)
    finally:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    with os.fdopen(readable, "rb") as rest:
        acknowledged = len(first + rest.read())
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    return acknowledged


def _count(run: Run) -> int:
    """Events that the attempts of a run took."""
    return sum(1 + (a.verdict is not None) + a.kept for a in run.attempts)


def test_a_kill_loses_at_most_the_attempt_in_flight(tmp_path: Path) -> None:
    draw = random.Random(7)
    with Store.open(tmp_path) as store:
        run_id = store.create_run(samples.a_creation())
    written = 0
    for _ in range(KILLS):
        written += _killed_writer(tmp_path, run_id, draw.uniform(0.0, 0.03))
        with Store.open(tmp_path) as store:
            events = list(store.events(run_id))[1:]
            run = store.run(run_id)
        # The event that was being acknowledged when the kill came may be there too.
        assert written <= len(events) <= written + 1
        written = len(events)
        assert len(run.unfinished) <= 1
        assert [a.index for a in run.attempts] == list(range(len(run.attempts)))
        # Retries add a start each; verdicts and keeps appear once.
        assert _count(run) <= len(events)
        assert run.spent.attempts == len(run.attempts) - len(run.unfinished)
    assert len(run.attempts) > KILLS // 4, "the writers hardly wrote"
    with Store.open(tmp_path) as store:
        for path in (tmp_path / "blobs").glob("??/*"):
            assert len(store.get(path.parent.name + path.name)) == 20_000


def test_writers_in_several_processes_take_turns(tmp_path: Path) -> None:
    """All of them open a store that is not there yet, which is when modes and schemas are set."""
    pids: list[int] = []
    for worker in range(4):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                with Store.open(tmp_path / "state") as store:
                    run_id = store.create_run(samples.a_creation())
                    for index in range(20):
                        candidate = samples.a_candidate(f"{worker}.{index}")
                        store.append(
                            run_id,
                            AttemptStarted(index=index, proposal=Proposal(candidate=candidate)),
                        )
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 4
    with Store.open(tmp_path / "state") as store:
        runs = [store.run(line.id) for line in store.runs()]
    assert [len(run.attempts) for run in runs] == [20] * 4
