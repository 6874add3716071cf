"""A verdict in a few lines for a person: the outcome, the figures, and what next."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from toprung.model.measurement import Measurement
from toprung.model.verdict import Verdict
from toprung.outputs.text import clean

from . import units

STYLES = {"passed": "green", "refuted": "red", "errored": "magenta"}
NEAR_THE_TOP = 0.9
"""Attained fraction from which on little is left to gain."""


def verdict_panel(verdict: Verdict, feedback: str, what_next: str) -> RenderableType:
    """The summary; `feedback` is shown when the candidate or the machine failed."""
    parts: list[RenderableType] = [Text(headline(verdict), style=f"bold {STYLES[verdict.outcome]}")]
    if verdict.measurement:
        parts += ["", timing_table(verdict.measurement)]
    if verdict.roofline:
        parts += ["", Text(roofline_line(verdict))]
    if verdict.outcome != "passed" and feedback:
        parts += ["", Text(clean(feedback).strip())]
    parts += ["", Text(f"What next: {what_next}", style="bold")]
    title = f"{clean(verdict.task.name)} · {clean(verdict.candidate.dsl or '?')} · {verdict.target}"
    return Panel(
        Group(*parts), title=title, title_align="left", border_style=STYLES[verdict.outcome]
    )


def headline(verdict: Verdict) -> str:
    """One sentence: how it ended and how far up."""
    failed = verdict.failed_rung
    if verdict.outcome == "passed":
        return f"Passed up to {verdict.height}{_left_open(verdict)}."
    where = f" at {clean(failed.name)}" if failed else ""
    if verdict.outcome == "refuted":
        return f"Refuted{where}."
    return f"No verdict{where}: the {verdict.blame} is at fault, not the candidate."


def _left_open(verdict: Verdict) -> str:
    """The rungs above the highest passed one, which nobody could ask here."""
    names = [clean(rung.name) for rung in verdict.rungs]
    above = verdict.rungs[names.index(verdict.height or "") + 1 :]
    skipped = [rung.name for rung in above if rung.status == "skipped"]
    return f"; not asked: {', '.join(skipped)}" if skipped else ""


def timing_table(measurement: Measurement) -> Table:
    """The candidate beside what it was timed against."""
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("", "median", "interval", "speed-up of the candidate"):
        table.add_column(column)
    table.add_row("candidate", units.time_us(measurement.median_us), _interval(measurement.ci_us))
    for name, timing in measurement.baselines.items():
        speedup = measurement.speedup.get(name)
        said = units.times(speedup) + ("" if speedup is None or speedup.faster else " not faster")
        table.add_row(clean(name), units.time_us(timing.median_us), _interval(timing.ci_us), said)
    if not measurement.confirmed:
        table.caption = "Not confirmed in fresh paired rounds: take no speed-up from this."
        table.caption_justify = "left"
    return table


def _interval(ci_us: tuple[float, float]) -> str:
    return f"{units.time_us(ci_us[0])} {units.DASH} {units.time_us(ci_us[1])}"


def roofline_line(verdict: Verdict) -> str:
    """How near the top, and what the bound is."""
    roof = verdict.roofline
    if roof is None:
        return ""
    return (
        f"{units.percent(roof.attained)} of the roofline: bound {units.time_us(roof.bound_us)} by "
        f"{roof.limiter}, {units.size(roof.min_bytes)} and {roof.flops:.3g} flop"
    )


def next_step(verdict: Verdict, task: str, candidate: str) -> str:
    """One thing to do next, as a command where there is one."""
    failed = verdict.failed_rung
    if verdict.outcome == "refuted" and failed:
        return f"mend it, then: toprung verify {task} {candidate} --upto {failed.name}"
    if verdict.outcome == "errored":
        if verdict.blame == "task":
            return f"mend the task {task}"
        return "toprung doctor says what this machine can do and how to get what is missing"
    return _after_passing(verdict, task, candidate)


def _after_passing(verdict: Verdict, task: str, candidate: str) -> str:
    if verdict.measurement is None and _left_open(verdict):
        return "toprung doctor says what the rungs that were not asked need"
    if verdict.measurement is None:
        return f"toprung verify {task} {candidate} climbs on and measures it"
    if verdict.roofline and verdict.roofline.attained >= NEAR_THE_TOP:
        return "it is near the roofline; more speed needs another algorithm or less work"
    return f"toprung optimize {task} --from {candidate} looks for a faster one"
