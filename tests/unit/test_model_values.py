"""Values: JSON both ways, whatever text and facts they hold; digests; frozen and closed."""

from __future__ import annotations

import json
import math
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

import samples
from toprung.model.budget import Budget, Spent
from toprung.model.candidate import Candidate
from toprung.model.environment import Environment, Walls
from toprung.model.event import EVENT, AttemptStarted, Done, Event, Hinted, Judged, Kept
from toprung.model.measurement import Measurement, Speedup, Timing
from toprung.model.roofline import Roofline, Work
from toprung.model.run import Goal, Proposal, Run
from toprung.model.task import FAMILIES, Case, Inputs, Rules, Task, Tolerance
from toprung.model.tensor import ITEMSIZE, TensorSpec, Tree
from toprung.model.value import DEEPEST, Json, Value, digest_of, plain
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

pytestmark = pytest.mark.unit

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
        confirmed=bool(speedup) and draw(st.booleans()),
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
        cases=(
            CaseResult(
                name="hidden", held_out=True, outcome=draw(st.sampled_from([None, "passed"]))
            ),
        ),
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
    st.builds(Tree, layout=JSON_VALUES, specs=st.lists(SPECS, max_size=2).map(tuple)),
)


@given(value=VALUES)
@settings(max_examples=250, deadline=None)
def test_every_value_survives_json(value: Value) -> None:
    text = value.to_json()
    assert type(value).from_json(text) == value
    assert type(value).from_json(json.dumps(value.to_dict())) == value
    json.loads(text.encode(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


@given(event=EVENTS)
@settings(max_examples=150, deadline=None)
def test_every_event_survives_json(event: Event) -> None:
    assert EVENT.validate_json(event.to_json()) == event


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_run_survives_json(data: st.DataObject) -> None:
    attempts = []
    for index in range(data.draw(st.integers(0, 3))):
        candidate = samples.a_candidate(str(index))
        verdict = data.draw(st.none() | verdicts(candidate))
        kept = verdict is not None and verdict.outcome == "passed" and data.draw(st.booleans())
        attempts.append(samples.an_attempt(index, verdict, kept=kept))
    order = data.draw(st.permutations([a.index for a in attempts if a.kept]))
    run = samples.a_run(*attempts, kept=tuple(order))
    assert Run.from_json(run.to_json()) == run
    assert (run.best.index if run.best else None) == (order[-1] if order else None)


@given(content=JSON_VALUES)
def test_plain_is_what_json_gives_back(content: Json) -> None:
    once = plain(content)
    assert json.loads(json.dumps(once, allow_nan=False).encode()) == once == plain(once)


def test_floats_without_a_word_in_json_become_words() -> None:
    facts = RungResult(
        name="correct", status="passed", facts={"psnr": math.inf, "x": (-math.inf, math.nan)}
    ).facts
    assert facts == {"psnr": "inf", "x": ["-inf", "nan"]}


@pytest.mark.parametrize("fact", [{1, 2}, b"bytes", object(), {1: 2}, lambda: None])
def test_facts_are_json(fact: object) -> None:
    with pytest.raises(ValidationError, match=r"is not JSON|is not a string"):
        RungResult(name="correct", status="passed", facts={"fact": fact})


def test_facts_nest_only_so_deep() -> None:
    deep: Json = 1
    for _ in range(DEEPEST + 2):
        deep = [deep]
    with pytest.raises(ValidationError, match="deep"):
        RungResult(name="correct", status="passed", facts={"fact": deep})


@pytest.mark.parametrize("number", [math.nan, math.inf, -1.0])
def test_figures_are_numbers_of_the_right_sign(number: float) -> None:
    with pytest.raises(ValidationError):
        Timing(median_us=number, ci_us=(0, math.inf if number == math.inf else 1))
    with pytest.raises(ValidationError):
        Roofline(flops=1, min_bytes=1, bound_us=number, attained=0.5, limiter="memory")
    with pytest.raises(ValidationError):
        Judged(index=0, verdict=samples.passed(), seconds=number)


@given(value=VALUES)
@settings(max_examples=60, deadline=None)
def test_values_are_frozen_and_closed(value: Value) -> None:
    field = next(iter(type(value).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(value, field, getattr(value, field))
    with pytest.raises(ValidationError, match="Extra inputs"):
        type(value).model_validate(value.to_dict() | {"surprise": 1})


def test_another_schema_is_refused() -> None:
    for value in (samples.passed(), samples.a_task(), samples.a_run()):
        told = value.to_dict()
        with pytest.raises(ValidationError, match="schema"):
            type(value).model_validate(told | {"schema": told["schema"][:-1] + "2"})


def test_an_event_of_no_known_kind_is_refused() -> None:
    with pytest.raises(ValidationError, match="event"):
        EVENT.validate_python({"event": "rumour", "text": "x"})


@given(content=st.dictionaries(TEXT, st.integers() | TEXT, max_size=4))
def test_a_digest_depends_on_content_and_not_on_order(content: dict[str, Json]) -> None:
    backwards = dict(reversed(content.items()))
    assert digest_of(content) == digest_of(backwards)
    assert digest_of(content) != digest_of(content | {"one more": 1})


def test_a_candidate_is_named_by_its_files_alone() -> None:
    candidate = samples.a_candidate()
    found = candidate.model_copy(
        update={"dsl": "torch", "entry": "kernel", "target": "cuda:sm_90a"}
    )
    assert found.digest == candidate.digest
    assert samples.a_candidate("x").digest != candidate.digest
    other = Candidate(files={"a": "1", "b": "2"}, main="b")
    assert other.digest != Candidate(files={"a": "1", "b": "2"}, main="a").digest


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"reference": "pass"},
        {"precision": "bf16"},
        {"grad": ("x",)},
        {"train": True},
        {"cases": (Case(name="wide"),)},
        {"tolerance": Tolerance(preset="kernelbench")},
        {"inputs": Inputs(families=("heavy_tails",))},
        {"rules": Rules(library_calls="forbid")},
        {"vendor": "def kernel(x): ..."},
    ],
)
def test_a_task_is_named_by_all_that_a_verdict_depends_on(change: dict[str, Json]) -> None:
    task = samples.a_task()
    assert samples.a_task(**change).digest != task.digest
    assert samples.a_task(path="elsewhere.py", description="words").digest == task.digest


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../up.py", "a/../../b", "", ".", "a//b", "./a", "a/", "nul\0", "\ud800"],
)
def test_files_of_a_candidate_stay_in_its_folder(name: str) -> None:
    with pytest.raises(ValidationError, match=r"leaves|plain relative|Unicode"):
        Candidate(files={name: ""}, main=name)


