"""Names of runs: short, readable, and found by their beginning or their last word."""

from __future__ import annotations

import difflib
import re
import secrets
from collections.abc import Sequence

from toprung.errors import UsageError

# Neither vowels nor what looks alike: no words by accident, nothing misread.
_LETTERS = "bcdfghjkmnpqrstvwxz23456789"


def new_id(at: str, task: str) -> str:
    """A fresh id: day, task, five random letters, as in `20260301-softmax-k3f9q`."""
    day = re.sub(r"\D", "", at)[:8]
    name = re.sub(r"[^a-z0-9]+", "-", task.lower()).strip("-")[:24].strip("-")
    tail = "".join(secrets.choice(_LETTERS) for _ in range(5))
    return "-".join(part for part in (day, name, tail) if part)


def find(wanted: str, known: Sequence[str]) -> str:
    """The id that `wanted` means: itself, or the only one that begins or ends with it.

    Raises `UsageError` when none or several do, naming the nearest.
    """
    if wanted in known:
        return wanted
    found = [name for name in known if name.startswith(wanted) or name.endswith(f"-{wanted}")]
    if wanted and len(found) == 1:
        return found[0]
    if wanted and found:
        raise UsageError(
            f"{wanted!r} means {len(found)} runs: {_listed(found)}", hint="write more of its name"
        )
    if not known:
        raise UsageError(
            f"there is no run {wanted!r}: the store is empty",
            hint="start one with `toprung optimize`, or name another folder with --store",
        )
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.4) or known[:3]
    raise UsageError(
        f"there is no run {wanted!r}; the nearest: {_listed(near)}",
        hint="list them: `toprung runs`",
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
