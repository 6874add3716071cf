"""Strategies of hypothesis for every value: valid ones, with whatever text and facts they may hold."""

from __future__ import annotations

import string

from hypothesis import strategies as st

import samples
from toprung.model.budget import Budget, Spent
from toprung.model.candidate import Candidate
from toprung.model.environment import Environment, Walls
from toprung.model.event import AttemptStarted, Done, Event, Hinted, Judged, Kept
from toprung.model.measurement import Measurement, Speedup, Timing
from toprung.model.roofline import Roofline, Work
from toprung.model.run import Goal, Proposal, Run
from toprung.model.task import FAMILIES, Case, Inputs, Rules, Task, Tolerance
from toprung.model.tensor import ITEMSIZE, TensorSpec, Tree
from toprung.model.value import Value
from toprung.model.verdict import (
    RUNGS,
    CandidateRef,
    CaseResult,
    Outcome,
    RungResult,
    Status,
    TaskRef,
    Verdict,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates too
TEXT = st.text(max_size=20)
NAMES = st.text(string.ascii_letters, min_size=1, max_size=8)
REAL = st.floats(min_value=0, max_value=1e9)
POSITIVE = st.floats(min_value=1e-6, max_value=1e6)
COUNT = st.integers(0, 2**70)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=6,
)
FACTS = st.dictionaries(ANY_TEXT, JSON_VALUES, max_size=4)


def about(median: float, low: float, high: float) -> tuple[float, tuple[float, float]]:
    """A median and an interval that holds it."""
    return median, (median * low, median * high)


INTERVALS = st.builds(about, POSITIVE, st.floats(0.01, 1.0), st.floats(1.0, 100.0))
TIMINGS = INTERVALS.map(lambda i: Timing(median_us=i[0], ci_us=i[1]))
SPEEDUPS = INTERVALS.map(lambda i: Speedup(ratio=i[0], ci=i[1]))


@st.composite
def measurements(draw: st.DrawFn) -> Measurement:
    median_us, ci_us = draw(INTERVALS)
    baselines = draw(st.dictionaries(NAMES, TIMINGS, max_size=3))
    speedup = {name: draw(SPEEDUPS) for name in baselines if draw(st.booleans())}
    return Measurement(
        median_us=median_us,
        ci_us=ci_us,
        busy_us=draw(REAL),
        wall_us=draw(REAL),
        resolution_us=draw(REAL),
        samples_us=tuple(draw(st.lists(REAL, max_size=4))),
        clock=draw(st.sampled_from(["cupti", "event", "monotonic"])),
        cache=draw(st.sampled_from(["cold", "warm"])),
        confirmed=any(s.confirmed for s in speedup.values()),
        peak_bytes=draw(COUNT),
        baselines=baselines,
        speedup=speedup,
    )


ROOFLINES = st.builds(
    Roofline,
    flops=COUNT,
    min_bytes=COUNT,
    bound_us=REAL,
    attained=REAL,
    limiter=st.sampled_from(["memory", "compute", "latency"]),
)
TASKS = st.builds(
    Task,
    name=st.text(min_size=1, max_size=10),
    reference=st.text(min_size=1, max_size=40),
    path=st.none() | TEXT,
    precision=st.none() | st.sampled_from(["fp64", "fp32", "tf32", "fp16", "bf16", "fp8_e4m3"]),
    grad=st.lists(NAMES, max_size=2).map(tuple),
    train=st.booleans(),
    cases=st.lists(NAMES, min_size=1, max_size=3, unique=True).flatmap(
        lambda names: st.tuples(
            *(
                st.builds(
                    Case,
                    name=st.just(name),
                    args=st.dictionaries(NAMES, JSON_VALUES, max_size=2),
                    held_out=st.just(False) if i == 0 else st.booleans(),
                )
                for i, name in enumerate(names)
            )
        )
    ),
    tolerance=st.builds(
        Tolerance, preset=st.sampled_from(["strict", "kernelbench"]), rtol=st.none() | REAL
    ),
    inputs=st.builds(
        Inputs, families=st.just("all") | st.lists(st.sampled_from(FAMILIES), max_size=3).map(tuple)
    ),
    rules=st.builds(
        Rules, library_calls=st.sampled_from(["allow", "forbid"]), in_place=st.booleans()
    ),
)
CANDIDATES = st.builds(
    lambda files, dsl: Candidate(files=files, main=next(iter(files)), dsl=dsl),
    st.dictionaries(NAMES.map(lambda n: f"src/{n}.py"), TEXT, min_size=1, max_size=3),
    st.none() | NAMES,
)
ENVIRONMENTS = st.builds(
    Environment, device=TEXT, toprung=TEXT, torch=st.none() | TEXT, walls=st.builds(Walls)
)


@st.composite
def _cases(draw: st.DrawFn, passed: set[str], ending: Outcome) -> tuple[CaseResult, ...]:
    known: list[Outcome | None] = [None, "passed"]
    if ending == "refuted":
        known.append("refuted")
    outcomes = st.sampled_from(known)
    cases = [CaseResult(name="hidden", held_out=True, outcome=draw(outcomes))]
    for name in draw(st.lists(NAMES, max_size=2, unique=True)):
        cases.append(
            CaseResult(
                name=f"open {name}",
                outcome=draw(outcomes),
                measurement=draw(st.none() | measurements()) if "bench" in passed else None,
                roofline=draw(st.none() | ROOFLINES) if "roofline" in passed else None,
            )
        )
    return tuple(cases)


