"""Proposer `scripted`: given candidates, in order. Also what `optimize --from` starts with."""

from __future__ import annotations

from collections.abc import Iterable

from toprung.errors import UsageError
from toprung.model.candidate import Candidate
from toprung.model.run import Attempt, Proposal
from toprung.model.task import Task

from .base import NothingToPropose, Proposer
from .settings import ProposerSettings


class Scripted:
    """Proposes each of `candidates` once. Those that are in the history are not proposed again."""

    name = "scripted"

    def __init__(self, candidates: Iterable[Candidate], note: str = "as given"):
        self._candidates = tuple(candidates)
        self._note = note

    @classmethod
    def create(cls, settings: ProposerSettings) -> Scripted:
        """The candidates of `settings.start`; raises `UsageError` when there are none."""
        if not settings.start:
            raise UsageError(
                "the proposer `scripted` has nothing to propose", hint="name kernels with --from"
            )
        return cls(settings.start)

    def propose(
        self, task: Task, history: tuple[Attempt, ...], hints: tuple[str, ...], count: int
    ) -> list[Proposal]:
        """The next `count` candidates that the history does not hold."""
        tried = {attempt.proposal.candidate.digest for attempt in history}
        left = [c for c in self._candidates if c.digest not in tried]
        if not left:
            raise NothingToPropose(
                f"all {len(self._candidates)} given candidates have been tried; "
                "give more, or choose another proposer"
            )
        return [
            Proposal(candidate=candidate, note=self._note, author=self.name)
            for candidate in left[:count]
        ]


class After:
    """Proposes what `first` has, then goes on with `then`, whose history holds the rest."""

    def __init__(self, first: Proposer, then: Proposer):
        self.name = then.name
        self._first = first
        self._then = then

    def propose(
        self, task: Task, history: tuple[Attempt, ...], hints: tuple[str, ...], count: int
    ) -> list[Proposal]:
        """At most `count` proposals of the first that has any."""
        try:
            return self._first.propose(task, history, hints, count)
        except NothingToPropose:
            return self._then.propose(task, history, hints, count)
