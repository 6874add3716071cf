"""Confirmation: fresh processes in pairs, in ABBA order, on content that both sides share.

Samples of one process are correlated, and what differs from process to process (where memory lies,
how threads were placed) is as large as the noise within. So "faster" is decided over processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toprung.judge.clock.statistics import paired_speedup
from toprung.judge.sandbox.exchange import Exchange, Outcome
from toprung.judge.sandbox.session import Session
from toprung.model.measurement import Speedup

from .calibration import Calibration
from .samples import WARM_UP, checked_call

ROUNDS = 6
"""Processes a side."""
CALLS = 5
"""Counted calls a process."""


@dataclass(frozen=True)
class Confirmation:
    """`speedup` of the candidate over the baseline, resampled over processes."""

    speedup: Speedup
    baseline_us: list[list[float]]
    candidate_us: list[list[float]]


def confirm(
    exchange: Exchange,
    case: int,
    start_baseline: Callable[[], Session],
    start_candidate: Callable[[], Session],
    calibration: Calibration,
) -> Confirmation:
    """Time both sides; `start_…` bring up a fresh process each, which is ended here."""
    times: dict[str, list[list[float]]] = {"baseline": [], "candidate": []}
    for number in range(ROUNDS):
        pair = {"baseline": start_baseline(), "candidate": start_candidate()}
        order = list(pair) if number % 2 == 0 else list(pair)[::-1]
        try:
            rounds = _round(exchange, case, pair, order)
        finally:
            for session in pair.values():
                session.close()
        for side, outcomes in rounds.items():
            child = [outcome.child_us for outcome in outcomes]
            judge = [outcome.judge_us for outcome in outcomes]
            times[side].append(calibration.credited(child, judge))
    speedup = paired_speedup(times["baseline"], times["candidate"], calibration.resolution_us)
    return Confirmation(speedup, times["baseline"], times["candidate"])


def _round(
    exchange: Exchange, case: int, pair: dict[str, Session], order: list[str]
) -> dict[str, list[Outcome]]:
    outcomes: dict[str, list[Outcome]] = {side: [] for side in pair}
    for number in range(WARM_UP + CALLS):
        content = exchange.stage(case)
        for side in order if number % 2 == 0 else order[::-1]:
            outcome = checked_call(exchange, pair[side], content)
            if number >= WARM_UP:
                outcomes[side].append(outcome)
        exchange.forget(content)
    return outcomes
