"""What a DSL owes: say whether it is here, check cheaply, load in the candidate's process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from toprung.model.candidate import Candidate
from toprung.model.value import Json, Value


class Availability(Value):
    """Whether a DSL can be used on this machine."""

    name: str
    version: str | None = None
    """`None` when it is not here."""
    targets: tuple[str, ...] = ()
    """Target prefixes it reaches from here."""
    missing: str | None = None
    """What is missing, in words."""
    install: str | None = None
    """A command that brings it."""


@dataclass(frozen=True)
class Loaded:
    """A candidate whose code has been loaded, in the candidate's own process."""

    entry: str
    """Name of what was found: `ModelNew`, `kernel`, a C function."""
    build: Callable[..., Any]
    """Called with the constructor arguments; returns what is called with the inputs."""
    is_module: bool
    """True when `build` returns a `torch.nn.Module` that holds its own parameters; otherwise the
    reference's parameters are passed by keyword."""
    facts: dict[str, Json] = field(default_factory=dict)


class Dsl(Protocol):
    """One language. `available`, `claims` and `precheck` run in the judge and never execute
    candidate code; `load` runs in the candidate's process."""

    name: str

    def available(self) -> Availability:
        """Whether it is here; never raises."""
        ...

    def claims(self, candidate: Candidate) -> bool:
        """Whether the source is in this language; a cheap look at the text."""
        ...

    def precheck(self, candidate: Candidate) -> None:
        """Raise `Refuted` for what can be seen without running anything."""
        ...

    def load(self, candidate: Candidate, folder: Path, target: str) -> Loaded:
        """Compile and load; `folder` holds the candidate's files. Raises `CompileError`."""
        ...
