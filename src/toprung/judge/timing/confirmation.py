"""Confirmation: fresh processes in pairs, in ABBA order, on content that both sides share.

Samples of one process are correlated, and what differs from process to process (where memory lies,
how threads were placed) is as large as the noise within. So "faster" is decided over processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from toprung.judge.clock.statistics import median_interval, paired_speedup
from toprung.judge.sandbox.exchange import Exchange, Outcome
from toprung.judge.sandbox.session import Session
from toprung.model.measurement import Speedup, Timing

from .calibration import Calibration
from .samples import WARM_UP, checked_call

ROUNDS = 6
"""Processes a side."""
CALLS = 3
"""Counted calls of a process on each case."""


@dataclass
class Paired:
    """Times of one case, in microseconds: a list for each process, a side each."""

    calibration: Calibration
    baseline_us: list[list[float]] = field(default_factory=list)
    candidate_us: list[list[float]] = field(default_factory=list)

    @property
    def timings(self) -> tuple[Timing, Timing]:
        """Baseline and candidate, over the calls of all processes, the resolution included."""
        baseline, candidate = (
            median_interval(
                [us for process in side for us in process], self.calibration.resolution_us
            )
            for side in (self.baseline_us, self.candidate_us)
        )
        return (
            Timing(median_us=baseline[0], ci_us=baseline[1:]),
            Timing(median_us=candidate[0], ci_us=candidate[1:]),
        )

    @property
    def speedup(self) -> Speedup:
        """Of the candidate over the baseline, decided over processes."""
        resolution = self.calibration.resolution_us
        found = paired_speedup(self.baseline_us, self.candidate_us, resolution, together=True)
        return found.model_copy(update={"confirmed": True})


def confirm(
    exchange: Exchange,
    calibrations: Mapping[int, Calibration],
    start_baseline: Callable[[], Session],
    start_candidate: Callable[[], Session],
    proceed: Callable[[], object],
) -> dict[int, Paired]:
    """Time both sides on every case in `calibrations`; `start_…` bring up a fresh process each.
    `proceed` is asked in between, and may raise."""
    found = {case: Paired(calibration) for case, calibration in calibrations.items()}
    for number in range(ROUNDS):
        pair: list[Session] = []
        try:
            for start in (start_baseline, start_candidate):
                pair.append(start())
            for case, paired in found.items():
                proceed()
                baseline, candidate = _round(exchange, case, pair, flip=bool(number % 2))
                paired.baseline_us.append(_credited(baseline, paired.calibration))
                paired.candidate_us.append(_credited(candidate, paired.calibration))
        finally:
            for session in pair:
                session.close()
    return found


def _round(
    exchange: Exchange, case: int, pair: list[Session], *, flip: bool
) -> tuple[list[Outcome], list[Outcome]]:
    """Calls in ABBA order; both sides get the same content, which neither has seen."""
    outcomes: tuple[list[Outcome], list[Outcome]] = ([], [])
    for number in range(WARM_UP + CALLS):
        content = exchange.stage(case)
        order = (0, 1) if flip == bool(number % 2) else (1, 0)
        for side in order:
            check = side == 1 or number < WARM_UP  # the baseline is trusted code
            outcome = checked_call(exchange, pair[side], content, check=check)
            if number >= WARM_UP:
                outcomes[side].append(outcome)
        exchange.forget(content)
    return outcomes


def _credited(outcomes: list[Outcome], calibration: Calibration) -> list[float]:
    child = [outcome.child_us for outcome in outcomes]
    return calibration.credited(child, [outcome.judge_us for outcome in outcomes])
