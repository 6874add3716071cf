"""Candidates that attack the judge, and honest ones that naive judges refuse. No attack pays."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent

import pytest

from toprung.judge.judge import Judge
from toprung.model.candidate import Candidate
from toprung.model.climb import ClimbOptions
from toprung.model.task import Task
from toprung.model.verdict import Verdict

pytestmark = pytest.mark.cpu


def task(returns: str, name: str = "attacked") -> Task:
    reference = f"""
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x):
        {returns}

def get_inputs():
    return [torch.randn(64, 96)]

def get_init_inputs():
    return []
"""
    return Task(name=name, reference=reference)


TWICE = task("return x * 2")


def kernel(body: str, before: str = "") -> str:
    return f"import torch\n{before}\n\ndef kernel(x):\n{indent(body, '    ')}\n"


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    known: dict = {}
    judge = Judge(known.get, known.__setitem__, tmp_path_factory.mktemp("builds"))
    yield judge
    judge.close()


def climb(judge: Judge, source: str, of: Task = TWICE) -> Verdict:
    options = ClimbOptions(upto="honest", timeout_s=90)
    return judge.climb(of, Candidate.of_source(source), options)


WAKE_BY_TIMER = """
import ctypes, signal
libc = ctypes.CDLL(None)
signal.signal(signal.SIGCONT, lambda *_: None)
event = (ctypes.c_int * 16)()
event[2] = signal.SIGCONT
timer = ctypes.c_void_p()
assert libc.timer_create(1, event, ctypes.byref(timer)) == 0
def arm():
    every = (ctypes.c_long * 4)(0, 2_000_000, 0, 2_000_000)
    libc.timer_settime(timer, 0, every, None)
"""
WAKE_BY_HELPER = """
import os, signal, time
def arm(done=[]):
    if not done:
        done.append(1)
        own = os.getpid()
        if os.fork() == 0:
            os.setsid()
            while True:
                os.kill(own, signal.SIGCONT)
"""
STUCK = """
import ctypes, subprocess, os
code = '''#include <unistd.h>
#include <pthread.h>
static void *wait_(void *a) { if (vfork() == 0) for (;;) pause(); return 0; }
void arm(void) { pthread_t t; pthread_create(&t, 0, wait_, 0); usleep(20000); }'''
open("stuck.c", "w").write(code)
subprocess.run(["gcc", "-shared", "-fPIC", "-o", "stuck.so", "stuck.c", "-lpthread"], check=True)
arm = ctypes.CDLL(os.path.abspath("stuck.so")).arm
"""


@pytest.mark.parametrize("before", [WAKE_BY_TIMER, WAKE_BY_HELPER, STUCK])
def test_who_does_not_stand_still_is_refuted(judge: Judge, before: str) -> None:
    verdict = climb(judge, kernel("arm()\nreturn x * 2", before))
    assert (verdict.outcome, verdict.blame) == ("refuted", "candidate"), verdict.failed_rung
    assert climb(judge, kernel("return x * 2")).outcome == "passed"


FORGE = """
import sys, time
def forge(**changes):
    frame = sys._getframe()
    while not hasattr(frame.f_locals.get("channel"), "send"):
        frame = frame.f_back
    spec = {"dtype": "float32", "shape": [64, 96], "strides": [96, 1]}
    reply = {"ok": True, "returned": {"layout": {"t": 0}, "specs": [spec]}, "elapsed_ns": 1,
             "cpu_ns": 1, "filled": True}
    frame.f_locals["channel"].send({**reply, **changes})
    time.sleep(20)
"""


@pytest.mark.parametrize(
    "changes",
    [
        "",
        "returned={'layout': 5}",
        "returned={'layout': {}}",
        "returned={'layout': {'list': [{'t': 0}]}, 'specs': []}",
        "elapsed_ns=10**400",
        "aliases=[[10**9, -1]]",
        "strange='\\ud800' * 3",
        "surprise=1",
    ],
)
def test_a_forged_reply_is_the_candidates_own_fault(judge: Judge, changes: str) -> None:
    verdict = climb(judge, kernel(f"forge({changes})", FORGE))
    assert (verdict.outcome, verdict.blame) == ("refuted", "candidate"), verdict.failed_rung


@pytest.mark.parametrize(
    "body",
    [
        "return {(0, 1): x}",
        "y = []\ny.append(y)\nreturn y",
        "raise ValueError('\\ud800' + 'x' * 10**6)",
        "class Odd(Exception):\n    def __str__(self): raise self\nraise Odd",
        "import os\nos.closerange(3, 64)\nreturn x * 2",
        "import os\nfor _ in range(2000):\n    os.mkdir('d')\n    os.chdir('d')\nreturn x",
        "return x.to_sparse()",
        "return x.to('meta')",
        "return (x,) * 100_000",
    ],
)
def test_whatever_it_returns_or_breaks_is_about_itself(judge: Judge, body: str) -> None:
    verdict = climb(judge, kernel(body))
    assert (verdict.outcome, verdict.blame) == ("refuted", "candidate"), verdict.failed_rung
    assert climb(judge, kernel("return x * 2")).outcome == "passed"


@pytest.mark.parametrize(
    ("body", "before"),
    [
        (
            "turn[0] ^= 1\nreturn torch.mul(x, 2, out=two[turn[0]])",
            "two = [torch.empty(64, 96) for _ in '12']\nturn = [0]",
        ),
        (
            "turn[0] = (turn[0] + 64) % 4096\n"
            "return torch.mul(x, 2, out=one[turn[0] : turn[0] + 6144].view(64, 96))",
            "one = torch.empty(6144 + 4096)\nturn = [0]",
        ),
    ],
)
def test_memory_that_is_returned_in_turns_is_found(judge: Judge, body: str, before: str) -> None:
    verdict = climb(judge, kernel(body, before))
    assert verdict.outcome == "refuted"
    assert verdict.failed_rung is not None and verdict.failed_rung.name == "honest"


@pytest.mark.parametrize(
    ("of", "body"),
    [
        (task("return x.mul(2).chunk(3, -1)", "chunks"), "return x.mul(2).chunk(3, -1)"),
        (task("return {'a': x * 2, 'b': x * 3}", "dict"), "return {'b': x * 3, 'a': x * 2}"),
        (task("y = x * 2; return y, y[:, -1]", "views"), "y = x + x; return y, y[:, -1]"),
        (TWICE, "try:\n    import triton\nexcept ImportError:\n    pass\nreturn x + x"),
        (TWICE, "return x.t().contiguous().mul(2).t()"),
    ],
)
def test_honest_oddities_pass(judge: Judge, of: Task, body: str) -> None:
    verdict = climb(judge, kernel(body), of)
    assert verdict.outcome == "passed", verdict.failed_rung
