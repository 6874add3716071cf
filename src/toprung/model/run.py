"""Run: the attempts on one task under one goal and one budget, told as events."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .budget import Budget, Spent
from .candidate import Candidate
from .task import Task
from .value import Text, Value
from .verdict import Verdict

StopReason = Literal["goal", "budget", "plateau", "stopped"]

VERIFY = "verify"
"""The proposer of a run in which a person had one candidate verified."""


class Goal(Value):
    """When a run may stop: an attained fraction of the roofline."""

    attained: Annotated[float, Field(gt=0)] = 0.9


class Proposal(Value):
    """A candidate, the digest of the candidate it grew from, and its author's note."""

    candidate: Candidate
    parent: str | None = None
    note: Text = ""
    author: Text = ""


class Attempt(Value):
    """A proposal and its verdict; `verdict` is `None` while it climbs."""

    index: Annotated[int, Field(ge=0)]
    proposal: Proposal
    verdict: Verdict | None = None
    kept: bool = False
    seconds: Annotated[float, Field(ge=0)] = 0.0
    """Wall time of its climbs."""

    @model_validator(mode="after")
    def _one_candidate(self) -> Attempt:
        if self.kept and (self.verdict is None or self.verdict.outcome != "passed"):
            raise ValueError(f"attempt {self.index} is kept, but did not pass")
        if self.verdict and self.verdict.candidate.digest != self.proposal.candidate.digest:
            raise ValueError(f"attempt {self.index} has the verdict of another candidate")
        return self

    @property
    def counts(self) -> bool:
        """Whether it spends the budget: it has a verdict, and neither harness nor device failed."""
        return self.verdict is not None and self.verdict.blame not in ("harness", "device")


class Run(Value):
    """What is known of a run, rebuilt from its events alone."""

    schema_: Literal["toprung.run/1"] = Field(default="toprung.run/1", alias="schema")
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
    """By index, which need not be the order in which they were judged."""
    kept: tuple[int, ...] = ()
    """Indices of the kept attempts, in the order in which they were kept."""
    hints: tuple[Text, ...] = ()
    reason: StopReason | None = None
    """Why the run ended; `None` while it goes on or when it was killed."""
    message: Text = ""
    """The same in plain words."""

    @model_validator(mode="after")
    def _attempts_agree(self) -> Run:
        indices = [attempt.index for attempt in self.attempts]
        if indices != sorted(set(indices)):
            raise ValueError("attempts must be in order, each once")
        if sorted(self.kept) != [a.index for a in self.attempts if a.kept]:
            raise ValueError(f"kept is {self.kept}, which the attempts do not say")
        return self

    @property
    def best(self) -> Attempt | None:
        """The attempt that was kept last: the best so far."""
        return next((a for a in self.attempts if self.kept and a.index == self.kept[-1]), None)

    @property
    def unfinished(self) -> tuple[Attempt, ...]:
        """Attempts without a verdict. Once the run is known to be dead, they are to be tried again."""
        return tuple(attempt for attempt in self.attempts if attempt.verdict is None)

    @property
    def spent(self) -> Spent:
        """Attempts that count and seconds of climbing; what a proposer cost is not known here."""
        counted = [attempt for attempt in self.attempts if attempt.counts]
        return Spent(attempts=len(counted), seconds=sum(a.seconds for a in self.attempts))
