"""The outer loop: propose, climb, remember, keep or discard, until there is a reason to stop.

Every step is an event that is recorded before the next one begins, so a run that was killed loses
at most the climbs in flight. Decisions are made from the recorded run alone: a search that is
started again on the same run goes on where the other one ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Annotated

from pydantic import Field

from toprung.errors import DeviceError, HarnessError, TaskError, ToprungError
from toprung.model.event import AttemptStarted, Done, Event, Judged, Kept
from toprung.model.run import Attempt, Proposal, Run, StopReason
from toprung.model.value import Value
from toprung.model.verdict import Verdict
from toprung.pool.base import ClimbOptions, Pool, Progress
from toprung.proposers.base import NothingToPropose, Proposer

from . import strategy as strategies
from .policy import Policy, attains, confirmed
from .recorder import Recorder
from .summary import in_words

INFRASTRUCTURE_FAILURES = 3
"""So many errored climbs in a row end a run: the machine or the task needs a person."""

REPEATS = 3
"""So many rounds in a row without a new candidate mean that a proposer has nothing left."""


class SearchOptions(Value):
    """How a run is searched; what it may spend and what it aims at are part of the run itself."""

    climb: ClimbOptions = ClimbOptions()
    """How contenders are measured. With `confirm` false nothing is confirmed at the end."""
    screening_baselines: tuple[str, ...] = ("eager",)
    """Baselines beside a candidate that is only screened; those of `climb` come with confirmation."""
    strategy: str = strategies.DEFAULT
    policy: Policy = Policy()
    climbs_at_once: Annotated[int, Field(ge=1)] | None = None
    """Ceiling on candidates handed to the pool together; `None` leaves it to the strategy."""


def search(
    run_id: str,
    recorder: Recorder,
    pool: Pool,
    proposer: Proposer,
    options: SearchOptions | None = None,
    *,
    on_event: Callable[[Event], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Search on the run `run_id`, which must have been created, until there is a reason to stop.

    `on_event` is told every event right after it has been recorded; `should_stop` is asked between
    rounds. Interruption from the keyboard ends the run as `stopped`. Raises what a pool or a
    proposer raises, and `DeviceError` or `HarnessError` after three errored climbs in a row; the
    run can be resumed after either. The pool stays open.
    """
    tell = on_event or (lambda event: None)
    options = options or SearchOptions()
    loop = _Search(run_id, recorder, pool, proposer, options, tell=tell, progress=progress)
    try:
        reason, message = loop.attempts(should_stop or (lambda: False))
        if reason != "stopped":
            loop.confirm()
    except KeyboardInterrupt:
        reason, message = "stopped", "interrupted; resume it to go on"
    except ToprungError as failure:
        loop.finish("stopped", f"{failure.message}; resume the run once that is mended")
        raise
    return loop.finish(reason, message)


