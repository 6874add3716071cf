"""The store: events in, runs out; ids, hints, memory, and what it refuses."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import samples
from toprung.errors import HarnessError, UsageError
from toprung.model.event import AttemptStarted, Done, Event, Hinted, Judged, Kept
from toprung.model.run import Proposal, Run
from toprung.store import RunSummary, Store

pytestmark = pytest.mark.unit


@pytest.fixture
def store(tmp_path: Path):
    with Store.open(tmp_path / "state") as opened:
        yield opened


def started(index: int, mark: str | None = None) -> AttemptStarted:
    candidate = samples.a_candidate(str(index) if mark is None else mark)
    return AttemptStarted(index=index, proposal=Proposal(candidate=candidate))


def judged(index: int, verdict: str = "passed", median_us: float = 600.0) -> Judged:
    candidate = samples.a_candidate(str(index))
    if verdict == "passed":
        return Judged(
            index=index, verdict=samples.passed(None, candidate, median_us=median_us), seconds=1.5
        )
    return Judged(index=index, verdict=samples.failed("run", None, candidate), seconds=0.5)


def told(store: Store, *events: Event) -> Run:
    run_id = store.create_run(samples.a_creation())
    for event in events:
        store.append(run_id, event)
    return store.run(run_id)


def test_a_run_is_what_its_events_tell(store: Store) -> None:
    run = told(
        store,
        started(0),
        judged(0, "refuted"),
        Hinted(text="one pass"),
        started(1),
        judged(1),
        Kept(index=1),
        Done(reason="goal", message="near the roof"),
    )
    assert [a.verdict.outcome for a in run.attempts if a.verdict] == ["refuted", "passed"]
    assert run.best is not None and run.best.index == 1
    assert (run.reason, run.message, run.hints) == ("goal", "near the roof", ("one pass",))
    assert run.spent.attempts == 2 and run.spent.seconds == 2.0
    assert store.hints(run.id) == ("one pass",)
    assert run.task == samples.a_task() and run.created == samples.a_creation().at


def test_events_come_back_as_they_were_written(store: Store) -> None:
    events = [started(0), judged(0), Kept(index=0), Done(reason="stopped")]
    run = told(store, *events)
    assert list(store.events(run.id)) == [samples.a_creation(), *events]


def test_an_attempt_in_flight_has_no_verdict_and_is_tried_again(store: Store) -> None:
    run = told(store, started(0), judged(0), started(1))
    assert [a.index for a in run.unfinished] == [1]
    assert run.spent.attempts == 1
    store.append(run.id, started(1))
    store.append(run.id, judged(1))
    again = store.run(run.id)
    assert again.unfinished == () and len(again.attempts) == 2


def test_an_infrastructure_failure_spends_no_attempt(store: Store) -> None:
    verdict = samples.failed(
        "bench", None, samples.a_candidate("0"), outcome="errored", blame="device", reason="gone"
    )
    run = told(store, started(0), Judged(index=0, verdict=verdict, seconds=3.0))
    assert run.spent.attempts == 0 and run.spent.seconds == 3.0


def test_the_confirmed_verdict_replaces_the_screening_one(store: Store) -> None:
    confirmed = samples.passed(None, samples.a_candidate("0"), median_us=640.0)
    run = told(store, started(0), judged(0, median_us=600.0), Kept(index=0, verdict=confirmed))
    assert run.best is not None and run.best.verdict == confirmed


def test_the_best_is_the_one_kept_last_in_time(store: Store) -> None:
    run = told(store, started(0), started(1), judged(1), Kept(index=1), judged(0), Kept(index=0))
    assert run.best is not None and run.best.index == 0


def test_an_attempt_that_is_judged_anew_must_be_kept_anew(store: Store) -> None:
    run = told(store, started(0), judged(0), Kept(index=0), judged(0, median_us=700.0))
    assert run.best is None and store.runs()[0].best is None
    assert run.spent.seconds == 3.0 and run.spent.attempts == 1
    store.append(run.id, Kept(index=0))
    best = store.run(run.id).best
    assert best and best.verdict and best.verdict.measurement
    assert best.verdict.measurement.median_us == 700.0


def test_a_later_refutation_gives_the_lead_back(store: Store) -> None:
    run = told(
        store,
        *(started(0), judged(0), Kept(index=0), started(1), judged(1), Kept(index=1)),
        judged(1, "refuted"),
    )
    assert run.best is not None and run.best.index == 0
    (summary,) = store.runs()
    assert summary.best == 0 and summary.passed == 1


def test_a_run_goes_on_after_its_end_when_it_is_resumed(store: Store) -> None:
    run = told(
        store, started(0), judged(0), Done(reason="budget", message="20 attempts"), started(1)
    )
    assert run.reason is None and run.message == ""
    assert store.runs()[0].state == "going"


@pytest.mark.parametrize(
    ("before", "event", "says"),
    [
        ((), judged(0), "never started"),
        ((), Kept(index=0), "never started"),
        ((started(0),), Kept(index=0), "did not pass"),
        ((started(0), judged(0, "refuted")), Kept(index=0), "did not pass"),
        ((started(0), judged(0)), started(0), "started again"),
        ((started(0, "other"),), judged(0), "another candidate"),
        ((), samples.a_creation(), "begins once"),
    ],
)
def test_what_cannot_follow_is_refused_and_leaves_the_run_whole(
    store: Store, before: tuple[Event, ...], event: Event, says: str
) -> None:
    run = told(store, *before)
    with pytest.raises(HarnessError, match=says):
        store.append(run.id, event)
    assert store.run(run.id) == run


EVENTS = st.lists(
    st.one_of(
        st.integers(0, 3).map(started),
        st.tuples(st.integers(0, 3), st.sampled_from(["passed", "refuted"])).map(
            lambda a: judged(*a)
        ),
        st.integers(0, 3).map(lambda index: Kept(index=index)),
        st.just(Done(reason="plateau")),
        st.just(Hinted(text="try harder")),
    ),
    max_size=24,
)


@given(events=EVENTS)
@settings(max_examples=60, deadline=None)
def test_whatever_was_accepted_folds_and_is_summed_up_alike(events: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        run_id = store.create_run(samples.a_creation())
        kept: list[Event] = []
        for event in events:
            try:
                store.append(run_id, event)
            except HarnessError:
                continue
            kept.append(event)
        run = store.run(run_id)
        assert list(store.events(run_id))[1:] == kept
        assert _summed(run) == store.runs()[0].model_copy(update={"touched": ""})


def _summed(run: Run) -> RunSummary:
    verdicts = [a.verdict for a in run.attempts if a.verdict]
    best = run.best.verdict if run.best else None
    return RunSummary(
        id=run.id,
        task=run.task.name,
        target=run.target,
        created=run.created,
        touched="",
        state=run.reason or "going",
        attempts=len(verdicts),
        passed=sum(v.outcome == "passed" for v in verdicts),
        best=run.best.index if run.best else None,
        speedup={n: s.ratio for n, s in best.measurement.speedup.items()}
        if best and best.measurement
        else {},
        attained=best.roofline.attained if best and best.roofline else None,
        seconds=sum(a.seconds for a in run.attempts),
    )


def test_runs_are_listed_newest_first(store: Store) -> None:
    made = [store.create_run(samples.a_creation()) for _ in range(3)]
    assert [line.id for line in store.runs()] == made[::-1]


def test_a_kept_attempt_without_figures_is_summed_up_without_them(store: Store) -> None:
    verdict = samples.passed(None, samples.a_candidate("0"), measured=False)
    told(store, started(0), Judged(index=0, verdict=verdict), Kept(index=0))
    (line,) = store.runs()
    assert (line.best, line.speedup, line.attained) == (0, {}, None)


def test_ids_are_found_by_their_beginning_and_by_their_last_word(store: Store) -> None:
    first = store.create_run(samples.a_creation())
    second = store.create_run(samples.a_creation(samples.a_task(name="3_LayerNorm (wide)")))
    assert second.startswith("20260301-3-layernorm-wide-")
    assert store.run(second[:12]).id == second
    assert store.run(first.rsplit("-", 1)[1]).id == first
    with pytest.raises(UsageError, match="means 2 runs") as several:
        store.run("20260301")
    assert first in str(several.value) and second in str(several.value)


def test_an_unknown_run_is_answered_with_the_nearest(store: Store) -> None:
    with pytest.raises(UsageError, match="the store is empty"):
        store.run("softmax")
    run_id = store.create_run(samples.a_creation())
    typo = run_id.replace("softmax", "sotfmax")
    with pytest.raises(UsageError, match=run_id):
        store.events(typo)
    with pytest.raises(UsageError, match=run_id):
        store.run("")
    with pytest.raises(HarnessError, match="no run"):
        store.append("softmax", Hinted(text="lost"))


def test_the_memory_keeps_the_last_value(store: Store) -> None:
    assert store.recall("baseline", "k") is None
    store.remember("baseline", "k", {"eager": [1.5, None, "µs"]})
    store.remember("ceiling", "k", 3)
    store.remember("baseline", "k", {"eager": (2.5,)})
    assert store.recall("baseline", "k") == {"eager": [2.5]}
    assert store.recall("ceiling", "k") == 3


def test_text_that_no_utf8_can_hold_does_not_stop_a_run(store: Store) -> None:
    verdict = samples.failed(
        "run", None, samples.a_candidate("0"), reason="\ud800 broke", traceback="\udfff"
    )
    run = told(store, started(0), Judged(index=0, verdict=verdict), Hinted(text="\ud83d?"))
    assert run.attempts[0].verdict is not None
    assert run.attempts[0].verdict.rung("run").reason == "\ufffd broke"
    assert run.hints == ("\ufffd?",)


def test_threads_may_write_to_one_store(store: Store) -> None:
    run_id = store.create_run(samples.a_creation())

    def write(start: int) -> None:
        for index in range(start, start + 5):
            store.append(run_id, started(index))
            store.append(run_id, judged(index))

    threads = [threading.Thread(target=write, args=(start,)) for start in (0, 5, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run = store.run(run_id)
    assert [a.index for a in run.attempts] == list(range(15)) and not run.unfinished
