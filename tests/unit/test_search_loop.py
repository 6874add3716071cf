"""The outer loop on recorded verdicts: what is kept, when it stops, and how it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from samples import a_candidate, a_creation, a_task, failed, passed
from toprung.errors import DeviceError, HarnessError, TaskError, Unavailable
from toprung.model.budget import Budget
from toprung.model.candidate import Candidate
from toprung.model.event import Event
from toprung.model.run import Attempt, Goal, Proposal
from toprung.model.task import Task
from toprung.model.verdict import Verdict
from toprung.pool.base import ClimbOptions, Progress
from toprung.pool.replay import ReplayPool
from toprung.proposers.base import NothingToPropose
from toprung.proposers.scripted import Scripted
from toprung.search.loop import SearchOptions, search
from toprung.search.policy import Policy, faster
from toprung.store.store import Store

pytestmark = pytest.mark.unit

TASK = a_task()
FAR = Goal(attained=5.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def candidates(count: int) -> list[Candidate]:
    return [a_candidate(str(index)) for index in range(count)]


def timed(candidate: Candidate, median_us: float, confirmed: bool = False) -> Verdict:
    return passed(TASK, candidate, median_us=median_us, confirmed=confirmed)


class Bench:
    """A pool that answers from a table, counts climbs, and can be told to misbehave."""

    def __init__(
        self,
        answers: dict[str, list[Verdict]],
        confirmed: dict[str, Verdict] | None = None,
        before: Callable[[int], None] = lambda climb: None,
    ):
        self.answers = {digest: list(verdicts) for digest, verdicts in answers.items()}
        self.confirmed = confirmed or {}
        self.climbs: list[tuple[str, bool, tuple[str, ...]]] = []
        self.before = before

    def climb(
        self,
        task: Task,
        candidates: Iterable[Candidate],
        options: ClimbOptions,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Candidate, Verdict]]:
        for candidate in candidates:
            self.before(len(self.climbs))
            self.climbs.append((candidate.digest, options.confirm, options.baselines))
            if options.confirm and candidate.digest in self.confirmed:
                yield candidate, self.confirmed[candidate.digest]
                continue
            answers = self.answers[candidate.digest]
            yield candidate, answers.pop(0) if len(answers) > 1 else answers[0]

    def close(self) -> None:
        pass


def begin(store: Store, **changes: object) -> str:
    fields = {"goal": FAR, "budget": Budget(attempts=20)}
    return store.create_run(a_creation(TASK, **(fields | changes)))


def climbing(medians: list[float], confirmed: list[float] | None = None) -> tuple[list, Bench]:
    """Candidates with these screened medians, and a bench that knows their confirmed ones."""
    made = candidates(len(medians))
    again = confirmed or medians
    return made, Bench(
        {c.digest: [timed(c, m)] for c, m in zip(made, medians, strict=True)},
        {c.digest: timed(c, m, confirmed=True) for c, m in zip(made, again, strict=True)},
    )


def test_keeps_what_is_faster_and_confirms_the_winner(store: Store) -> None:
    made, bench = climbing([900.0, 1000.0, 500.0, 700.0])
    told: list[Event] = []
    run = search(begin(store), store, bench, Scripted(made), on_event=told.append)
    assert run.reason == "plateau"
    assert "all 4 given candidates have been tried" in run.message
    assert run.best and run.best.index == 2
    assert faster(run.best.verdict)
    assert "confirmed faster" in run.message
    assert [c for c in bench.climbs if c[1]] == [(made[2].digest, True, ("eager", "compile"))]
    assert all(baselines == ("eager",) for _, confirm, baselines in bench.climbs if not confirm)
    kinds = [event.event for event in told]
    assert kinds[:6] == ["attempt", "verdict", "kept", "attempt", "verdict", "attempt"]
    assert kinds[-1] == "done"
    assert store.run(run.id) == run


def test_a_winner_that_falls_when_confirmed_gives_way(store: Store) -> None:
    made, bench = climbing([900.0, 500.0, 600.0], confirmed=[900.0, 800.0, 610.0])
    run = search(begin(store), store, bench, Scripted(made))
    assert run.best and run.best.index == 2
    assert faster(run.best.verdict)
    assert [digest for digest, confirm, _ in bench.climbs if confirm] == [
        made[1].digest,
        made[2].digest,
    ]


def test_a_winner_that_is_refuted_when_confirmed_is_not_kept(store: Store) -> None:
    made, bench = climbing([900.0, 500.0])
    bench.confirmed[made[1].digest] = failed("honest", TASK, made[1], reason="late writes")
    run = search(begin(store), store, bench, Scripted(made))
    assert run.best and run.best.index == 0
    assert run.attempts[1].verdict and run.attempts[1].verdict.outcome == "refuted"


def test_slower_than_eager_is_not_called_faster(store: Store) -> None:
    made, bench = climbing([5000.0])
    run = search(begin(store), store, bench, Scripted(made))
    assert run.best and not faster(run.best.verdict)
    assert "not confirmed faster than eager" in run.message


def test_nothing_is_confirmed_when_nobody_wants_it(store: Store) -> None:
    made, bench = climbing([900.0, 500.0])
    options = SearchOptions(climb=ClimbOptions(confirm=False))
    run = search(begin(store), store, bench, Scripted(made), options)
    assert run.best and run.best.index == 1
    assert not any(confirm for _, confirm, _ in bench.climbs)
    assert "not confirmed" in run.message


def test_a_pool_that_cannot_confirm_ends_all_the_same(store: Store) -> None:
    made, bench = climbing([900.0, 500.0])
    bench.confirmed.clear()
    run = search(begin(store, goal=Goal(attained=0.1)), store, bench, Scripted(made))
    assert run.reason == "plateau"
    assert len(bench.climbs) == 4
    assert not faster(run.best.verdict if run.best else None)


def test_refuted_candidates_are_never_kept(store: Store) -> None:
    made = candidates(2)
    bench = Bench({c.digest: [failed("correct", TASK, c)] for c in made})
    run = search(begin(store), store, bench, Scripted(made))
    assert run.best is None
    assert "No candidate passed." in run.message


def test_the_goal_ends_the_run_once_it_is_confirmed(store: Store) -> None:
    made, bench = climbing([1200.0, 530.0, 520.0, 400.0], confirmed=[1200.0, 900.0, 530.0, 400.0])
    run = search(begin(store, goal=Goal(attained=0.9)), store, bench, Scripted(made))
    assert run.reason == "goal"
    assert run.best and run.best.index == 2
    assert len(run.attempts) == 3


def test_the_budget_is_a_ceiling_for_batches_too(store: Store) -> None:
    made, bench = climbing([float(900 - i) for i in range(10)])
    options = SearchOptions(strategy="best_of_n")
    run = search(begin(store, budget=Budget(attempts=6)), store, bench, Scripted(made), options)
    assert run.reason == "budget"
    assert len(run.attempts) == 6


def test_no_attempt_fits_into_no_time(store: Store) -> None:
    made, bench = climbing([900.0])
    run_id = begin(store, budget=Budget(minutes=1e-9))
    run = search(run_id, store, bench, Scripted(made))
    assert run.reason == "budget"
    assert "minutes" in run.message
    assert not bench.climbs


def test_plateau_counts_attempts_without_a_new_best(store: Store) -> None:
    made, bench = climbing([900.0, 500.0] + [499.9] * 8)
    options = SearchOptions(policy=Policy(patience=3))
    run = search(begin(store), store, bench, Scripted(made), options)
    assert run.reason == "plateau"
    assert len(run.attempts) == 5
    assert run.best and run.best.index == 1


def test_errored_climbs_spend_nothing_and_are_tried_again(store: Store) -> None:
    made, bench = climbing([900.0, 500.0])
    broken = failed("bench", TASK, made[0], outcome="errored", blame="harness", reason="no clock")
    bench.answers[made[0].digest] = [broken, broken, timed(made[0], 900.0)]
    run = search(begin(store, budget=Budget(attempts=2)), store, bench, Scripted(made))
    assert [a.verdict.outcome for a in run.attempts if a.verdict] == ["passed", "passed"]
    assert run.spent.attempts == 2
    assert run.reason == "budget"


@pytest.mark.parametrize(
    ("blame", "error", "climbs"),
    [("harness", HarnessError, 3), ("device", DeviceError, 3), ("task", TaskError, 1)],
)
def test_errors_that_stay_end_the_run(
    store: Store, blame: str, error: type[Exception], climbs: int
) -> None:
    made, bench = climbing([900.0])
    broken = failed("run", TASK, made[0], outcome="errored", blame=blame, reason="it burns")
    bench.answers[made[0].digest] = [broken]
    run_id = begin(store)
    with pytest.raises(error, match="it burns"):
        search(run_id, store, bench, Scripted(made))
    assert len(bench.climbs) == climbs
    run = store.run(run_id)
    assert run.reason == "stopped"
    assert run.spent.attempts == (1 if blame == "task" else 0)


def test_what_a_pool_raises_is_recorded_and_raised(store: Store) -> None:
    made, bench = climbing([900.0, 800.0])

    def fail(climb: int) -> None:
        if climb == 1:
            raise DeviceError("the device fell off the bus")

    bench.before = fail
    run_id = begin(store)
    with pytest.raises(DeviceError):
        search(run_id, store, bench, Scripted(made))
    run = store.run(run_id)
    assert run.reason == "stopped" and "fell off the bus" in run.message
    assert run.spent.attempts == 1
    assert [a.index for a in run.unfinished] == [1]


def test_interruption_is_recorded_and_the_run_goes_on(store: Store) -> None:
    made, bench = climbing([900.0, 800.0, 700.0])

    def interrupt(climb: int) -> None:
        if climb == 1:
            raise KeyboardInterrupt

    bench.before = interrupt
    run_id = begin(store)
    stopped = search(run_id, store, bench, Scripted(made))
    assert stopped.reason == "stopped"
    assert [a.index for a in stopped.unfinished] == [1]
    bench.before = lambda climb: None
    run = search(run_id, store, bench, Scripted(made))
    assert run.reason == "plateau"
    assert [a.index for a in run.attempts] == [0, 1, 2]
    assert not run.unfinished
    assert run.best and run.best.index == 2
    screened = [digest for digest, confirm, _ in bench.climbs if not confirm]
    assert screened == [c.digest for c in made]  # what had a verdict is not climbed again


def test_asked_to_stop(store: Store) -> None:
    made, bench = climbing([900.0, 800.0])
    answers = iter([False, True])
    run = search(begin(store), store, bench, Scripted(made), should_stop=lambda: next(answers))
    assert run.reason == "stopped"
    assert len(run.attempts) == 1


def test_a_proposer_that_repeats_itself_has_nothing_left(store: Store) -> None:
    made, bench = climbing([900.0])

    class Parrot:
        name = "parrot"
        asked = 0

        def propose(
            self, task: Task, history: tuple[Attempt, ...], hints: tuple[str, ...], count: int
        ) -> list[Proposal]:
            self.asked += 1
            return [Proposal(candidate=made[0])]

    parrot = Parrot()
    run = search(begin(store), store, bench, parrot)
    assert run.reason == "plateau"
    assert parrot.asked == 4
    assert len(run.attempts) == 1


def test_hints_reach_the_proposer(store: Store) -> None:
    from toprung.model.event import Hinted

    seen: list[tuple[str, ...]] = []

    class Listener(Scripted):
        def propose(
            self, task: Task, history: tuple[Attempt, ...], hints: tuple[str, ...], count: int
        ) -> list[Proposal]:
            seen.append(hints)
            return super().propose(task, history, hints, count)

    made, bench = climbing([900.0, 800.0])
    run_id = begin(store)

    def on_event(event: Event) -> None:
        if event.event == "verdict" and event.index == 0:
            store.append(run_id, Hinted(text="one pass over the row"))

    search(run_id, store, bench, Listener(made), on_event=on_event)
    assert seen[0] == ()
    assert seen[1] == ("one pass over the row",)


def test_a_proposer_that_lacks_something_stops_the_run(store: Store) -> None:
    class Lacking(Scripted):
        def propose(
            self, task: Task, history: tuple[Attempt, ...], hints: tuple[str, ...], count: int
        ) -> list[Proposal]:
            raise Unavailable("no compiler", hint="install g++")

    run_id = begin(store)
    with pytest.raises(Unavailable):
        search(run_id, store, Bench({}), Lacking([]))
    assert store.run(run_id).reason == "stopped"


def test_a_recorded_run_replays_to_the_same_end(store: Store) -> None:
    made, bench = climbing([900.0, 500.0, 700.0])
    first = search(begin(store), store, bench, Scripted(made))
    again = search(begin(store), store, ReplayPool.of_runs([first]), Scripted(made))
    assert again.best and first.best
    assert again.best.proposal == first.best.proposal
    assert again.reason == first.reason


def test_replay_invents_nothing() -> None:
    pool = ReplayPool({})
    with pytest.raises(HarnessError, match="no verdict was recorded"):
        list(pool.climb(TASK, candidates(1), ClimbOptions()))


def test_replay_refuses_another_task() -> None:
    made = candidates(1)
    pool = ReplayPool({made[0].digest: timed(made[0], 900.0)})
    with pytest.raises(HarnessError, match="another task"):
        list(pool.climb(a_task(name="other"), made, ClimbOptions()))


def test_scripted_says_when_it_is_done() -> None:
    made = candidates(2)
    scripted = Scripted(made)
    first = scripted.propose(TASK, (), (), 1)
    history = (Attempt(index=0, proposal=first[0]),)
    assert scripted.propose(TASK, history, (), 5)[0].candidate == made[1]
    done = (*history, Attempt(index=1, proposal=Proposal(candidate=made[1])))
    with pytest.raises(NothingToPropose, match="all 2 given"):
        scripted.propose(TASK, done, (), 1)
