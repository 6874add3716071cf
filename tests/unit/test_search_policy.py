"""What counts as better, faster, attained and flat; strategies and proposers by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples import a_candidate, a_climb, a_run, a_task, an_attempt, failed, passed
from toprung.errors import UsageError
from toprung.model.measurement import Speedup
from toprung.model.run import Goal
from toprung.model.verdict import Verdict
from toprung.proposers import table
from toprung.proposers.settings import ProposerSettings
from toprung.search import strategy
from toprung.search.policy import Policy, attains, confirmed, faster

pytestmark = pytest.mark.unit

POLICY = Policy()
MEDIANS = st.floats(10.0, 1e6)


def of(median_us: float) -> Verdict:
    return passed(median_us=median_us, confirmed=False)


@given(MEDIANS, MEDIANS)
def test_better_is_never_mutual(one: float, other: float) -> None:
    first, second = of(one), of(other)
    assert not (POLICY.better(first, second) and POLICY.better(second, first))
    if POLICY.better(first, second):
        assert one < other


def test_better_needs_more_than_resolution_and_margin() -> None:
    assert not Policy(margin=0).better(of(600.0), of(600.4))  # the resolution is 0.4 us
    assert Policy(margin=0).better(of(600.0), of(600.5))
    assert not Policy(margin=0.01).better(of(600.0), of(605.9))
    assert Policy(margin=0.01).better(of(600.0), of(606.1))


def test_only_what_passed_is_better() -> None:
    assert not POLICY.better(failed("correct"), None)
    assert POLICY.better(of(600.0), None)
    assert POLICY.better(of(600.0), failed("correct"))
    assert POLICY.better(of(600.0), passed(measured=False))
    assert not POLICY.better(passed(measured=False), of(600.0))
    assert not POLICY.better(passed(measured=False), passed(measured=False))


@given(st.lists(MEDIANS, min_size=1, max_size=8))
def test_the_contender_is_not_beaten(medians: list[float]) -> None:
    attempts = [
        an_attempt(i, passed(candidate=a_candidate(str(i)), median_us=median))
        for i, median in enumerate(medians)
    ]
    best = POLICY.contender(attempts)
    assert best and best.verdict
    assert not any(
        Policy(margin=0.02).better(a.verdict, best.verdict) for a in attempts if a.verdict
    )


def test_faster_is_only_said_when_confirmed_and_above_one() -> None:
    assert faster(passed(median_us=600.0))
    assert not faster(passed(median_us=600.0, confirmed=False))
    assert not faster(passed(median_us=1400.0))  # the interval reaches below 1
    assert not faster(failed("correct"))
    assert not faster(None)
    measured = passed(median_us=600.0).measurement
    assert measured
    other = {"compile": Speedup(ratio=2.0, ci=(1.9, 2.1), confirmed=True)}
    lone = measured.model_copy(update={"speedup": other})
    assert not faster(passed().model_copy(update={"measurement": lone}))
    assert confirmed(passed())
    assert not confirmed(passed(measured=False))


def test_attains() -> None:
    assert attains(passed(median_us=560.0), Goal(attained=0.9))  # the bound is 508.4 us
    assert not attains(passed(median_us=570.0), Goal(attained=0.9))
    assert not attains(passed(measured=False), Goal(attained=0.1))
    assert not attains(None, Goal(attained=0.1))


def test_flat_counts_only_what_spends() -> None:
    run = a_climb()  # the last kept attempt is 7; 8 has no verdict yet
    assert not Policy(patience=1).flat(run)
    refused = [an_attempt(i, failed("run", candidate=a_candidate(str(i)))) for i in range(3)]
    assert Policy(patience=3).flat(a_run(*refused))
    assert not Policy(patience=4).flat(a_run(*refused))
    broken = failed(
        "run", candidate=a_candidate("3"), outcome="errored", blame="device", reason="x"
    )
    assert not Policy(patience=4).flat(a_run(*refused, an_attempt(3, broken)))


def test_strategies_by_name() -> None:
    run = a_climb()
    (ask,) = strategy.get("greedy").plan(run)
    assert (ask.count, ask.history) == (1, run.attempts)
    (ask,) = strategy.get("best_of_n").plan(run)
    assert ask.count == 4
    with pytest.raises(UsageError, match="best_of_m"):
        strategy.get("best_of_m")
    with pytest.raises(UsageError):
        strategy.BestOfN(0)


def test_proposers_by_name() -> None:
    with pytest.raises(UsageError, match="no proposer is called 'template'"):
        table.create("template", ProposerSettings())
    with pytest.raises(UsageError, match="nothing to propose"):
        table.create("scripted", ProposerSettings())
    start = a_candidate("mine")
    proposer = table.create("scripted", ProposerSettings(start=(start,)))
    assert proposer.propose(a_task(), (), (), 3)[0].candidate == start
