"""A run as it happens: one line an attempt, a mark for the best so far, and a summary."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from toprung.model.event import AttemptStarted, Created, Done, Event, Hinted, Judged, Kept
from toprung.model.run import Run
from toprung.model.verdict import Verdict
from toprung.outputs import figures
from toprung.outputs.claims import claim
from toprung.outputs.text import clean, one_line
from toprung.search.policy import BASELINE

from .screen import Screen, Waiting
from .verdict_view import STYLES, in_words, roofline_line, timing_table, with_interval

MEASURED_AGAIN = "once more, beside its baselines in paired rounds"
NOTE_LENGTH = 70
COLUMNS = "{:>4}  {:<19} {:>8}  {:>8}  {:>8}  {}"


class RunView:
    """Shows the events of one run. Use it as a context; `shown` takes the events in order."""

    def __init__(self, screen: Screen, title: str):
        self._screen = screen
        self._title = title
        self._notes: dict[int, str] = {}
        self._verdicts: dict[int, Verdict] = {}
        self._waiting = Waiting(screen.people)

    def __enter__(self) -> RunView:
        self._screen.line(Text(one_line(self._title), style="bold"))
        head = COLUMNS.format("#", "outcome", "median", f"vs {BASELINE}", "roofline", "note")
        self._screen.line(Text(head, style="dim"))
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.close()

    def shown(self, event: Event) -> None:
        """An event has happened."""
        match event:
            case AttemptStarted():
                self._notes[event.index] = one_line(event.proposal.note, NOTE_LENGTH)
                self._waiting.say(f"attempt {event.index} climbs: {self._notes[event.index]}")
            case Judged():
                again = event.index in self._verdicts
                note = MEASURED_AGAIN if again else self._notes.get(event.index, "")
                self._verdicts[event.index] = event.verdict
                self._screen.line(attempt_line(event.index, event.verdict, note))
            case Kept():
                verdict = event.verdict or self._verdicts.get(event.index)
                self._screen.line(Text(f"      ▲ best so far: {_figures(verdict)}", style="green"))
            case Hinted():
                self._screen.line(Text(f"      hint: {one_line(event.text, 200)}", style="cyan"))
            case Created() | Done():  # told by the title and the summary
                pass

    def finish(self, run: Run, best_file: Path | None, what_next: str | None) -> None:
        """The run has ended."""
        self._waiting.close()
        self._screen.show(run_panel(run, best_file, what_next))


def attempt_line(index: int, verdict: Verdict, note: str) -> Text:
    """Index, outcome and rung, median, speed-up over eager, attained fraction, note."""
    failed = verdict.failed_rung
    outcome = (
        verdict.outcome if failed is None else f"{verdict.outcome} at {one_line(failed.name, 20)}"
    )
    measured, roof = verdict.measurement, verdict.roofline
    speedup = measured.speedup.get(BASELINE) if measured else None
    line = COLUMNS.format(
        index,
        outcome,
        figures.time_us(measured.median_us) if measured else "–",
        figures.times(speedup.ratio) if speedup else "–",
        figures.percent(roof.attained) if roof else "–",
        note,
    )
    return Text(line, style=STYLES[verdict.outcome] if failed else "")


def run_panel(run: Run, best_file: Path | None, what_next: str | None) -> RenderableType:
    """How a run ended, the best kernel, and what next."""
    judged = [a.verdict for a in run.attempts if a.verdict]
    passed = sum(verdict.outcome == "passed" for verdict in judged)
    parts: list[RenderableType] = [Text(clean(run.message or "Stopped."), style="bold")]
    if judged:
        parts.append(Text(f"{passed} of {len(judged)} candidates passed."))
    best = run.best
    if best is None or best.verdict is None:
        parts += ["", Text("No kernel was kept.", style="red")]
    else:
        parts += [
            "",
            Text(f"Best: attempt {best.index}, {one_line(best.proposal.note, NOTE_LENGTH)}"),
        ]
        if best_file:
            parts.append(Text(f"      {best_file}"))
        if best.verdict.measurement:
            parts += ["", timing_table(best.verdict.measurement)]
        if best.verdict.roofline:
            parts += ["", Text(roofline_line(best.verdict.roofline))]
    if what_next:
        parts += ["", Text(f"What next: {what_next}", style="bold")]
    style = "green" if best else "red"
    return Panel(Group(*parts), title=f"run {run.id}", title_align="left", border_style=style)


def _figures(verdict: Verdict | None) -> str:
    if verdict is None or verdict.measurement is None:
        return "passed, not timed"
    measured = verdict.measurement
    parts = [figures.time_us(measured.median_us)]
    claims = [claimed for name in measured.speedup if (claimed := claim(measured, name))]
    parts += [f"{with_interval(c)} over {one_line(c.baseline, 20)}: {in_words(c)}" for c in claims]
    if verdict.roofline:
        parts.append(f"{figures.percent(verdict.roofline.attained)} of the roofline")
    return "; ".join(parts)
