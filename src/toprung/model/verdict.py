"""Verdict: the results of one climb, rung by rung."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from toprung.errors import Blame, Exit

from .environment import Environment
from .measurement import Measurement
from .roofline import Roofline
from .value import Json, Text, Value

RungName = str
RUNGS: tuple[RungName, ...] = (
    "static",
    "compile",
    "run",
    "correct",
    "honest",
    "sanitize",
    "bench",
    "plausible",
    "profile",
    "roofline",
)
"""The built-in rungs, bottom first."""

Status = Literal["passed", "refuted", "errored", "skipped", "not_reached"]
Outcome = Literal["passed", "refuted", "errored"]

# A rung on the left holds only if the rung on the right held in the same climb.
NEEDS = {
    "run": "compile",
    "correct": "run",
    "honest": "correct",
    "bench": "correct",
    "plausible": "bench",
    "profile": "correct",
    "roofline": "bench",
}


class RungResult(Value):
    """One question asked of a candidate. Facts are small and flat; failures keep their text."""

    name: RungName
    status: Status = "not_reached"
    seconds: Annotated[float, Field(ge=0)] = 0.0
    facts: dict[Text, Json] = {}
    reason: Text | None = None
    traceback: Text | None = None

    @model_validator(mode="after")
    def _no_half_truth(self) -> RungResult:
        if self.status in ("refuted", "errored", "skipped") and not self.reason:
            raise ValueError(f"rung {self.name!r} is {self.status} without a reason")
        if self.status == "not_reached" and (self.facts or self.seconds):
            raise ValueError(f"rung {self.name!r} was not reached and cannot have facts")
        if self.traceback and self.status not in ("refuted", "errored"):
            raise ValueError(f"rung {self.name!r} is {self.status} with a traceback")
        return self


class TaskRef(Value):
    """The task a verdict is about."""

    name: str
    digest: str


class CandidateRef(Value):
    """The candidate a verdict is about; labels are suspicions, never verdicts."""

    digest: str
    dsl: str | None = None
    entry: str | None = None
    labels: tuple[Text, ...] = ()


class CaseResult(Value):
    """One case; a held-out case shows its outcome and nothing else."""

    name: str
    held_out: bool = False
    outcome: Outcome | None = None
    """`None` when the climb ended before the case was asked."""
    measurement: Measurement | None = None
    roofline: Roofline | None = None

    @model_validator(mode="after")
    def _held_out_stays_hidden(self) -> CaseResult:
        if self.held_out and (self.measurement or self.roofline):
            raise ValueError(f"held-out case {self.name!r} shows more than its outcome")
        return self


class Verdict(Value):
    """What `toprung verify --json` prints. Half-truths cannot be built."""

    schema_: Literal["toprung.verdict/1"] = Field(default="toprung.verdict/1", alias="schema")
    task: TaskRef
    candidate: CandidateRef
    target: str
    outcome: Outcome
    blame: Blame | None = None
    rungs: tuple[RungResult, ...]
    measurement: Measurement | None = None
    cases: tuple[CaseResult, ...] = ()
    roofline: Roofline | None = None
    environment: Environment
    seed: int | None = None
    """Set when the judge's secrets were fixed by the user, for debugging: such a verdict proves
    nothing to others."""

    @model_validator(mode="after")
    def _outcome_follows_from_rungs(self) -> Verdict:
        statuses = [rung.status for rung in self.rungs]
        if (self.blame is None) != (self.outcome == "passed"):
            raise ValueError(f"outcome {self.outcome!r} with blame {self.blame!r}")
        if self.outcome == "passed" and ("refuted" in statuses or "errored" in statuses):
            raise ValueError("passed, but a rung failed")
        if self.outcome == "passed" and "passed" not in statuses:
            raise ValueError("passed, but no rung did")
        if self.outcome == "refuted" and (
            statuses.count("refuted") != 1 or self.blame != "candidate"
        ):
            raise ValueError("refuted needs exactly one refuted rung, and the candidate's blame")
        if self.outcome == "errored":
            self._check_errored(statuses)
        return self

    def _check_errored(self, statuses: Sequence[str]) -> None:
        if self.blame == "candidate":
            raise ValueError("errored is never the candidate's blame")
        if "refuted" in statuses:
            raise ValueError("errored, but a rung refuted the candidate")
        missing = self.blame == "device" and "skipped" in statuses
        if "errored" not in statuses and not missing:
            raise ValueError("errored, but no rung did and none that was required was skipped")

    @model_validator(mode="after")
    def _rungs_stand_on_rungs(self) -> Verdict:
        names = [rung.name for rung in self.rungs]
        if len(set(names)) != len(names):
            raise ValueError("a rung appears twice")
        status = {rung.name: rung.status for rung in self.rungs}
        for upper, lower in NEEDS.items():
            if status.get(upper) == "passed" and status.get(lower) != "passed":
                raise ValueError(f"{upper!r} passed without {lower!r}")
        failed = False
        for rung in self.rungs:
            if failed and rung.status not in ("not_reached", "skipped"):
                raise ValueError(f"{rung.name!r} was asked after a rung had failed")
            failed = failed or rung.status in ("refuted", "errored")
        return self

    @model_validator(mode="after")
    def _cases_agree(self) -> Verdict:
        names = [case.name for case in self.cases]
        if len(set(names)) != len(names):
            raise ValueError("a case appears twice")
        outcomes = {case.outcome for case in self.cases} - {None, "passed"}
        if self.outcome == "passed" and outcomes:
            raise ValueError("passed, but a case did not")
        return self

    @model_validator(mode="after")
    def _figures_stand_on_rungs(self) -> Verdict:
        status = {rung.name: rung.status for rung in self.rungs}
        figures = [self, *self.cases]
        if any(f.measurement for f in figures) and status.get("bench") != "passed":
            raise ValueError("a measurement without a passed bench")
        if any(f.roofline for f in figures) and status.get("roofline") != "passed":
            raise ValueError("a roofline without a passed roofline rung")
        return self

    def rung(self, name: RungName) -> RungResult:
        """The result of the rung `name`; raises `KeyError` when the ladder had no such rung."""
        for result in self.rungs:
            if result.name == name:
                return result
        raise KeyError(name)

    @property
    def failed_rung(self) -> RungResult | None:
        """The rung that refuted or errored, if any."""
        return next((r for r in self.rungs if r.status in ("refuted", "errored")), None)

    @property
    def height(self) -> RungName | None:
        """The highest rung that passed."""
        return next((r.name for r in reversed(self.rungs) if r.status == "passed"), None)

    @property
    def exit_code(self) -> Exit:
        """0 passed, 1 refuted, 2 the task is wrong, 3 the harness or the device failed."""
        if self.outcome == "passed":
            return Exit.PASSED
        if self.outcome == "refuted":
            return Exit.REFUTED
        return Exit.WRONG if self.blame == "task" else Exit.FAILED
