"""The ladder as it is climbed: every rung on a line of its own as soon as it is decided."""

from __future__ import annotations

from rich.status import Status
from rich.text import Text

from toprung.model.verdict import RungResult, Verdict
from toprung.outputs.text import clean

from . import units
from .screen import Screen

MARKS = {
    "passed": ("✓", "green"),
    "refuted": ("✗", "bold red"),
    "errored": ("!", "bold magenta"),
    "skipped": ("–", "yellow"),
    "not_reached": ("·", "dim"),
}
FACTS_SHOWN = 3


def rung_line(result: RungResult) -> Text:
    """Mark, name, seconds, then the first facts or the reason."""
    mark, style = MARKS[result.status]
    line = Text(f"  {mark} ", style=style)
    line.append(f"{clean(result.name):<10}", style="bold" if result.status != "passed" else "")
    took = (
        f"{result.seconds:6.1f} s" if result.status not in ("skipped", "not_reached") else " " * 8
    )
    line.append(f"{took}  ", style="dim")
    line.append(_said(result), style="" if result.status == "passed" else style)
    return line


def _said(result: RungResult) -> str:
    if result.status in ("skipped", "errored", "refuted"):
        word = "skipped: " if result.status == "skipped" else ""
        return word + _first_line(result.reason or "")
    plain = [(k, v) for k, v in result.facts.items() if isinstance(v, str | int | float | bool)]
    plain.sort(key=lambda fact: "." in fact[0])  # facts of the whole before those of one part
    return clean("  ".join(units.fact(k, v) for k, v in plain[:FACTS_SHOWN]))


def _first_line(text: str) -> str:
    lines = clean(text).strip().splitlines()
    return lines[0] if lines else ""


class LadderView:
    """Shows one climb. Use it as a context; `shown` is the progress callback of a climb."""

    def __init__(self, screen: Screen, title: str):
        self._screen = screen
        self._title = title
        self._names: set[str] = set()
        self._waiting: Status | None = None

    def __enter__(self) -> LadderView:
        self._screen.line(Text(clean(self._title), style="bold"))
        if self._screen.people.is_terminal:
            self._waiting = self._screen.people.status("climbing", spinner_style="dim")
            self._waiting.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._waiting:
            self._waiting.stop()

    def shown(self, result: RungResult) -> None:
        """A rung has been decided."""
        if result.name in self._names or result.status == "not_reached":
            return
        self._names.add(result.name)
        self._screen.line(rung_line(result))

    def finish(self, verdict: Verdict) -> None:
        """Whatever progress did not tell: late rungs, and those that were not reached."""
        for result in verdict.rungs:
            self.shown(result)
        left = [rung.name for rung in verdict.rungs if rung.status == "not_reached"]
        if left:
            self._screen.line(Text(f"  · not reached: {', '.join(left)}", style="dim"))