def test_files_of_a_candidate_can_be_written() -> None:
    with pytest.raises(ValidationError, match="a file and a folder"):
        Candidate(files={"a": "", "a/b": ""}, main="a")
    with pytest.raises(ValidationError, match="not valid Unicode"):
        Candidate.of_source("print('\ud800')")
    with pytest.raises(ValidationError, match="is not among"):
        Candidate(files={"a.py": ""}, main="b.py")


@given(spec=SPECS)
def test_a_contiguous_tensor_takes_the_bytes_of_its_elements(spec: TensorSpec) -> None:
    assert spec.nbytes == math.prod(spec.shape) * ITEMSIZE[spec.dtype]


def test_the_bytes_of_a_strided_tensor_reach_its_last_element() -> None:
    assert TensorSpec(dtype="float32", shape=(3, 2), strides=(10, 1)).nbytes == (2 * 10 + 1 + 1) * 4
    with pytest.raises(ValidationError, match="unknown element type"):
        TensorSpec(dtype="float31", shape=(), strides=())
    with pytest.raises(ValidationError, match="1 sizes but 2 strides"):
        TensorSpec(dtype="float32", shape=(1,), strides=(1, 1))


def test_the_families_that_are_wanted() -> None:
    assert Inputs().wanted[0] == "as_given" and "special_values" not in Inputs().wanted
    assert Inputs(families=("special_values",)).wanted == ("as_given", "special_values")


@pytest.mark.parametrize(
    ("spent", "ceiling"),
    [
        ({"attempts": 19, "seconds": 299.9, "usd": 0.99}, None),
        ({"attempts": 20}, "attempts"),
        ({"seconds": 300.0}, "minutes"),
        ({"usd": 1.0}, "usd"),
    ],
)
def test_ceilings_are_hard(spent: dict[str, Json], ceiling: str | None) -> None:
    assert Spent(**spent).exhausted(Budget(attempts=20, minutes=5, usd=1.0)) == ceiling
    assert Spent(**spent).exhausted(Budget()) is None


def test_every_value_has_a_json_schema() -> None:
    """Scripts may ask for it; a type that JSON cannot describe would raise here."""
    for kind in (Verdict, Run, Task):
        assert kind.model_json_schema()["properties"]["schema"]["const"].startswith("toprung.")
    assert TypeAdapter(Event).json_schema()
