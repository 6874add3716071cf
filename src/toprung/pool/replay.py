"""Pool `replay`: recorded verdicts by candidate, for tests and for studies of search strategies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from toprung.errors import HarnessError
from toprung.model.candidate import Candidate
from toprung.model.run import Run
from toprung.model.task import Task
from toprung.model.verdict import Verdict

from .base import ClimbOptions, Progress


class ReplayPool:
    """Answers from what was recorded; nothing runs.

    `screened` and `confirmed` map a candidate's digest to its verdict. With `options.confirm` the
    confirmed verdict is given where there is one. A candidate that nobody recorded is the
    harness's failure, since no verdict may be invented.
    """

    def __init__(
        self, screened: Mapping[str, Verdict], confirmed: Mapping[str, Verdict] | None = None
    ):
        self._screened = dict(screened)
        self._confirmed = dict(confirmed or {})

    @classmethod
    def of_runs(cls, runs: Iterable[Run]) -> ReplayPool:
        """Every verdict of `runs`; of a candidate in several runs, the last one counts."""
        screened: dict[str, Verdict] = {}
        confirmed: dict[str, Verdict] = {}
        for run in runs:
            for attempt in run.attempts:
                if attempt.verdict is None:
                    continue
                digest = attempt.proposal.candidate.digest
                measured = attempt.verdict.measurement
                kind = confirmed if measured and measured.confirmed else screened
                kind[digest] = attempt.verdict
        return cls(screened, confirmed)

    def climb(
        self,
        task: Task,
        candidates: Iterable[Candidate],
        options: ClimbOptions,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Candidate, Verdict]]:
        """The recorded verdict of every candidate, in order; its rungs are told to `progress`."""
        for candidate in candidates:
            verdict = self._recorded(candidate, options.confirm)
            if verdict.task.digest != task.digest:
                raise HarnessError(f"the verdict of {candidate.digest[:12]} is about another task")
            if progress:
                for rung in verdict.rungs:
                    progress(rung)
            yield candidate, verdict

    def close(self) -> None:
        """Nothing to end."""

    def _recorded(self, candidate: Candidate, confirm: bool) -> Verdict:
        order = (self._confirmed, self._screened) if confirm else (self._screened, self._confirmed)
        for verdicts in order:
            if candidate.digest in verdicts:
                return verdicts[candidate.digest]
        raise HarnessError(
            f"no verdict was recorded for candidate {candidate.digest[:12]}",
            hint="replay only runs whose candidates were all climbed",
        )
