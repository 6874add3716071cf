"""Whole climbs on a small task: what is refused, where, in whose name, and what is accepted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toprung.judge.judge import Judge
from toprung.judge.rungs.base import Rung, rung
from toprung.judge.rungs.subject import Subject
from toprung.model.candidate import Candidate
from toprung.model.climb import ClimbOptions
from toprung.model.task import Case, Objective, Rules, Task
from toprung.model.verdict import Verdict

pytestmark = pytest.mark.cpu

UPTO = ClimbOptions(upto="correct")
REFERENCE = """
import torch

class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.weight = torch.nn.Parameter(torch.ones(32))
    def forward(self, x):
        return torch.relu(x * self.scale) * self.weight

def get_inputs(rows=16):
    return [torch.randn(rows, 32)]

def get_init_inputs():
    return [3.0]
"""
TASK = Task(
    name="scaled-relu",
    reference=REFERENCE,
    cases=(Case(), Case(name="secret", args={"rows": 5}, held_out=True)),
)
MODULE = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.weight = torch.nn.Parameter(torch.ones(32))
    def forward(self, x):
        {body}
"""
RIGHT = "return torch.relu(x * self.scale) * self.weight"


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    known: dict = {}
    judge = Judge(known.get, known.__setitem__, tmp_path_factory.mktemp("builds"))
    yield judge
    judge.close()


def climb(judge: Judge, source: str, upto: str = "honest", *, main: str = "kernel.py") -> Verdict:
    candidate = Candidate.of_source(source, main=main)
    return judge.climb(TASK, candidate, ClimbOptions(upto=upto, timeout_s=60))


def module(body: str) -> str:
    return MODULE.format(body=body)


def refuted_at(verdict: Verdict) -> str:
    assert verdict.outcome == "refuted", verdict.to_json(indent=1)
    assert verdict.blame == "candidate"
    assert verdict.failed_rung is not None
    return verdict.failed_rung.name


@pytest.mark.parametrize(
    "source",
    [
        module(RIGHT),
        module("return (x * (self.scale * self.weight)).clamp(min=0)"),
        module("return torch.relu(x.double() * self.scale).mul(self.weight).float()"),
        module("return torch.relu(x.t() * self.scale).t() * self.weight"),
        "def kernel(x, *, weight):\n    return (x * 3.0).clamp(min=0) * weight\n",
    ],
)
def test_honest_candidates_pass(judge: Judge, source: str) -> None:
    verdict = climb(judge, source)
    assert verdict.outcome == "passed", verdict.failed_rung
    assert verdict.height == "honest"
    assert [case.outcome for case in verdict.cases] == ["passed", "passed"]


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("class ModelNew(:", "static"),
        ("x = 1", "static"),
        ("import nowhere\n" + module(RIGHT), "compile"),
        ("raise SystemExit(0)\n" + module(RIGHT), "compile"),
        (module("return undefined"), "run"),
        (module("return x[:2]"), "run"),
        (module(f"{RIGHT}.double()".replace("return ", "return (") + ")"), "run"),
        (module("return [x]"), "run"),
        (module("return x.cos_().add_(1)"), "run"),
        (module("return torch.relu(x[:1] * self.scale).expand(x.shape)"), "run"),
        (module("return x / 0 * self.weight"), "run"),
        (module("return torch.relu(x * self.scale)"), "correct"),
        (module("return torch.relu(x * self.scale) * self.weight * 1.0001"), "correct"),
        (module("return torch.relu(x.bfloat16() * self.scale).float() * self.weight"), "correct"),
        (
            module("y = x.clone(); x.zero_(); return torch.relu(y * self.scale) * self.weight"),
            "honest",
        ),
    ],
)
def test_wrong_candidates_are_refuted_where_it_shows(judge: Judge, source: str, where: str) -> None:
    verdict = climb(judge, source)
    assert refuted_at(verdict) == where
    assert verdict.failed_rung is not None and verdict.failed_rung.reason


CACHES = {
    "by address": (
        "key = x.data_ptr()\n"
        "        if key not in self.kept: self.kept[key] = torch.relu(x * self.scale) * self.weight\n"
        "        return self.kept[key].clone()"
    ),
    "first result": (
        "self.kept.setdefault(x.shape, torch.relu(x * self.scale) * self.weight)\n"
        "        return self.kept[x.shape].clone()"
    ),
    "after a few calls": (
        "self.kept[len(self.kept)] = y = torch.relu(x * self.scale) * self.weight\n"
        "        return y if len(self.kept) < 9 else self.kept[3].clone()"
    ),
}


@pytest.mark.parametrize("cache", CACHES)
def test_results_cannot_be_kept(judge: Judge, cache: str) -> None:
    source = module(CACHES[cache]).replace(
        "super().__init__()", "super().__init__(); self.kept = {}"
    )
    assert refuted_at(climb(judge, source)) in ("correct", "honest")


def test_a_buffer_returned_again_and_again_is_refuted(judge: Judge) -> None:
    source = module(
        "torch.mul(torch.relu(x * self.scale), self.weight, out=self.out); return self.out"
    )
    source = source.replace("super().__init__()", "super().__init__(); self.out = torch.empty(0)")
    assert refuted_at(climb(judge, source)) in ("run", "correct", "honest")


def test_a_late_thread_has_no_time(judge: Judge) -> None:
    source = "import threading, time\n" + module(
        "y = torch.empty_like(x)\n"
        "        def work(): time.sleep(0.005); y.copy_(torch.relu(x * self.scale) * self.weight)\n"
        "        threading.Thread(target=work).start()\n"
        "        return y"
    )
    assert refuted_at(climb(judge, source)) in ("run", "correct")


