"""Events: what happens in a run, in order. A run is rebuilt from these alone."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, model_validator

from .budget import Budget
from .run import Goal, Proposal, StopReason
from .task import Task
from .value import Text, Value
from .verdict import Verdict


class Created(Value):
    """A run begins; `at` is UTC, ISO 8601."""

    event: Literal["created"] = "created"
    at: str
    task: Task
    goal: Goal
    budget: Budget
    target: str
    proposer: str
    strategy: str
    seed: int | None = None


class AttemptStarted(Value):
    """A proposal starts to climb; an attempt that has no verdict yet may start again."""

    event: Literal["attempt"] = "attempt"
    index: Annotated[int, Field(ge=0)]
    proposal: Proposal


class Judged(Value):
    """A climb has ended; `seconds` is its wall time. A later climb of the same attempt replaces it."""

    event: Literal["verdict"] = "verdict"
    index: Annotated[int, Field(ge=0)]
    verdict: Verdict
    seconds: Annotated[float, Field(ge=0)] = 0.0


class Kept(Value):
    """An attempt is the best so far; its confirmed verdict replaces the screening one."""

    event: Literal["kept"] = "kept"
    index: Annotated[int, Field(ge=0)]
    verdict: Verdict | None = None

    @model_validator(mode="after")
    def _passed(self) -> Kept:
        if self.verdict and self.verdict.outcome != "passed":
            raise ValueError(f"a candidate that was {self.verdict.outcome} cannot be kept")
        return self


class Hinted(Value):
    """A person steers."""

    event: Literal["hint"] = "hint"
    text: Text


class Done(Value):
    """A run has ended."""

    event: Literal["done"] = "done"
    reason: StopReason
    message: Text = ""
    """In plain words, why; for a proposer that cannot help, what to do next."""


Event = Annotated[
    Created | AttemptStarted | Judged | Kept | Hinted | Done, Field(discriminator="event")
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Parses and validates any event."""
