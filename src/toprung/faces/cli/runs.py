"""`toprung runs`: what the store remembers, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .options import Debug, Json, Store

if TYPE_CHECKING:
    from rich.table import Table

    from toprung.store.summary import RunSummary


def runs(store: Store = None, as_json: Json = False, debug: Debug = False) -> None:
    """List the runs of the state folder, newest first.

    With --json: one toprung.runs/1 object.
    """
    from toprung import app

    from .screen import Screen

    found = app.runs(store)
    screen = Screen(as_json=as_json)
    if as_json:
        screen.json({"schema": "toprung.runs/1", "runs": [run.to_dict() for run in found]})
    elif not found:
        screen.line("No runs here yet: toprung optimize TASK makes one.")
    else:
        screen.table(runs_table(found))


def runs_table(found: list[RunSummary]) -> Table:
    """One run a row; when it was created stands in its id."""
    from rich.table import Table

    from toprung.outputs import figures
    from toprung.outputs.text import one_line
    from toprung.search.policy import BASELINE

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("run", no_wrap=True)  # narrow screens fold the others
    for column in ("task", "state"):
        table.add_column(column)
    for column in ("passed", f"vs {BASELINE}", "roofline", "climbed"):
        table.add_column(column, justify="right")
    for run in found:
        table.add_row(
            run.id,
            one_line(run.task, 40),
            run.state,
            f"{run.passed} of {run.attempts}",
            figures.times(run.speedup[BASELINE]) if BASELINE in run.speedup else "–",
            "–" if run.attained is None else figures.percent(run.attained),
            figures.seconds(run.seconds),
        )
    return table
