"""Samples of one case in one process: fresh content each time, every output checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles

from toprung.errors import Refuted
from toprung.judge.clock.statistics import median_interval
from toprung.judge.sandbox.exchange import Content, Exchange, Outcome
from toprung.judge.sandbox.session import Session
from toprung.model.measurement import Timing

from .calibration import Calibration

WARM_UP = 3
"""Calls whose times are not counted and whose outputs are checked like any other."""


@dataclass(frozen=True)
class Samples:
    """Times of the counted calls, in microseconds, in order."""

    child_us: list[float]
    judge_us: list[float]
    busy_us: list[float]
    calibration: Calibration

    @property
    def credited_us(self) -> list[float]:
        """What counts: the child's reading, lengthened to what the judge saw."""
        return self.calibration.credited(self.child_us, self.judge_us)

    @property
    def wall_us(self) -> float:
        """The judge's median less its overhead."""
        return max(0.0, median(self.judge_us) - self.calibration.overhead_us)

    @property
    def hidden_us(self) -> float:
        """Time that the judge saw and the child did not admit to, in nearly every call.

        The tenth percentile over the calls, less the most that a call of nothing ever took besides:
        a busy machine delays some calls by much, a clock that lies is short in all of them.
        """
        beyond = [j - c for j, c in zip(self.judge_us, self.child_us, strict=True)]
        return quantiles(beyond, n=10)[0] - self.calibration.most_us

    @property
    def steady(self) -> bool:
        """Whether the median is known well enough to stand beside candidates of another day."""
        middle, low, high = median_interval(self.child_us)
        return high - low < middle / 4

    @property
    def timing(self) -> Timing:
        """Median and interval of what counts, the clock's resolution included."""
        middle, low, high = median_interval(self.credited_us, self.calibration.resolution_us)
        return Timing(median_us=middle, ci_us=(low, high))


def checked_call(
    exchange: Exchange, session: Session, content: Content, *, check: bool = True
) -> Outcome:
    """One call whose output must be right; raises `Refuted`. Without `check` it is only timed."""
    outcome = exchange.call(session, content)
    if not check:
        return outcome
    if not outcome.called.filled:
        raise Refuted("a timed call returned something else than the checked ones")
    checked = exchange.check(outcome)
    if not checked.ok:
        raise Refuted(
            f"a timed call gave a wrong result: {checked.why}",
            hint="every call gets content it has never seen: results cannot be kept or guessed",
        )
    return outcome


def sample(
    exchange: Exchange,
    session: Session,
    case: int,
    count: int,
    calibration: Calibration,
    cores: int,
    proceed: Callable[[], object],
    *,
    trusted: bool = False,
) -> Samples:
    """Warm up, then `count` timed calls; `proceed` is asked before each and may raise.

    Every output is checked; of `trusted` code, a baseline, those of the warm-up alone.
    """
    outcomes = []
    for number in range(WARM_UP + count):
        proceed()
        content = exchange.stage(case)
        check = not trusted or number < WARM_UP
        outcomes.append(checked_call(exchange, session, content, check=check))
        exchange.forget(content)
    return of_outcomes(outcomes[WARM_UP:], calibration, cores)


def of_outcomes(outcomes: list[Outcome], calibration: Calibration, cores: int) -> Samples:
    """The times of `outcomes`."""
    return Samples(
        child_us=[outcome.child_us for outcome in outcomes],
        judge_us=[outcome.judge_us for outcome in outcomes],
        busy_us=[
            min(outcome.child_us, outcome.called.cpu_ns / 1e3 / cores) for outcome in outcomes
        ],
        calibration=calibration,
    )
