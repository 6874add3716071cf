"""Pool: where ladders climb."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from toprung.model.candidate import Candidate
from toprung.model.task import Task
from toprung.model.value import Value
from toprung.model.verdict import RungName, RungResult, Verdict


class ClimbOptions(Value):
    """How a climb is asked; part of what a scheduler sends to a pool."""

    target: str = "cpu:native"
    upto: RungName | None = None
    extra: tuple[RungName, ...] = ()
    """Optional rungs that are asked as well: `sanitize`, `profile`."""
    timeout_s: float = 150.0
    seed: int | None = None
    confirm: bool = True
    """Fresh paired rounds over several processes before "faster" is said."""
    baselines: tuple[str, ...] = ("eager", "compile")


Progress = Callable[[RungResult], None]


class Pool(Protocol):
    """Climbs candidates of one task; verdicts come back in any order, each with its candidate.

    A pool never raises for what a candidate does: that is in the verdict. What it raises
    (`TaskError`, `DeviceError`, `HarnessError`) ends the run and spends no attempt.
    """

    def climb(
        self,
        task: Task,
        candidates: Iterable[Candidate],
        options: ClimbOptions,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Candidate, Verdict]]:
        """Climb every candidate once."""
        ...

    def close(self) -> None:
        """End every process of this pool."""
        ...
