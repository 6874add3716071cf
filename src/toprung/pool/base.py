"""Pool: where ladders climb."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from toprung.model.candidate import Candidate
from toprung.model.climb import ClimbOptions
from toprung.model.task import Task
from toprung.model.verdict import RungResult, Verdict

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
