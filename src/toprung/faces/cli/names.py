"""Names on the command line, checked against the tables they come from."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from toprung.errors import UsageError


def check_name(kind: str, given: str, known: Iterable[str]) -> str:
    """`given` when it is among `known`; raises `UsageError` that names the nearest, and all."""
    names = list(known)
    if given in names:
        return given
    near = get_close_matches(given.lower(), names, n=1, cutoff=0.5)
    guess = f"did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"no {kind} is called {given!r}", hint=f"{guess}choose among: {', '.join(names)}"
    )


def split_names(given: Iterable[str]) -> list[str]:
    """Names of an option that takes `a,b` and may be repeated, in order, each once."""
    parts = (part.strip() for text in given for part in text.split(","))
    return list(dict.fromkeys(part for part in parts if part))
