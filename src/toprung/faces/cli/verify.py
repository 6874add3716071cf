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
    typer.Option(
        "--with",
        metavar="RUNGS",
        help="Optional rungs to ask as well, by name. This version has none of them yet.",
    ),
]
Rungs = Annotated[
    list[Path] | None,
    typer.Option(
        "--rungs", metavar="FILE", help="A Python file with rungs of your own; may be repeated."
    ),
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
    rungs: Rungs = None,
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
    optional = _checked(dsl, upto, extra or [], own=bool(rungs))
    from toprung import app
    from toprung.outputs.shown import shown

    from .ladder_view import LadderView
    from .screen import Screen

    settings = app.VerifySettings(
        target=target,
        dsl=dsl,
        upto=upto,
        extra=optional,
        timeout_s=timeout,
        seed=seed,
        confirm=confirm,
        rungs=tuple(rungs or []),
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


def _checked(dsl: str | None, upto: str | None, extra: list[str], *, own: bool) -> tuple[str, ...]:
    """The optional rungs that were asked for; names are checked before anything heavy is loaded.

    With rungs of the user's own (`own`), their names are known only once their files were read.
    """
    from toprung.dsls import table

    from .names import check_name, split_names

    if dsl:
        check_name("DSL", dsl, table.names())
    optional = split_names(extra)
    asked = [*optional, *([upto] if upto else [])]
    if asked and not own:
        from toprung.judge.ladder import user_rungs
        from toprung.model.verdict import RUNGS

        known = [*RUNGS, *(rung.name for rung in user_rungs())]
        for name in asked:
            check_name("rung", name, known)
    return tuple(optional)


def _summarise(screen: Screen, verdict: Verdict, task: Path, candidate: Path) -> None:
    from toprung.outputs.feedback import feedback
    from toprung.tasks.readers import read_task

    from .verdict_view import next_step, verdict_panel

    said = "" if verdict.outcome == "passed" else feedback(verdict, read_task(task))
    step = next_step(verdict, shlex.quote(str(task)), shlex.quote(str(candidate)))
    screen.show(verdict_panel(verdict, said, step))
