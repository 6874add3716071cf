"""Task: what is to be computed, and what may be assumed."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from .tensor import Precision
from .value import Json, Value, digest_of

Fraction = Annotated[float, Field(ge=0)]

FAMILIES = (
    "as_given",
    "heavy_tails",
    "mixed_scales",
    "large_offset",
    "position_coded",
    "zeros_and_ties",
    "special_values",
)
"""Input families, by name. `special_values` (inf and NaN) must be asked for."""

Family = Literal[
    "as_given",
    "heavy_tails",
    "mixed_scales",
    "large_offset",
    "position_coded",
    "zeros_and_ties",
    "special_values",
]


class Case(Value):
    """One set of shapes. `held_out` cases are checked and never shown to the proposer."""

    name: str = "default"
    args: dict[str, Json] = {}
    held_out: bool = False
    timed: bool = True
    """False: checked like any other, not timed; for odd and tiny shapes."""
    targets: tuple[str, ...] = ()
    """Target prefixes (`cuda`, `cpu`) where this case makes sense; empty is everywhere."""

    def fits(self, target: str) -> bool:
        """Whether this case is asked on `target`."""
        return not self.targets or any(target.startswith(prefix) for prefix in self.targets)


class Tolerance(Value):
    """How far a candidate may be from the truth; `None` leaves the preset's own number."""

    preset: Literal["strict", "kernelbench"] = "strict"
    rtol: Fraction | None = None
    atol_scale: Fraction | None = None
    min_psnr: float | None = None
    min_cosine: float | None = None


class Inputs(Value):
    """Which input families are tried: every one that keeps the inputs' structure, or a list."""

    families: Literal["all"] | tuple[Family, ...] = "all"

    @property
    def wanted(self) -> tuple[Family, ...]:
        """The families to try, `as_given` always among them and first."""
        if self.families == "all":
            return tuple(f for f in FAMILIES if f != "special_values")  # type: ignore[misc]
        return ("as_given", *(f for f in self.families if f != "as_given"))


class Rules(Value):
    """What the candidate may do."""

    library_calls: Literal["allow", "forbid"] = "allow"
    in_place: bool = False


class Weights(Value):
    """What matters to the user; shares, not necessarily summing to one."""

    latency: Fraction = 1.0
    throughput: Fraction = 0.0
    memory: Fraction = 0.0
    accuracy: Fraction = 0.0


class Objective(Value):
    """Weights and hard limits; a limit of 0 is no limit."""

    weights: Weights = Weights()
    max_peak_bytes: Annotated[int, Field(ge=0)] = 0
    max_error: Fraction = 0.0


class Task(Value):
    """A reference `Model` in PyTorch, its inputs, its cases, and the rules for candidates."""

    schema_: Literal["toprung.task/1"] = Field(default="toprung.task/1", alias="schema")
    name: Annotated[str, Field(min_length=1)]
    reference: Annotated[str, Field(min_length=1)]
    """Source of the Python module with `Model`, `get_inputs` and `get_init_inputs`."""
    path: str | None = None
    """Where the reference was read from; for messages only, no part of the digest."""
    precision: Precision | None = None
    """`None` takes the type of the floating inputs."""
    grad: tuple[str, ...] = ()
    train: bool = False
    description: str = ""
    cases: Annotated[tuple[Case, ...], Field(min_length=1)] = (Case(),)
    tolerance: Tolerance = Tolerance()
    inputs: Inputs = Inputs()
    rules: Rules = Rules()
    objective: Objective = Objective()
    vendor: str | None = None
    """Source of a candidate that is timed as a third baseline."""

    @field_validator("cases")
    @classmethod
    def _cases(cls, cases: tuple[Case, ...]) -> tuple[Case, ...]:
        names = [case.name for case in cases]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"case names must differ: {', '.join(twice)}")
        return cases

    @model_validator(mode="after")
    def _something_to_show(self) -> Task:
        if all(case.held_out for case in self.cases):
            raise ValueError("every case is held out: at least one must be open to the proposer")
        if not any(case.timed and not case.held_out for case in self.cases):
            raise ValueError("no open case is timed: at least one must be")
        return self

    @cached_property
    def digest(self) -> str:
        """Names the task by everything a verdict depends on (not by where it lies)."""
        return digest_of(
            self.model_dump(mode="json", by_alias=True, exclude={"path", "description"})
        )
