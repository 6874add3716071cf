"""Pool `local`: climbs in this process's judge, one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from toprung.judge.judge import Judge
from toprung.judge.rungs.base import Rung
from toprung.model.candidate import Candidate
from toprung.model.climb import ClimbOptions
from toprung.model.task import Task
from toprung.model.verdict import Verdict

from .base import Progress


class LocalPool:
    """One device, one climb at a time: two would disturb each other's clock."""

    def __init__(self, judge: Judge, rungs: Sequence[Rung] = ()):
        self._judge = judge
        self._rungs = tuple(rungs)

    def climb(
        self,
        task: Task,
        candidates: Iterable[Candidate],
        options: ClimbOptions,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Candidate, Verdict]]:
        """Verdicts come in the order of the candidates."""
        for candidate in candidates:
            yield candidate, self._judge.climb(task, candidate, options, self._rungs, progress)

    def close(self) -> None:
        """End the judge."""
        self._judge.close()
