"""What a rung is, and how a user adds one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toprung.errors import UsageError
from toprung.model.value import Json
from toprung.model.verdict import RUNGS, RungName

if TYPE_CHECKING:
    from .subject import Subject

Facts = dict[str, Json]
Check = Callable[["Subject"], Facts]


@dataclass(frozen=True)
class Rung:
    """A named question. `check` returns facts or raises `Refuted`; it runs in the judge."""

    name: RungName
    check: Check
    question: str
    refutes: str
    facts: str
    after: RungName | None = None
    """For a rung that a user adds: the built-in rung it comes behind."""
    optional: bool = False
    """Asked only on request."""


def rung(name: RungName, *, after: RungName = "correct") -> Callable[[Check], Rung]:
    """Decorator: makes a function into a rung behind the built-in rung `after`.

    The function gets the `Subject` (task, candidate, what lower rungs learnt) and returns a small
    flat dict of facts. Any exception refutes, with its traceback; raise `toprung.errors.Refuted`
    for a short message. It runs in the judge, on data and artefacts, never on candidate code. Its
    docstring's first line is the question. Name the file with `toprung verify --rungs FILE`, or
    offer the rung by the entry point group `toprung.rungs`.
    """
    if name in RUNGS:
        raise UsageError(f"a rung called {name!r} is built in", hint="choose another name")
    if after not in RUNGS:
        raise UsageError(f"no built-in rung is called {after!r}", hint=f"one of {', '.join(RUNGS)}")

    def wrap(check: Check) -> Rung:
        question = (check.__doc__ or name).strip().splitlines()[0]
        return Rung(name, check, question, "an exception", "what it returns", after=after)

    return wrap
