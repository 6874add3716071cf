"""Proposer: whatever turns a task and its history into the next candidates."""

from __future__ import annotations

from typing import Protocol

from toprung.model.run import Attempt, Proposal
from toprung.model.task import Task


class NothingToPropose(Exception):
    """The proposer has no (further) candidate; the message says why and what to do next."""


class Proposer(Protocol):
    """Returns batches of candidates and never touches a pool."""

    name: str

    def propose(
        self, task: Task, history: tuple[Attempt, ...], hints: tuple[str, ...], count: int
    ) -> list[Proposal]:
        """At most `count` new proposals, best first; raises `NothingToPropose` at the end.

        `history` holds every attempt of the run so far with its verdict, so that a proposer can be
        stopped and built anew at any time.
        """
        ...
