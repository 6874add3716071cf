"""Values: JSON both ways, whatever text and facts they hold; digests; frozen and closed."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

import samples
from strategies import EVENTS, JSON_VALUES, SPECS, TEXT, VALUES, runs
from toprung.model.budget import Budget, Spent
from toprung.model.candidate import Candidate
from toprung.model.event import EVENT, Event, Judged
from toprung.model.measurement import Timing
from toprung.model.roofline import Roofline
from toprung.model.run import Run
from toprung.model.task import Case, Inputs, Rules, Task, Tolerance
from toprung.model.tensor import ITEMSIZE, TensorSpec
from toprung.model.value import DEEPEST, Json, Value, digest_of, plain
from toprung.model.verdict import (
    RungResult,
    Verdict,
)

pytestmark = pytest.mark.unit


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


@given(run=runs())
@settings(max_examples=40, deadline=None)
def test_a_run_survives_json(run: Run) -> None:
    assert Run.from_json(run.to_json()) == run
    assert (run.best.index if run.best else None) == (run.kept[-1] if run.kept else None)


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
    found = candidate.model_copy(update={"dsl": "torch", "entry": "kernel"})
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


def test_a_copy_has_a_digest_of_its_own() -> None:
    task = Task(name="a", reference="x")
    assert task.digest != task.model_copy(update={"reference": "y"}).digest
    assert task.digest == task.model_copy().digest


def test_a_copy_is_no_way_to_a_half_truth() -> None:
    with pytest.raises(ValidationError):
        Task(name="a", reference="x").model_copy(update={"cases": ()})
