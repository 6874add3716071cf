"""Valid values for tests: a task, candidates, verdicts of every kind, and runs made of them."""

from __future__ import annotations

import random
from typing import Literal

from toprung.errors import Blame
from toprung.model.budget import Budget
from toprung.model.candidate import Candidate
from toprung.model.environment import Environment, Walls
from toprung.model.event import Created
from toprung.model.measurement import Measurement, Speedup, Timing
from toprung.model.roofline import Roofline
from toprung.model.run import Attempt, Goal, Proposal, Run
from toprung.model.task import Case, Task
from toprung.model.value import Json
from toprung.model.verdict import (
    RUNGS,
    CandidateRef,
    CaseResult,
    Outcome,
    RungResult,
    TaskRef,
    Verdict,
)

REFERENCE = '''\
import torch


class Model(torch.nn.Module):
    """Softmax over the last dimension."""

    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.rand(512, 4096)]


def get_init_inputs():
    return []
'''

SOURCE = '''\
"""Row softmax in two passes: an online maximum and sum, then one scaled write."""

import torch
import toprung

CPP = r"""
#include <cmath>

// One thread a row; the row stays in the second-level cache between the passes.
void softmax(TensorView x, TensorView y) {
  const float* in = static_cast<const float*>(x.data_ptr());
  float* out = static_cast<float*>(y.data_ptr());
  const int64_t rows = x.size(0), cols = x.size(1);
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    float top = -INFINITY, sum = 0.0f;
    for (int64_t c = 0; c < cols; ++c) top = std::fmax(top, in[r * cols + c]);
    for (int64_t c = 0; c < cols; ++c) sum += std::exp(in[r * cols + c] - top);
    for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = std::exp(in[r * cols + c] - top) / sum;
  }
}
"""

module = toprung.inline(CPP, ["softmax"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        module.softmax(x, y)
        return y  # at most 2 roundings an element
'''

TRACEBACK = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/toprung/judge/child/program.py", line 118, in call
    returned = self.entry(*inputs)
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1775, in _call_impl
    return forward_call(*args, **kwargs)
  File "/scratch/c0ffee/kernel.py", line 31, in forward
    module.softmax(x, z)
                      ^
