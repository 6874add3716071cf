"""`toprung optimize TASK`: propose, climb, keep, until the goal or a ceiling is reached."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toprung.errors import Exit, UsageError

from .failures import INTERRUPTED
from .options import Debug, Json, Seed, Store, Target

if TYPE_CHECKING:
    from toprung.app import OptimizeSettings
    from toprung.model.event import Event
    from toprung.model.run import Run

LINES = ("attempt", "verdict", "kept", "hint")
"""Events that are written as they happen; `done` comes last, with what the run came to."""

Task = Annotated[
    Path | None,
    typer.Argument(
        metavar="TASK",
        help="A KernelBench file, or a folder with task.toml; not needed with --resume.",
        show_default=False,
    ),
]
Dsl = Annotated[
    str | None,
    typer.Option(
        "--dsl", metavar="NAME", help="Language of the kernels.", show_default="the proposer's own"
    ),
]
Start = Annotated[
    Path | None, typer.Option("--from", metavar="KERNEL", help="A kernel to start from.")
]
Proposer = Annotated[
    str, typer.Option("--proposer", metavar="NAME", help="Who writes the candidates.")
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="PROVIDER:NAME", help="For proposers that ask a model."),
]
Strategy = Annotated[
    str, typer.Option("--strategy", metavar="NAME", help="How the search goes on.")
]
Goal = Annotated[
    float,
    typer.Option("--goal", min=0.01, metavar="F", help="Stop at this fraction of the roofline."),
]
Attempts = Annotated[
    int | None, typer.Option("--attempts", min=1, metavar="N", help="At most so many candidates.")
]
Minutes = Annotated[
    float | None, typer.Option("--minutes", min=0.01, metavar="M", help="At most so much time.")
]
Usd = Annotated[
    float | None, typer.Option("--usd", min=0, metavar="X", help="At most so much money.")
]
Resume = Annotated[
    str | None, typer.Option("--resume", metavar="RUN", help="Go on with a run that was stopped.")
]


def optimize(
    task: Task = None,
    *,
    dsl: Dsl = None,
    target: Target = None,
    start: Start = None,
    proposer: Proposer = "templates",
    model: Model = None,
    strategy: Strategy = "greedy",
    goal: Goal = 0.9,
    attempts: Attempts = None,
    minutes: Minutes = None,
    usd: Usd = None,
    resume: Resume = None,
    seed: Seed = None,
    store: Store = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Look for a faster kernel: propose, climb, keep the best.

    Ends with 0 when a kernel was kept, with 1 when none was, with 130 when it was stopped. With
    --json: one event a line.
    """
    if task is None and resume is None:
        raise UsageError(
            "no task is named", hint="toprung optimize TASK, or toprung optimize --resume RUN"
        )
    _check_names(dsl, proposer, strategy)
    from toprung import app

    settings = app.OptimizeSettings(
        target=target,
        dsl=dsl,
        start=start,
        proposer=proposer,
        model=model,
        strategy=strategy,
        goal=goal,
        attempts=attempts,
        minutes=minutes,
        usd=usd,
        resume=resume,
        seed=seed,
        store=store,
    )
    _search(task, settings, as_json)


def _search(task: Path | None, settings: OptimizeSettings, as_json: bool) -> None:
    from toprung import app

    from .run_view import RunView
    from .screen import Screen

    screen = Screen(as_json=as_json)
    with RunView(screen, _title(task, settings)) as view:

        def told(event: Event) -> None:
            view.shown(event)
            if as_json and event.event in LINES:
                screen.json(_line(event))

        run = app.optimize(task, settings, told)
        view.finish(run, app.best_file(run, settings.store), _next_step(run))
    if as_json:
        screen.json(done_line(run))
    if run.reason == "stopped":
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(Exit.PASSED if run.best else Exit.REFUTED)


def _title(task: Path | None, settings: OptimizeSettings) -> str:
    if task is None:
        return f"run {settings.resume} goes on"
    spend = {"attempts": settings.attempts, "minutes": settings.minutes, "usd": settings.usd}
    ceilings = [f"{value:g} {name}" for name, value in spend.items() if value is not None]
    budget = f", at most {', '.join(ceilings)}" if ceilings else ""
    return f"{task}: goal {settings.goal:.0%} of the roofline{budget}"


def _next_step(run: Run) -> str | None:
    """A command, where the run's own message does not say what to do."""
    if run.reason == "stopped":
        return f"toprung optimize --resume {run.id} goes on"
    if not run.attempts:
        return None
    return f"toprung report {run.id} -o report.html shows it all"


def _check_names(dsl: str | None, proposer: str, strategy: str) -> None:
    """Every name is checked before anything heavy is loaded."""
    from toprung.dsls import table as dsls
    from toprung.proposers import table as proposers
    from toprung.search import strategy as strategies

    from .names import check_name

    if dsl:
        check_name("DSL", dsl, dsls.names())
    check_name("proposer", proposer, proposers.names())
    check_name("strategy", strategy, strategies.names())


def _line(event: Event) -> dict[str, object]:
    """An event as it is written: nothing in it tells of held-out cases but their outcome."""
    from toprung.outputs.shown import shown

    verdict = getattr(event, "verdict", None)
    return (event.model_copy(update={"verdict": shown(verdict)}) if verdict else event).to_dict()


def done_line(run: Run) -> dict[str, object]:
    """The last line of a run's events, with what it came to."""
    best = run.best
    verdict = best.verdict if best else None
    found = None
    if best and verdict:
        over_eager = verdict.measurement.speedup.get("eager") if verdict.measurement else None
        found = {
            "candidate": best.proposal.candidate.digest,
            "attempt": best.index,
            "speedup": over_eager.ratio if over_eager else None,
            "attained": verdict.roofline.attained if verdict.roofline else None,
        }
    return {
        "event": "done",
        "run": run.id,
        "best": found,
        "reason": run.reason or "stopped",
        "message": run.message,
    }
