"""The ladder as it is climbed: every rung on a line of its own as soon as it is decided."""

from __future__ import annotations

from itertools import pairwise

from rich.text import Text

from toprung.judge.ladder import RUNG_TABLE
from toprung.model.verdict import RungResult, Verdict
from toprung.outputs import figures
from toprung.outputs.text import one_line

from .screen import Screen, Waiting

MARKS = {
    "passed": ("✓", "green"),
    "refuted": ("✗", "bold red"),
    "errored": ("!", "bold magenta"),
    "skipped": ("–", "yellow"),
    "not_reached": ("·", "dim"),
}
FOLLOWING = {below.name: above.name for below, above in pairwise(RUNG_TABLE)}
FACTS_SHOWN = 3
FACT_LENGTH = 60
REASON_LENGTH = 400


def rung_line(result: RungResult) -> Text:
    """Mark, name, seconds, then the first facts or the reason."""
    mark, style = MARKS[result.status]
    line = Text(f"  {mark} ", style=style)
    line.append(
        f"{one_line(result.name, 20):<10}", style="bold" if result.status != "passed" else ""
    )
    took = (
        f"{result.seconds:6.1f} s" if result.status not in ("skipped", "not_reached") else " " * 8
    )
    line.append(f"{took}  ", style="dim")
    line.append(_said(result), style="" if result.status == "passed" else style)
    return line


def _said(result: RungResult) -> str:
    if result.status in ("skipped", "errored", "refuted"):
        word = "skipped: " if result.status == "skipped" else ""
        return word + one_line(result.reason or "", REASON_LENGTH)
    plain = [(k, v) for k, v in result.facts.items() if isinstance(v, str | int | float | bool)]
    plain.sort(key=lambda fact: "." in fact[0])  # facts of the whole before those of one part
    return "  ".join(
        one_line(f"{name} {figures.fact(name, value)}", FACT_LENGTH)
        for name, value in plain[:FACTS_SHOWN]
    )


class LadderView:
    """Shows one climb. Use it as a context; `shown` is the progress callback of a climb."""

    def __init__(self, screen: Screen, title: str):
        self._screen = screen
        self._title = title
        self._names: set[str] = set()
        self._waiting = Waiting(screen.people)

    def __enter__(self) -> LadderView:
        self._screen.line(Text(one_line(self._title), style="bold"))
        self._waiting.say(RUNG_TABLE[0].name)
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.close()

    def shown(self, result: RungResult) -> None:
        """A rung has been decided. A failure waits for the verdict, which says what may be told."""
        if result.status in ("passed", "skipped"):
            self._tell(result)
            self._waiting.say(FOLLOWING.get(result.name, "verdict"))

    def _tell(self, result: RungResult) -> None:
        if result.name not in self._names:
            self._names.add(result.name)
            self._screen.line(rung_line(result))

    def finish(self, verdict: Verdict) -> None:
        """Whatever progress did not tell: the failure, and the rungs that were not reached."""
        self._waiting.close()
        for result in verdict.rungs:
            if result.status != "not_reached":
                self._tell(result)
        left = [rung.name for rung in verdict.rungs if rung.status == "not_reached"]
        if left:
            why = "not asked" if verdict.outcome == "passed" else "not reached"
            self._screen.line(Text(f"  · {why}: {', '.join(left)}", style="dim"))
