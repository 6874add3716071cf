"""What a call costs the judge itself, measured on a kernel that does nothing.

A `null` candidate goes the way of every candidate: same arena, same messages, same freezing, same
copying of outputs. What the judge sees beyond the child's own reading of that call is overhead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from toprung.judge.clock.statistics import median_interval
from toprung.judge.sandbox.exchange import Exchange
from toprung.judge.sandbox.session import Session
from toprung.model.candidate import Candidate

CALLS = 25
WARM_UP = 3
NULL = Candidate(files={"kernel.null": "{}"}, main="kernel.null", dsl="null")


@dataclass(frozen=True)
class Calibration:
    """`overhead_us` is the judge's median overhead; `resolution_us` how well that is known.

    `most_us` is the most that was seen of it.
    """

    overhead_us: float
    resolution_us: float
    most_us: float

    def credited(self, child_us: list[float], judge_us: list[float]) -> list[float]:
        """The child's samples, lengthened where the judge saw more time than they admit to.

        Nobody is credited with less than the judge's median time less its overhead and resolution.
        """
        seen = median(judge_us) - self.overhead_us - self.resolution_us
        missing = max(0.0, seen - median(child_us))
        return [sample + missing for sample in child_us]


def calibrate(exchange: Exchange, case: int, start: Callable[[], Session]) -> Calibration:
    """Measure on `case`; `start` gives a fresh process, which is ended here."""
    session = start()
    try:
        session.load(NULL, "null", "cpu:native", 30)
        exchange.bring_up(session, train=False, timeout=30)
        content = exchange.stage(case)
        outcomes = [exchange.call(session, content) for _ in range(WARM_UP + CALLS)][WARM_UP:]
        exchange.forget(content)
    finally:
        session.close()
    beyond = [outcome.judge_us - outcome.child_us for outcome in outcomes]
    middle, low, high = median_interval(beyond, 0.1)
    return Calibration(overhead_us=middle, resolution_us=(high - low) / 2, most_us=max(beyond))
