"""Strategy: how many candidates are asked for at a time, and which part of the history is shown.

A strategy is a pure function of the run, so that strategies can be compared on one recorded
history. It never sees a pool; the loop climbs what the proposer answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol

from toprung.errors import UsageError
from toprung.model.run import Attempt, Run

BUILT_IN = {
    "greedy": "toprung.search.strategy:Greedy",
    "best_of_n": "toprung.search.strategy:BestOfN",
}
"""Name -> `module:Class`. Other packages add theirs by the entry point group of `GROUP`."""

GROUP = "toprung.strategies"
DEFAULT = "greedy"


@dataclass(frozen=True)
class Ask:
    """One question to the proposer: the attempts it is shown, and how many proposals are wanted."""

    history: tuple[Attempt, ...]
    count: int


class Strategy(Protocol):
    """Decides what is asked next."""

    name: str

    def plan(self, run: Run) -> tuple[Ask, ...]:
        """The questions of the next round, at least one; their answers climb together."""
        ...


class Greedy:
    """One candidate at a time, each with everything that is known: right for a tuner that learns."""

    name = "greedy"

    def plan(self, run: Run) -> tuple[Ask, ...]:
        return (Ask(run.attempts, 1),)


class BestOfN:
    """Batches of `n` that climb together, which a pool of several devices can do at once."""

    name = "best_of_n"

    def __init__(self, n: int = 4):
        if n < 1:
            raise UsageError(f"best_of_n: a batch of {n} is no batch")
        self.n = n

    def plan(self, run: Run) -> tuple[Ask, ...]:
        return (Ask(run.attempts, self.n),)


def names() -> dict[str, str]:
    """Name -> `module:Class` of every strategy, plug-ins included."""
    return {**BUILT_IN, **{point.name: point.value for point in entry_points(group=GROUP)}}


def get(name: str) -> Strategy:
    """The strategy called `name`; raises `UsageError`."""
    known = names()
    if name not in known:
        raise UsageError(
            f"no strategy is called {name!r}", hint=f"choose among {', '.join(sorted(known))}"
        )
    module, _, cls = known[name].partition(":")
    return getattr(import_module(module), cls)()
