"""Options that several verbs share, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TaskArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TASK",
        help="A KernelBench file, or a folder with task.toml and reference.py.",
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Write JSON to standard output, and nothing else there."),
]
Debug = Annotated[
    bool,
    typer.Option(
        "--debug", help="Show the traceback when toprung itself fails (or set TOPRUNG_DEBUG=1)."
    ),
]
Store = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="DIR",
        envvar="TOPRUNG_STORE",
        file_okay=False,
        show_default=".toprung in the current folder",
        help="The state folder.",
    ),
]
DslName = Annotated[
    str | None,
    typer.Option("--dsl", metavar="NAME", help="Language of the kernel.", show_default="detected"),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TARGET",
        help="Where it runs, such as cpu:native.",
        show_default="the best here",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        help="Make the judge's secrets repeatable, for debugging only; the verdict says so.",
    ),
]