@st.composite
def verdicts(draw: st.DrawFn, candidate: Candidate | None = None) -> Verdict:
    """A verdict that ended anywhere, with facts, text and figures of any kind."""
    reached = draw(st.integers(0, len(RUNGS) - 1))
    ending: Outcome = draw(st.sampled_from(["passed", "refuted", "errored"]))
    if RUNGS[reached] in samples.OPTIONAL:
        ending = "passed"
    rungs: list[RungResult] = []
    for place, name in enumerate(RUNGS):
        status: Status = (
            "passed" if place < reached else ending if place == reached else "not_reached"
        )
        if name in samples.OPTIONAL and place <= reached:
            status = "skipped"
        text = draw(ANY_TEXT) if status != "not_reached" else ""
        rungs.append(
            RungResult(
                name=name,
                status=status,
                facts=draw(FACTS) if status != "not_reached" else {},
                reason=text + "!" if status in ("refuted", "errored", "skipped") else None,
                traceback=text if status in ("refuted", "errored") else None,
            )
        )
    seen = {r.name for r in rungs if r.status == "passed"}
    blame = {
        "passed": None,
        "refuted": "candidate",
        "errored": draw(st.sampled_from(["task", "harness", "device"])),
    }[ending]
    return Verdict(
        task=TaskRef(name=draw(TEXT), digest=draw(NAMES)),
        candidate=CandidateRef(
            digest=candidate.digest if candidate else draw(NAMES),
            labels=tuple(draw(st.lists(ANY_TEXT, max_size=2))),
        ),
        target="cpu:native",
        outcome=ending,
        blame=blame,
        rungs=tuple(rungs),
        measurement=draw(st.none() | measurements()) if "bench" in seen else None,
        roofline=draw(st.none() | ROOFLINES) if "roofline" in seen else None,
        cases=draw(_cases(seen, ending)),
        environment=draw(ENVIRONMENTS),
        seed=draw(st.none() | st.integers(0, 2**63)),
    )


PROPOSALS = st.builds(
    Proposal, candidate=CANDIDATES, parent=st.none() | NAMES, note=ANY_TEXT, author=ANY_TEXT
)
BUDGETS = st.builds(
    Budget,
    attempts=st.none() | st.integers(1, 99),
    minutes=st.none() | POSITIVE,
    usd=st.none() | REAL,
)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(samples.a_creation, TASKS, budget=BUDGETS, goal=st.builds(Goal, attained=POSITIVE)),
    st.builds(AttemptStarted, index=st.integers(0, 99), proposal=PROPOSALS),
    st.builds(Judged, index=st.integers(0, 99), verdict=verdicts(), seconds=REAL),
    st.builds(
        Kept,
        index=st.integers(0, 99),
        verdict=st.none() | verdicts().filter(lambda verdict: verdict.outcome == "passed"),
    ),
    st.builds(Hinted, text=ANY_TEXT),
    st.builds(
        Done, reason=st.sampled_from(["goal", "budget", "plateau", "stopped"]), message=ANY_TEXT
    ),
)
SPECS = st.builds(
    TensorSpec.contiguous,
    st.sampled_from(sorted(ITEMSIZE)),
    st.lists(st.integers(0, 9), max_size=4).map(tuple),
)

PLAIN_NODES = st.recursive(
    (st.none() | st.booleans() | st.integers() | REAL | TEXT).map(lambda v: {"v": v})
    | st.sampled_from([{"dtype": "float32"}, {"float": "inf"}]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: {"list": items})
        | st.lists(st.tuples(TEXT, inner).map(list), max_size=3).map(lambda e: {"dict": e})
    ),
    max_leaves=5,
)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Plain values, and tensors in order among them."""
    specs = tuple(draw(st.lists(SPECS, max_size=2)))
    nodes = [{"t": index} for index in range(len(specs))]
    return Tree(layout={"tuple": [draw(PLAIN_NODES), {"list": nodes}]}, specs=specs)


VALUES: st.SearchStrategy[Value] = st.one_of(
    TASKS,
    CANDIDATES,
    measurements(),
    ROOFLINES,
    ENVIRONMENTS,
    BUDGETS,
    verdicts(),
    PROPOSALS,
    st.builds(Work, flops=COUNT, min_bytes=COUNT, uncounted=st.lists(NAMES, max_size=2).map(tuple)),
    st.builds(Spent, attempts=st.integers(0, 9), seconds=REAL, usd=REAL),
    trees(),
)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run of a few attempts, some of them kept, in any order."""
    attempts = []
    for index in range(draw(st.integers(0, 4))):
        candidate = samples.a_candidate(str(index))
        verdict = draw(st.none() | verdicts(candidate))
        kept = verdict is not None and verdict.outcome == "passed" and draw(st.booleans())
        attempts.append(samples.an_attempt(index, verdict, kept=kept, note=draw(ANY_TEXT)))
    order = draw(st.permutations([a.index for a in attempts if a.kept]))
    return samples.a_run(
        *attempts,
        task=draw(TASKS),
        kept=tuple(order),
        hints=tuple(draw(st.lists(ANY_TEXT, max_size=2))),
    )
