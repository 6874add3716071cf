"""Budget: what a run may spend. Ceilings are hard and checked before spending."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .value import Value

Ceiling = Literal["attempts", "minutes", "usd"]


class Budget(Value):
    """Ceilings of a run; `None` is no ceiling."""

    attempts: Annotated[int, Field(ge=1)] | None = None
    minutes: Annotated[float, Field(gt=0)] | None = None
    usd: Annotated[float, Field(ge=0)] | None = None


class Spent(Value):
    """What a run has spent so far. Infrastructure failures spend no attempt."""

    attempts: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0)] = 0.0
    usd: Annotated[float, Field(ge=0)] = 0.0

    def exhausted(self, budget: Budget) -> Ceiling | None:
        """The first ceiling that leaves no room for another attempt, or `None`."""
        if budget.attempts is not None and self.attempts >= budget.attempts:
            return "attempts"
        if budget.minutes is not None and self.seconds >= budget.minutes * 60:
            return "minutes"
        if budget.usd is not None and self.usd > 0 and self.usd >= budget.usd:
            return "usd"
        return None
