"""Events: what happens in a run, in order. A run is rebuilt from these alone."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from .budget import Budget
from .run import Goal, Proposal, StopReason
from .task import Task
from .value import Value
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
    """A proposal starts to climb."""

    event: Literal["attempt"] = "attempt"
    index: Annotated[int, Field(ge=0)]
    proposal: Proposal


class Judged(Value):
    """A climb has ended; `seconds` is its wall time."""

    event: Literal["verdict"] = "verdict"
    index: Annotated[int, Field(ge=0)]
    verdict: Verdict
    seconds: Annotated[float, Field(ge=0)] = 0.0


class Kept(Value):
    """An attempt is the best so far; its confirmed verdict replaces the screening one."""

    event: Literal["kept"] = "kept"
    index: Annotated[int, Field(ge=0)]
    verdict: Verdict | None = None


class Hinted(Value):
    """A person steers."""

    event: Literal["hint"] = "hint"
    text: str


class Done(Value):
    """A run has ended."""

    event: Literal["done"] = "done"
    reason: StopReason
    message: str = ""
    """In plain words, why; for a proposer that cannot help, what to do next."""


Event = Annotated[
    Created | AttemptStarted | Judged | Kept | Hinted | Done, Field(discriminator="event")
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Parses and validates any event."""
