"""A verdict in a few lines for a person: the outcome, the figures, and what next."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from toprung.model.measurement import Measurement, Timing
from toprung.model.roofline import Roofline
from toprung.model.verdict import Verdict
from toprung.outputs import figures
from toprung.outputs.claims import Claim, claim, name_of
from toprung.outputs.text import clean, one_line

STYLES = {"passed": "green", "refuted": "red", "errored": "magenta"}
RIGHT = "correct"
NEAR_THE_TOP = 0.9
"""Attained fraction from which on little is left to gain."""


def verdict_panel(verdict: Verdict, said: str, what_next: str | None) -> RenderableType:
    """The summary: figures of a verdict that passed, otherwise `said`, the feedback on it."""
    style = STYLES[verdict.outcome]
    if verdict.outcome == "passed":
        parts: list[RenderableType] = [Text(_headline(verdict), style=f"bold {style}")]
        if verdict.measurement:
            parts += ["", timing_table(verdict.measurement)]
        if verdict.roofline:
            parts += ["", Text(roofline_line(verdict.roofline))]
    else:
        parts = [Text(clean(said), style=style)]
    if what_next:
        parts += ["", Text(f"What next: {what_next}", style="bold")]
    about = (verdict.task.name, verdict.candidate.dsl or "unknown language", verdict.target)
    title = " · ".join(one_line(text, 40) for text in about)
    return Panel(Group(*parts), title=Text(title), title_align="left", border_style=style)


def _headline(verdict: Verdict) -> str:
    seeded = " With a seed of yours: this proves nothing to others." if verdict.seed else ""
    return f"Passed up to {verdict.height}{_left_open(verdict)}.{seeded}"


def _left_open(verdict: Verdict) -> str:
    """The rungs above the highest passed one, which nobody could ask here."""
    names = [rung.name for rung in verdict.rungs]
    above = verdict.rungs[names.index(verdict.height or "") + 1 :]
    skipped = [one_line(rung.name) for rung in above if rung.status == "skipped"]
    return f"; not asked: {', '.join(skipped)}" if skipped else ""


def timing_table(measured: Measurement) -> Table:
    """The candidate beside what it was timed against, and what may be said of that."""
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("", "median", "interval", "speed-up", ""):
        table.add_column(column)
    table.add_row("candidate", *_row(measured))
    for name, timing in measured.baselines.items():
        claimed = claim(measured, name)
        said = (with_interval(claimed), in_words(claimed)) if claimed else ()
        table.add_row(one_line(name_of(name), 20), *_row(timing), *said)
    return table


def _row(timing: Timing) -> tuple[str, str]:
    return figures.time_us(timing.median_us), figures.interval_us(timing)


def with_interval(claimed: Claim) -> str:
    """`2.33× (2.24–2.45×)`."""
    speedup = claimed.speedup
    return f"{figures.times(speedup.ratio)} ({figures.times_interval(speedup)})"


def in_words(claimed: Claim) -> str:
    """`faster`, and whether that is confirmed."""
    return claimed.word if claimed.confirmed else f"{claimed.word}, not confirmed"


def roofline_line(roof: Roofline) -> str:
    """How near the top, and what the bound is."""
    return (
        f"{figures.percent(roof.attained)} of the roofline. The bound is "
        f"{figures.time_us(roof.bound_us)}, set by {roof.limiter}: {figures.size(roof.min_bytes)} "
        f"to move, {figures.digits(roof.flops)} flop"
    )


def next_step(verdict: Verdict, task: str, candidate: str) -> str | None:
    """One thing to do next, as a command where there is one; `None` where feedback says it all."""
    if verdict.outcome == "errored":
        return None
    if verdict.outcome == "refuted":
        return f"once it is mended: toprung verify {task} {candidate}{_short_climb(verdict)}"
    if verdict.measurement is None and _left_open(verdict):
        return "toprung doctor says what the rungs that were not asked need"
    if verdict.measurement is None:
        return f"toprung verify {task} {candidate} climbs on and measures it"
    if verdict.roofline and verdict.roofline.attained >= NEAR_THE_TOP:
        return "it is near the roofline; more speed needs another algorithm or less work"
    return f"toprung optimize {task} --from {candidate} looks for a faster one"


def _short_climb(verdict: Verdict) -> str:
    """What keeps the next climb short while the candidate is not even right."""
    failed = verdict.failed_rung
    names = [rung.name for rung in verdict.rungs]
    wrong = failed and names.index(failed.name) <= names.index(RIGHT)
    return f" --upto {RIGHT}" if wrong else ""