NameError: name 'z' is not defined
"""

WALLS = Walls(namespaces=True, landlock=True, seccomp=False, network=True, limits=True)
ENVIRONMENT = Environment(
    device="Example CPU, 2 cores", toprung="0.1.0", torch="2.13.0+cpu", walls=WALLS
)


def a_task(**changes: Json) -> Task:
    """A softmax with one case."""
    fields: dict[str, Json] = {
        "name": "softmax",
        "reference": REFERENCE,
        "path": "examples/softmax.py",
    }
    return Task(**(fields | changes))


def a_candidate(mark: str = "") -> Candidate:
    """A candidate; another `mark` makes another digest."""
    return Candidate.of_source(SOURCE + (f"# {mark}\n" if mark else ""), dsl="cpp")


def timing(median_us: float, spread: float = 0.02) -> Timing:
    """A timing whose interval reaches `spread` to both sides."""
    return Timing(median_us=median_us, ci_us=(median_us * (1 - spread), median_us * (1 + spread)))


def a_measurement(
    median_us: float = 600.0, *, eager_us: float = 1400.0, confirmed: bool = True, seed: int = 0
) -> Measurement:
    """Sixty samples about `median_us`, beside eager and compiled baselines."""
    draw = random.Random(seed)
    baselines = {"eager": timing(eager_us), "compile": timing(eager_us * 0.8)}
    return Measurement(
        **timing(median_us).model_dump(),
        busy_us=median_us * 0.97,
        wall_us=median_us + 11,
        resolution_us=0.4,
        samples_us=tuple(median_us * draw.lognormvariate(0, 0.02) for _ in range(60)),
        clock="monotonic",
        cache="cold",
        confirmed=confirmed,
        peak_bytes=8 << 20,
        baselines=baselines,
        speedup={
            name: Speedup(
                ratio=r,
                ci=(r * 0.96, r * 1.05),
                confirmed=confirmed and name == "eager",
            )
            for name, r in ((n, b.median_us / median_us) for n, b in baselines.items())
        },
    )


def a_roofline(median_us: float = 600.0) -> Roofline:
    """Of a softmax that moves 16 MiB, on a device that copies 33 GB/s."""
    bound = 508.4
    return Roofline(
        flops=10_485_760,
        min_bytes=16_777_216,
        bound_us=bound,
        attained=bound / median_us,
        limiter="memory",
    )


def correct_facts(scale: float = 1.0) -> dict[str, Json]:
    """Facts of a `correct` rung over several input families."""
    families = ("as_given", "heavy_tails", "mixed_scales", "position_coded", "zeros_and_ties")
    facts: dict[str, Json] = {}
    for place, family in enumerate(families):
        error = 1.2e-7 * scale * (1 + place / 3)
        facts |= {
            f"{family}.max_abs": error,
            f"{family}.max_rel": error * 9,
            f"{family}.mae": error / 7,
            f"{family}.rmse": error / 5,
            f"{family}.strict": error * 1e5,
            f"{family}.psnr": 141.2 - place,
            f"{family}.cosine": 0.9999999,
        }
    return facts | {"large_offset.skipped": "the reference is ill-conditioned on it", "calls": 7}


def facts_of(name: str, median_us: float = 600.0) -> dict[str, Json]:
    """Facts that a passed rung leaves."""
    return {
        "compile": {"seconds": 1.41, "compiler": "g++ 12.2"},
        "run": {"shape": [512, 4096], "strides": [4096, 1]},
        "correct": correct_facts(),
        "honest": {"poisoned": 5, "fresh_inputs": 60, "late_writes": 0},
        "bench": {"samples": 60, "preempted": 1},
        "plausible": {"floor_us": 410.0, "child_us": median_us * 0.99, "judge_us": median_us},
        "roofline": {"bytes_per_s": 33.0e9, "flops_per_s": 323.0e9},
    }.get(name, {})


OPTIONAL = {
    "sanitize": "not asked: add --with sanitize",
    "profile": "not asked: add --with profile",
}


def rungs_upto(
    top: str,
    status: Literal["passed", "refuted", "errored"] = "passed",
    *,
    reason: str | None = None,
    traceback: str | None = None,
    facts: dict[str, Json] | None = None,
    median_us: float = 600.0,
) -> tuple[RungResult, ...]:
    """Every rung below `top` passed, `top` as asked, and the rest not reached."""
    found: list[RungResult] = []
    reached = RUNGS.index(top)
    for place, name in enumerate(RUNGS):
        if place > reached:
            found.append(RungResult(name=name))
        elif place == reached:
            told = facts if facts is not None else facts_of(name, median_us)
            found.append(
                RungResult(
                    name=name,
                    status=status,
                    seconds=0.4,
                    facts=told,
                    reason=reason,
                    traceback=traceback,
                )
            )
        elif name in OPTIONAL:
            found.append(RungResult(name=name, status="skipped", reason=OPTIONAL[name]))
        else:
            found.append(
                RungResult(name=name, status="passed", seconds=0.2, facts=facts_of(name, median_us))
            )
    return tuple(found)


def _verdict(
    task: Task, candidate: Candidate, rungs: tuple[RungResult, ...], **rest: Json
) -> Verdict:
    fields: dict[str, Json] = {
        "task": TaskRef(name=task.name, digest=task.digest),
        "candidate": CandidateRef(digest=candidate.digest, dsl="cpp", entry="ModelNew"),
        "target": "cpu:native",
        "rungs": rungs,
        "environment": ENVIRONMENT,
    }
    return Verdict(**(fields | rest))


def passed(
    task: Task | None = None,
    candidate: Candidate | None = None,
    *,
    median_us: float = 600.0,
    confirmed: bool = True,
    measured: bool = True,
    **rest: Json,
) -> Verdict:
    """A verdict that passed: up to `roofline`, or (not `measured`) up to `honest`."""
    task, candidate = task or a_task(), candidate or a_candidate()
    if not measured:
        seen = rungs_upto("honest")
        skipped = tuple(
            RungResult(name=r.name, status="skipped", reason="no CUDA device on this machine")
            for r in seen[5:]
        )
        return _verdict(task, candidate, (*seen[:5], *skipped), outcome="passed", **rest)
    measurement = a_measurement(median_us, confirmed=confirmed)
    roofline = a_roofline(median_us)
    cases = tuple(
        CaseResult(name=c.name, held_out=True, outcome="passed")
        if c.held_out
        else CaseResult(name=c.name, outcome="passed", measurement=measurement, roofline=roofline)
        for c in task.cases
    )
    figures: dict[str, Json] = {"measurement": measurement, "roofline": roofline, "cases": cases}
    rungs = rungs_upto("roofline", median_us=median_us)
    return _verdict(task, candidate, rungs, outcome="passed", **(figures | rest))


def failed(
    rung: str = "run",
    task: Task | None = None,
    candidate: Candidate | None = None,
    *,
    outcome: Outcome = "refuted",
    blame: Blame = "candidate",
    reason: str = "NameError: name 'z' is not defined",
    traceback: str | None = TRACEBACK,
    facts: dict[str, Json] | None = None,
    **rest: Json,
) -> Verdict:
    """A verdict that failed at `rung`."""
    status: Literal["refuted", "errored"] = "errored" if outcome == "errored" else "refuted"
    rungs = rungs_upto(rung, status, reason=reason, traceback=traceback, facts=facts or {})
    task, candidate = task or a_task(), candidate or a_candidate()
    return _verdict(task, candidate, rungs, outcome=outcome, blame=blame, **rest)


def a_creation(task: Task | None = None, **changes: Json) -> Created:
    """The first event of a run."""
    fields: dict[str, Json] = {
        "at": "2026-03-01T12:00:00+00:00",
        "task": task or a_task(),
        "goal": Goal(attained=0.9),
        "budget": Budget(attempts=20, minutes=5),
        "target": "cpu:native",
        "proposer": "templates",
        "strategy": "best_of_n",
    }
    return Created(**(fields | changes))


def an_attempt(
    index: int, verdict: Verdict | None = None, *, kept: bool = False, **proposal: Json
) -> Attempt:
    """An attempt whose candidate is the one that `a_candidate(str(index))` makes."""
    fields: dict[str, Json] = {
        "candidate": a_candidate(str(index)),
        "note": "two passes instead of three",
        "author": "templates: row_softmax",
    }
    return Attempt(
        index=index,
        proposal=Proposal(**(fields | proposal)),
        verdict=verdict,
        kept=kept,
        seconds=2.5 if verdict else 0.0,
    )


def a_run(*attempts: Attempt, task: Task | None = None, **changes: Json) -> Run:
    """A run that consists of `attempts`."""
    created = a_creation(task)
    fields: dict[str, Json] = {
        "id": "20260301-softmax-k3f9q",
        "created": created.at,
        "attempts": attempts,
        "kept": tuple(a.index for a in attempts if a.kept),
        **{
            n: getattr(created, n)
            for n in ("task", "goal", "budget", "target", "proposer", "strategy")
        },
    }
    return Run(**(fields | changes))


def a_climb(task: Task | None = None) -> Run:
    """A run as they go: refuted at several rungs, a first that passes, better ones, one in flight."""
    task = task or a_task()

    def about(index: int) -> dict[str, Json]:
        return {"task": task, "candidate": a_candidate(str(index))}

    compiler = "kernel.cpp:7:12: error: 'TensorVeiw' was not declared in this scope"
    wrong = "wrong on zeros_and_ties inputs: 5.6e-3 where 2.0e-7 is allowed"
    attempts = (
        an_attempt(0, failed("compile", **about(0), reason=compiler, traceback=compiler)),
        an_attempt(1, failed("correct", **about(1), reason=wrong, facts=correct_facts(2e4))),
        an_attempt(2, passed(**about(2), median_us=1180.0, confirmed=False), kept=True),
        an_attempt(3, failed("run", **about(3))),
        an_attempt(4, passed(**about(4), median_us=840.0), kept=True),
        an_attempt(5, passed(**about(5), median_us=910.0, confirmed=False)),
        an_attempt(
            6,
            failed(
                "bench", **about(6), outcome="errored", blame="device", reason="the clock stopped"
            ),
        ),
        an_attempt(7, passed(**about(7), median_us=590.0), kept=True),
        an_attempt(8),
    )
    return a_run(*attempts, task=task, hints=("try one pass over the row",))


def several_cases() -> Task:
    """A task with two open cases and one that is held out."""
    return a_task(
        cases=(
            Case(name="square", args={"rows": 512, "cols": 512}),
            Case(name="wide", args={"rows": 64, "cols": 32768}),
            Case(name="odd", args={"rows": 37, "cols": 1009}, held_out=True),
        )
    )