class _Search:
    """One sitting: the run as recorded so far, and what is true only while this process lives."""

    def __init__(
        self,
        run_id: str,
        recorder: Recorder,
        pool: Pool,
        proposer: Proposer,
        options: SearchOptions,
        *,
        tell: Callable[[Event], None],
        progress: Progress | None,
    ):
        self._id = run_id
        self._recorder = recorder
        self._pool = pool
        self._proposer = proposer
        self._options = options
        self._tell = tell
        self._progress = progress
        self._strategy = strategies.get(options.strategy)
        self._run = recorder.run(run_id)
        self._before_s = self._run.spent.seconds
        self._began = time.monotonic()
        self._errored = 0
        self._again: list[Attempt] = list(self._run.unfinished)
        self._measured_again: set[int] = set()

    def attempts(self, should_stop: Callable[[], bool]) -> tuple[StopReason, str]:
        """Rounds of attempts until there is a reason to stop; why, and in words."""
        repeated = 0
        while True:
            stop = ("stopped", "asked to stop") if should_stop() else self._why_stop()
            if stop:
                return stop
            if self._again:
                waiting, self._again = self._again, []
                self._climb_round(waiting)
                continue
            try:
                fresh = self._ask()
            except NothingToPropose as end:
                return "plateau", str(end)
            if not fresh:
                repeated += 1
                if repeated == REPEATS:
                    return "plateau", f"{self._proposer.name} proposes nothing new any more"
                continue
            repeated = 0
            self._climb_round(fresh)

    def confirm(self) -> None:
        """Measure the best again beside its baselines, and whoever takes its place if it falls."""
        policy = self._options.policy
        for _ in range(policy.confirmations):
            best = self._run.best
            if best is None or not self._can_confirm(best):
                break
            self._judge_again(best)
        # Whatever is still unconfirmed may not stand before what was confirmed.
        self._keep(policy.contender(a for a in self._run.attempts if confirmed(a.verdict)))

    def finish(self, reason: StopReason, message: str) -> Run:
        """Record the end."""
        self._record(Done(reason=reason, message=in_words(self._run, message)))
        return self._run

    def _why_stop(self) -> tuple[StopReason, str] | None:
        if self._goal_reached():
            return "goal", f"the goal of {self._run.goal.attained:.0%} of the roofline is reached"
        ceiling = self._spent_ceiling()
        if ceiling:
            return "budget", f"the budget is spent: {ceiling}"
        if not self._again and self._options.policy.flat(self._run):
            patience = self._options.policy.patience
            return "plateau", f"no better kernel in the last {patience} attempts"
        return None

    def _goal_reached(self) -> bool:
        """A screened best that reaches the goal is confirmed first; it may fall back."""
        best = self._run.best
        while best and attains(best.verdict, self._run.goal):
            if not self._can_confirm(best):
                return confirmed(best.verdict) or not self._options.climb.confirm
            self._judge_again(best)
            best = self._run.best
        return False

    def _can_confirm(self, attempt: Attempt) -> bool:
        """Whether paired rounds are wanted, are still to be run, and were not run in vain."""
        timed = attempt.verdict is not None and attempt.verdict.measurement is not None
        wanted = self._options.climb.confirm and not confirmed(attempt.verdict)
        return timed and wanted and attempt.index not in self._measured_again

    def _spent_ceiling(self) -> str | None:
        budget = self._run.budget
        seconds = self._before_s + time.monotonic() - self._began
        spent = self._run.spent.model_copy(update={"seconds": seconds})
        ceiling = spent.exhausted(budget)
        return f"{getattr(budget, ceiling):g} {ceiling}" if ceiling else None

    def _ask(self) -> list[Attempt]:
        """New attempts of one round; proposals that were tried before are dropped."""
        known = {attempt.proposal.candidate.digest for attempt in self._run.attempts}
        room = self._room()
        fresh: list[Attempt] = []
        for ask in self._strategy.plan(self._run):
            count = ask.count if room is None else min(ask.count, room - len(fresh))
            if count < 1:
                break
            proposals = self._proposer.propose(self._run.task, ask.history, self._run.hints, count)
            for proposal in proposals[:count]:
                if proposal.candidate.digest not in known:
                    known.add(proposal.candidate.digest)
                    fresh.append(self._attempt(proposal, len(fresh)))
        return fresh

    def _attempt(self, proposal: Proposal, offset: int) -> Attempt:
        last = max((attempt.index for attempt in self._run.attempts), default=-1)
        return Attempt(index=last + 1 + offset, proposal=proposal)

    def _room(self) -> int | None:
        """How many candidates may still climb together; at least one, or the loop had stopped."""
        ceilings = [self._options.climbs_at_once]
        if self._run.budget.attempts is not None:
            ceilings.append(self._run.budget.attempts - self._run.spent.attempts)
        return min((ceiling for ceiling in ceilings if ceiling is not None), default=None)

    def _climb_round(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            if attempt.verdict is None:
                self._record(AttemptStarted(index=attempt.index, proposal=attempt.proposal))
        options = self._options.climb.model_copy(
            update={"confirm": False, "baselines": self._options.screening_baselines}
        )
        for attempt, verdict, seconds in self._climb(attempts, options):
            self._record(Judged(index=attempt.index, verdict=verdict, seconds=seconds))
            if self._failed(verdict):
                self._again.append(attempt.model_copy(update={"verdict": verdict}))
                continue
            best = self._run.best
            if self._options.policy.better(verdict, best.verdict if best else None):
                self._record(Kept(index=attempt.index))

    def _judge_again(self, attempt: Attempt) -> None:
        """Climb a kept attempt with confirmation; it is kept again only if it still is the best."""
        self._measured_again.add(attempt.index)
        while True:
            ((_, verdict, seconds),) = self._climb([attempt], self._options.climb)
            if not self._failed(verdict):
                break
        self._record(Judged(index=attempt.index, verdict=verdict, seconds=seconds))
        self._keep(self._options.policy.contender(self._run.attempts))

    def _keep(self, attempt: Attempt | None) -> None:
        best = self._run.best
        if attempt and (best is None or attempt.index != best.index):
            self._record(Kept(index=attempt.index))

    def _climb(
        self, attempts: list[Attempt], options: ClimbOptions
    ) -> Iterator[tuple[Attempt, Verdict, float]]:
        waiting = {attempt.proposal.candidate.digest: attempt for attempt in attempts}
        candidates = [attempt.proposal.candidate for attempt in attempts]
        began = time.monotonic()
        for candidate, verdict in self._pool.climb(
            self._run.task, candidates, options, self._progress
        ):
            now = time.monotonic()
            attempt = waiting.pop(candidate.digest, None)
            if attempt is None:
                raise HarnessError("the pool returned a candidate that it was not given")
            yield attempt, verdict, now - began
            began = time.monotonic()
        if waiting:
            raise HarnessError(f"the pool returned no verdict for {len(waiting)} candidates")

    def _failed(self, verdict: Verdict) -> bool:
        """Whether nothing was learnt about the candidate; raises when that will not change."""
        if verdict.outcome != "errored":
            self._errored = 0
            return False
        self._errored += 1
        failed = verdict.failed_rung
        reason = failed.reason if failed and failed.reason else "a climb failed"
        details = failed.traceback if failed else None
        if verdict.blame == "task":
            raise TaskError(reason, details=details, hint="correct the task, then resume the run")
        if self._errored >= INFRASTRUCTURE_FAILURES:
            error = DeviceError if verdict.blame == "device" else HarnessError
            raise error(
                f"{INFRASTRUCTURE_FAILURES} climbs in a row failed, the last one with: {reason}",
                hint="`toprung doctor` says what stands on this machine",
                details=details,
            )
        return True

    def _record(self, event: Event) -> None:
        self._recorder.append(self._id, event)
        self._run = self._recorder.run(self._id)
        self._tell(event)
