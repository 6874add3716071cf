"""Run: the attempts on one task under one goal and one budget, told as events."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .budget import Budget
from .candidate import Candidate
from .task import Task
from .value import Value
from .verdict import Verdict

StopReason = Literal["goal", "budget", "plateau", "stopped"]


class Goal(Value):
    """When a run may stop: an attained fraction of the roofline."""

    attained: Annotated[float, Field(gt=0)] = 0.9


class Proposal(Value):
    """A candidate, the digest of the candidate it grew from, and its author's note."""

    candidate: Candidate
    parent: str | None = None
    note: str = ""
    author: str = ""


class Attempt(Value):
    """A proposal and its verdict; `verdict` is `None` while it climbs."""

    index: Annotated[int, Field(ge=0)]
    proposal: Proposal
    verdict: Verdict | None = None
    kept: bool = False


class Run(Value):
    """What is known of a run, rebuilt from its events alone."""

    schema_: Literal["toprung.run/1"] = Field("toprung.run/1", alias="schema")
    id: str
    task: Task
    goal: Goal
    budget: Budget
    created: str
    """UTC, ISO 8601."""
    target: str
    proposer: str
    strategy: str
    seed: int | None = None
    attempts: tuple[Attempt, ...] = ()
    reason: StopReason | None = None
    """Why the run ended; `None` while it goes on or when it was killed."""

    @property
    def best(self) -> Attempt | None:
        """The attempt that was kept last: the best so far."""
        return next((a for a in reversed(self.attempts) if a.kept), None)
