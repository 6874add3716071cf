"""Half-truths cannot be built: every way in which a verdict could claim more than was shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import samples
from toprung.model.event import Kept
from toprung.model.measurement import Measurement, Speedup, Timing
from toprung.model.run import Attempt
from toprung.model.task import Case, Task
from toprung.model.value import Json
from toprung.model.verdict import NEEDS, RUNGS, CaseResult, RungResult, Verdict

pytestmark = pytest.mark.unit


def remade(verdict: Verdict, **changes: Json) -> Verdict:
    """The verdict with some fields changed, validated anew."""
    return Verdict.model_validate(verdict.to_dict() | changes)


def with_rungs(verdict: Verdict, names: str, **changes: Json) -> Verdict:
    """The verdict with some rungs changed alike."""
    told = verdict.to_dict()["rungs"]
    return remade(verdict, rungs=[r | changes if r["name"] in names.split() else r for r in told])


SKIPPED = {"status": "skipped", "reason": "not here", "facts": {}}
FAILED: dict[str, Callable[[], Verdict]] = {
    "a measurement without a passed bench": lambda: with_rungs(
        remade(samples.passed(), roofline=None, cases=[]), "bench plausible roofline", **SKIPPED
    ),
    "'bench' passed without 'correct'": lambda: with_rungs(
        samples.passed(), "correct honest", **SKIPPED
    ),
    "'correct' passed without 'run'": lambda: with_rungs(samples.passed(), "run", **SKIPPED),
    "'run' passed without 'compile'": lambda: with_rungs(samples.passed(), "compile", **SKIPPED),
    "a roofline without a passed roofline": lambda: with_rungs(
        samples.passed(), "roofline", **SKIPPED
    ),
    "passed, but a rung failed": lambda: with_rungs(
        samples.passed(), "roofline", status="refuted", reason="slow"
    ),
    "passed, but no rung did": lambda: remade(
        samples.passed(measured=False), rungs=[RungResult(name=n).to_dict() for n in RUNGS]
    ),
    "outcome 'passed' with blame": lambda: remade(samples.passed(), blame="candidate"),
    "outcome 'refuted' with blame None": lambda: remade(samples.failed(), blame=None),
    "the candidate's blame": lambda: remade(samples.failed(), blame="device"),
    "refuted needs exactly one": lambda: with_rungs(
        samples.failed(), "run", status="passed", traceback=None
    ),
    "errored is never the candidate's blame": lambda: samples.failed(outcome="errored"),
    "errored, but a rung refuted": lambda: remade(
        samples.failed(), outcome="errored", blame="device"
    ),
    "errored, but no rung did": lambda: remade(
        samples.passed(measured=False), outcome="errored", blame="harness"
    ),
    "asked after a rung had failed": lambda: with_rungs(
        samples.failed("run"), "correct", status="errored", reason="too"
    ),
    "a rung appears twice": lambda: remade(
        samples.failed(), rungs=[*samples.failed().to_dict()["rungs"], {"name": "static"}]
    ),
    "passed, but a case did not": lambda: remade(
        samples.passed(), cases=[{"name": "odd", "held_out": True, "outcome": "refuted"}]
    ),
    "a case appears twice": lambda: remade(samples.passed(), cases=[{"name": "a"}, {"name": "a"}]),
}


@pytest.mark.parametrize("says", FAILED)
def test_a_verdict_claims_no_more_than_its_rungs(says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        FAILED[says]()


BASES = [
    samples.passed(),
    samples.passed(measured=False),
    *map(samples.failed, ("compile", "bench")),
]
STATUSES = st.sampled_from(["passed", "refuted", "errored", "skipped", "not_reached"])


@given(
    base=st.sampled_from(BASES),
    changed=st.dictionaries(st.sampled_from(RUNGS), STATUSES, max_size=3),
    outcome=st.none() | st.sampled_from(["passed", "refuted", "errored"]),
    blame=st.sampled_from([None, "candidate", "task", "harness", "device"]),
    measured=st.booleans(),
)
@settings(max_examples=800, deadline=None)
def test_whatever_can_be_built_is_a_whole_truth(
    base: Verdict, changed: dict[str, str], outcome: str | None, blame: str | None, measured: bool
) -> None:
    statuses = [changed.get(rung.name, rung.status) for rung in base.rungs]
    if outcome is None:
        outcome, blame = base.outcome, base.blame
    rungs = [
        {"name": n, "status": s, "reason": "because" if s != "passed" else None}
        for n, s in zip(RUNGS, statuses, strict=True)
    ]
    figures = {
        "measurement": samples.a_measurement().to_dict() if measured else None,
        "roofline": None,
    }
    try:
        verdict = remade(
            samples.passed(), rungs=rungs, outcome=outcome, blame=blame, cases=[], **figures
        )
    except ValidationError:
        return
    status = dict(zip(RUNGS, statuses, strict=True))
    failures = [s for s in statuses if s in ("refuted", "errored")]
    assert len(failures) <= 1
    assert (
        (verdict.outcome == "refuted") == ("refuted" in statuses) == (verdict.blame == "candidate")
    )
    assert (verdict.outcome == "passed") == (verdict.blame is None)
    assert verdict.outcome != "passed" or ("passed" in statuses and not failures)
    assert not measured or status["bench"] == "passed"
    for upper, lower in NEEDS.items():
        assert status[upper] != "passed" or status[lower] == "passed"
    assert (
        verdict.exit_code == {None: 0, "candidate": 1, "task": 2, "harness": 3, "device": 3}[blame]
    )


def test_a_rung_that_was_required_and_skipped_is_the_devices_blame() -> None:
    verdict = remade(samples.passed(measured=False), outcome="errored", blame="device")
    assert verdict.exit_code == 3 and verdict.failed_rung is None and verdict.height == "honest"


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "refuted"},
        {"status": "errored", "reason": ""},
        {"status": "skipped"},
        {"status": "not_reached", "facts": {"x": 1}},
        {"status": "not_reached", "seconds": 0.1},
        {"status": "passed", "traceback": "Traceback (most recent call last):"},
        {"status": "skipped", "reason": "not here", "traceback": "Traceback"},
        {"status": "perhaps"},
    ],
)
def test_a_rung_tells_what_its_status_allows(fields: dict[str, Json]) -> None:
    with pytest.raises(ValidationError):
        RungResult(name="run", **fields)


def test_a_held_out_case_shows_its_outcome_and_nothing_else() -> None:
    CaseResult(name="odd", held_out=True, outcome="passed")
    with pytest.raises(ValidationError, match="more than its outcome"):
        CaseResult(name="odd", held_out=True, outcome="passed", measurement=samples.a_measurement())
    with pytest.raises(ValidationError, match="more than its outcome"):
        CaseResult(name="odd", held_out=True, outcome="passed", roofline=samples.a_roofline())


@given(median=st.floats(0.001, 1e6), low=st.floats(0.001, 1e6), high=st.floats(0.001, 1e6))
def test_an_interval_holds_its_median(median: float, low: float, high: float) -> None:
    holds = low <= median <= high
    for build in (
        lambda: Timing(median_us=median, ci_us=(low, high)),
        lambda: Speedup(ratio=median, ci=(low, high)),
    ):
        if holds:
            build()
        else:
            with pytest.raises(ValidationError, match="outside its interval"):
                build()


def test_a_speedup_needs_the_baseline_it_is_over() -> None:
    told = samples.a_measurement().to_dict()
    with pytest.raises(ValidationError, match="without a baseline: compile, eager"):
        Measurement.model_validate(told | {"baselines": {}})
    with pytest.raises(ValidationError, match="confirmed must say whether a speedup is"):
        Measurement.model_validate(told | {"speedup": {}})


def test_faster_is_only_said_when_the_whole_interval_is() -> None:
    assert Speedup(ratio=1.1, ci=(1.01, 1.2)).faster
    assert not Speedup(ratio=1.5, ci=(1.0, 2.0)).faster


def test_only_what_passed_is_kept() -> None:
    refuted = samples.failed(candidate=samples.a_candidate("0"))
    with pytest.raises(ValidationError, match="cannot be kept"):
        Kept(index=0, verdict=samples.failed())
    for verdict in (None, refuted):
        with pytest.raises(ValidationError, match="did not pass"):
            samples.an_attempt(0, verdict, kept=True)


def test_an_attempt_has_the_verdict_of_its_own_candidate() -> None:
    with pytest.raises(ValidationError, match="another candidate"):
        samples.an_attempt(0, samples.passed(candidate=samples.a_candidate("1")))


def test_a_run_agrees_with_its_attempts() -> None:
    def attempt(index: int) -> Attempt:
        verdict = samples.passed(candidate=samples.a_candidate(str(index)))
        return samples.an_attempt(index, verdict, kept=True)

    with pytest.raises(ValidationError, match="in order"):
        samples.a_run(attempt(1), attempt(0))
    with pytest.raises(ValidationError, match="in order"):
        samples.a_run(attempt(0), attempt(0))
    with pytest.raises(ValidationError, match="do not say"):
        samples.a_run(attempt(0), kept=())
    with pytest.raises(ValidationError, match="do not say"):
        samples.a_run(samples.an_attempt(0), kept=(0,))
    run = samples.a_run(attempt(0), attempt(1), kept=(1, 0))
    assert run.best is not None and run.best.index == 0


def test_a_task_has_cases_of_different_names_and_shows_one() -> None:
    with pytest.raises(ValidationError, match="names must differ: a"):
        samples.a_task(cases=(Case(name="a"), Case(name="a")))
    with pytest.raises(ValidationError, match="held out"):
        samples.a_task(cases=(Case(name="a", held_out=True),))
    with pytest.raises(ValidationError):
        Task(name="", reference="x")
