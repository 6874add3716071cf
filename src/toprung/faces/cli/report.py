"""`toprung report [RUN]`: a run as one HTML file, made from the store alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Debug, Json, Store

RunArgument = Annotated[
    str | None,
    typer.Argument(metavar="RUN", help="A run's id.", show_default="the newest"),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", dir_okay=False, help="Where to write it.")
]


def report(
    run: RunArgument = None,
    output: Output = Path("report.html"),
    store: Store = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a run as one self-contained HTML file.

    With --json: one toprung.report/1 object with the path.
    """
    from toprung import app

    from .screen import Screen

    path = app.report(run, output, store)
    screen = Screen(as_json=as_json)
    if as_json:
        screen.json({"schema": "toprung.report/1", "path": str(path)})
    else:
        screen.line(f"report: {path}")
