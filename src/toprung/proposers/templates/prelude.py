"""The pieces of C++ that kernels share; a kernel carries only those that it uses."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

MARK = "//: "


@cache
def pieces() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Name -> text and the names of the pieces that it needs, in the order of the file."""
    text = (files("toprung.proposers.templates") / "cpp" / "prelude.hpp").read_text(
        encoding="utf-8"
    )
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for block in text.split(f"\n{MARK}")[1:]:
        head, _, body = block.partition("\n")
        name, _, after = head.partition(" after ")
        needs = tuple(part.strip() for part in after.split(",") if part.strip())
        found[name.strip()] = (body.strip(), needs)
    return found


def text_of(names: Iterable[str]) -> str:
    """The pieces `names` and whatever they need, in the order of the file."""
    wanted: set[str] = set()
    waiting = ["common", *names]
    while waiting:
        name = waiting.pop()
        if name not in wanted and name in pieces():
            wanted.add(name)
            waiting += pieces()[name][1]
    return "\n\n".join(body for name, (body, _) in pieces().items() if name in wanted)
