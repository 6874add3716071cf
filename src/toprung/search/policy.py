"""Policy: which candidate is kept, what counts as better, when a search has flattened out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from toprung.model.run import Attempt, Goal, Run
from toprung.model.value import Value
from toprung.model.verdict import Verdict

BASELINE = "eager"
"""What a kernel must be faster than to count as a success."""


class Policy(Value):
    """Rules over verdicts alone, so that the same history always leads to the same decision."""

    patience: Annotated[int, Field(ge=1)] = 12
    """A run has flattened out after this many counted attempts in a row without a new best."""
    confirmations: Annotated[int, Field(ge=0)] = 3
    """How many contenders are measured again in paired rounds before a run ends."""
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.01
    """A lower median counts when it is lower by this fraction, and by more than the resolution."""

    def better(self, new: Verdict, old: Verdict | None) -> bool:
        """Whether `new` takes the place of `old`: it passed, and its median is lower by more than
        the margin and the clock's resolution. A known time beats an unknown one.
        """
        if new.outcome != "passed":
            return False
        if old is None or old.outcome != "passed":
            return True
        if new.measurement is None or old.measurement is None:
            return new.measurement is not None and old.measurement is None
        gap = old.measurement.median_us - new.measurement.median_us
        return gap > max(
            self.margin * old.measurement.median_us,
            new.measurement.resolution_us,
            old.measurement.resolution_us,
        )

    def contender(self, attempts: Iterable[Attempt]) -> Attempt | None:
        """The attempt with the lowest median among those that passed; the earlier one on a tie."""
        best: Attempt | None = None
        for attempt in attempts:
            if attempt.verdict and self.better(attempt.verdict, best.verdict if best else None):
                best = attempt
        return best

    def flat(self, run: Run) -> bool:
        """Whether `patience` attempts have gone by since an attempt was kept, or since the start."""
        newest = max(run.kept, default=-1)
        since = sum(attempt.counts for attempt in run.attempts if attempt.index > newest)
        return since >= self.patience


def confirmed(verdict: Verdict | None) -> bool:
    """Whether the times of `verdict` come from paired rounds over several processes."""
    return bool(verdict and verdict.measurement and verdict.measurement.confirmed)


def faster(verdict: Verdict | None, baseline: str = BASELINE) -> bool:
    """Whether `verdict` confirms that the candidate is faster than `baseline`."""
    if verdict is None or verdict.outcome != "passed" or verdict.measurement is None:
        return False
    speedup = verdict.measurement.speedup.get(baseline)
    return speedup is not None and speedup.confirmed and speedup.faster


def attains(verdict: Verdict | None, goal: Goal) -> bool:
    """Whether `verdict` reaches the goal's fraction of the roofline."""
    if verdict is None or verdict.outcome != "passed" or verdict.roofline is None:
        return False
    return verdict.roofline.attained >= goal.attained
