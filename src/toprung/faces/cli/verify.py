"""`toprung verify TASK CANDIDATE`: climb one candidate and say how far up it holds."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Debug, DslName, Json, Seed, Store, Target, TaskArgument

if TYPE_CHECKING:
    from toprung.model.verdict import Verdict

    from .screen import Screen

CandidateArgument = Annotated[
    Path,
    typer.Argument(metavar="CANDIDATE", help="A Python file or folder, a .cpp file."),
]
Upto = Annotated[
    str | None,
    typer.Option("--upto", metavar="RUNG", help="Stop after this rung, and require it."),
]
With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="RUNGS", help="Ask optional rungs as well: sanitize,profile."),
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=1, metavar="S", help="Seconds for the whole climb.")
]
Confirm = Annotated[
    bool,
    typer.Option(
        "--confirm/--no-confirm",
        help="Confirm the speed-up in fresh paired rounds; without, none is claimed.",
    ),
]


def verify(
    task: TaskArgument,
    candidate: CandidateArgument,
    *,
    dsl: DslName = None,
    target: Target = None,
    upto: Upto = None,
    extra: With = None,
    timeout: Timeout = 150,
    seed: Seed = None,
    confirm: Confirm = True,
    store: Store = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Climb one kernel, rung by rung, and say how far up it holds.

    With --json: one toprung.verdict/1 object.
    """
    rungs = _checked(dsl, upto, extra or [])
    from toprung import app
    from toprung.outputs.shown import shown

    from .ladder_view import LadderView
    from .screen import Screen

    settings = app.VerifySettings(
        target=target,
        dsl=dsl,
        upto=upto,
        extra=rungs,
        timeout_s=timeout,
        seed=seed,
        confirm=confirm,
        store=store,
    )
    screen = Screen(as_json=as_json)
    with LadderView(screen, f"{task} ← {candidate}") as ladder:
        verdict = shown(app.verify(task, candidate, settings, ladder.shown))
        ladder.finish(verdict)
    if as_json:
        screen.json(verdict.to_dict())
    else:
        _summarise(screen, verdict, task, candidate)
    raise typer.Exit(verdict.exit_code)


def _checked(dsl: str | None, upto: str | None, extra: list[str]) -> tuple[str, ...]:
    """The optional rungs that were asked for; every name is checked before anything is loaded."""
    from toprung.dsls import table
    from toprung.model.verdict import RUNGS

    from .names import check_name, split_names

    if dsl:
        check_name("DSL", dsl, table.names())
    rungs = split_names(extra)
    for rung in [*rungs, *([upto] if upto else [])]:
        check_name("rung", rung, RUNGS)
    return tuple(rungs)


def _summarise(screen: Screen, verdict: Verdict, task: Path, candidate: Path) -> None:
    from toprung.outputs.feedback import feedback
    from toprung.tasks.readers import read_task

    from .verdict_view import next_step, verdict_panel

    said = "" if verdict.outcome == "passed" else feedback(verdict, read_task(task))
    step = next_step(verdict, shlex.quote(str(task)), shlex.quote(str(candidate)))
    screen.show(verdict_panel(verdict, said, step))