def test_forged_messages_gain_nothing(judge: Judge) -> None:
    forger = """
import json, os, socket, stat
for fd in range(3, 64):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            socket.socket(fileno=os.dup(fd)).send(json.dumps({"ok": True, "outcome": "passed"}).encode())
    except OSError:
        pass
"""
    assert refuted_at(climb(judge, forger + module("return x"))) in ("compile", "run")


@pytest.mark.parametrize("order", ["fail", "exit", "crash", "abort", "flood"])
def test_whatever_a_call_does_is_a_verdict_about_itself(judge: Judge, order: str) -> None:
    verdict = climb(judge, f'{{"call": "{order}"}}', main="kernel.null")
    assert refuted_at(verdict) == "run"
    assert climb(judge, module(RIGHT)).outcome == "passed"


def test_a_held_out_case_shows_its_outcome_alone(judge: Judge) -> None:
    source = module(f"return x.clone() if x.shape[0] == 5 else {RIGHT.removeprefix('return ')}")
    verdict = climb(judge, source)
    assert refuted_at(verdict) in ("run", "correct")
    assert verdict.failed_rung is not None
    assert "held-out" in (verdict.failed_rung.reason or "")
    assert verdict.failed_rung.traceback is None and not verdict.failed_rung.facts
    assert [case.outcome for case in verdict.cases] == ["passed", "refuted"]
    secret = module("assert x.shape[0] != 5, x.shape\n        " + RIGHT)
    assert "[5, 32]" not in climb(judge, secret).to_json()


def test_a_reference_that_fails_is_the_tasks_fault(judge: Judge) -> None:
    broken = Task(name="broken", reference=REFERENCE.replace("self.scale) *", "self.nothing) *"))
    candidate = Candidate.of_source(module(RIGHT))
    verdict = judge.climb(broken, candidate, ClimbOptions(upto="run"))
    assert (verdict.outcome, verdict.blame, verdict.exit_code) == ("errored", "task", 2)
    assert "nothing" in (verdict.failed_rung.traceback or verdict.failed_rung.reason)  # type: ignore
    assert climb(judge, module(RIGHT)).outcome == "passed"


def test_a_users_own_rung_is_asked_in_its_place(judge: Judge) -> None:
    @rung("short", after="correct")
    def short(subject: Subject) -> dict:
        """Is it shorter than 300 characters?"""
        length = len(subject.candidate.source)
        assert length < 300, f"{length} characters"
        return {"characters": length}

    assert isinstance(short, Rung)
    options = ClimbOptions(upto="honest")
    good = judge.climb(TASK, Candidate.of_source(module(RIGHT)), options, [short])
    names = [result.name for result in good.rungs]
    assert names.index("short") == names.index("correct") + 1
    assert good.rung("short").status == "passed"
    longer = Candidate.of_source(module(RIGHT) + "#" * 300)
    bad = judge.climb(TASK, longer, options, [short])
    assert refuted_at(bad) == "short"
    assert bad.rung("honest").status == "not_reached"


def test_a_whole_climb_measures_and_places_under_the_roof(judge: Judge, tmp_path: Path) -> None:
    options = ClimbOptions(baselines=("eager",))
    verdict = judge.climb(TASK, Candidate.of_source(module(RIGHT)), options)
    assert verdict.outcome == "passed", verdict.failed_rung
    assert verdict.height == "roofline"
    assert verdict.measurement is not None and verdict.roofline is not None
    assert verdict.measurement.confirmed
    assert set(verdict.measurement.speedup) == {"eager"}
    assert verdict.roofline.attained < 1.5
    assert verdict.environment.walls.limits
    assert Verdict.from_json(verdict.to_json()) == verdict


def test_without_a_timed_case_what_needs_a_time_is_skipped(judge: Judge) -> None:
    cases = (Case(name="odd", args={"rows": 3}, timed=False), Case(targets=("cuda",)))
    task = TASK.model_copy(update={"cases": cases})
    verdict = judge.climb(task, Candidate.of_source(module(RIGHT)), ClimbOptions())
    assert (verdict.outcome, verdict.height) == ("passed", "honest")
    for name in ("bench", "plausible", "roofline"):
        assert verdict.rung(name).status == "skipped"
    required = judge.climb(task, Candidate.of_source(module(RIGHT)), ClimbOptions(upto="bench"))
    assert (required.outcome, required.blame, required.exit_code) == ("errored", "device", 3)


def test_hard_limits_of_a_task_refute(judge: Judge) -> None:
    exact = TASK.model_copy(update={"objective": Objective(max_error=1e-12)})
    assert refuted_at(judge.climb(exact, Candidate.of_source(module(RIGHT)), UPTO)) == "correct"
    own = TASK.model_copy(update={"rules": Rules(library_calls="forbid")})
    assert refuted_at(judge.climb(own, Candidate.of_source(module(RIGHT)), UPTO)) == "static"


def test_memory_that_a_task_forbids_is_refuted_at_bench(judge: Judge) -> None:
    small = TASK.model_copy(update={"objective": Objective(max_peak_bytes=16 << 20)})
    options = ClimbOptions(upto="bench", confirm=False, baselines=())
    hungry = module("y = torch.ones(16_000_000); y.add_(1)\n        " + RIGHT)
    assert judge.climb(small, Candidate.of_source(module(RIGHT)), options).outcome == "passed"
    assert refuted_at(judge.climb(small, Candidate.of_source(hungry), options)) == "bench"


def test_a_seed_is_said(judge: Judge) -> None:
    options = ClimbOptions(upto="correct", seed=5)
    assert judge.climb(TASK, Candidate.of_source(module(RIGHT)), options).seed == 5
