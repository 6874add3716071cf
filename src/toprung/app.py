"""Configuration to objects: the only place where packages are wired together.

Every face calls these functions and nothing below them.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from toprung import __version__
from toprung.caches import cache_folder
from toprung.devices.hardware import HardwareReport, hardware_report
from toprung.dsls.base import Availability
from toprung.errors import UsageError
from toprung.model.budget import Budget
from toprung.model.climb import ClimbOptions
from toprung.model.device import Ceilings
from toprung.model.environment import Walls
from toprung.model.event import AttemptStarted, Created, Done, Event, Judged, Kept
from toprung.model.run import VERIFY, Goal, Proposal, Run
from toprung.model.value import Value
from toprung.model.verdict import RungResult, Verdict
from toprung.store import RunSummary, Store

if TYPE_CHECKING:
    from toprung.judge.judge import Judge
    from toprung.judge.rungs.base import Rung
    from toprung.model.candidate import Candidate
    from toprung.model.task import Task

STORE_VARIABLE = "TOPRUNG_STORE"
TARGET = "cpu:native"


class VerifySettings(Value):
    """What `toprung verify` takes."""

    target: str | None = None
    dsl: str | None = None
    upto: str | None = None
    extra: tuple[str, ...] = ()
    timeout_s: float = 150.0
    seed: int | None = None
    confirm: bool = True
    rungs: tuple[Path, ...] = ()
    """Python files with rungs of the user's own."""
    store: Path | None = None


class OptimizeSettings(Value):
    """What `toprung optimize` takes."""

    target: str | None = None
    dsl: str | None = None
    start: Path | None = None
    proposer: str = "templates"
    model: str | None = None
    strategy: str = "greedy"
    goal: float = 0.9
    attempts: int | None = None
    minutes: float | None = None
    usd: float | None = None
    resume: str | None = None
    seed: int | None = None
    store: Path | None = None


def verify(
    task: Path,
    candidate: Path,
    settings: VerifySettings,
    progress: Callable[[RungResult], None] | None = None,
) -> Verdict:
    """Climb one candidate; its verdict is kept as a run of one attempt, so it can be reported."""
    from toprung.judge.judge import check_target
    from toprung.judge.ladder import check_upto
    from toprung.tasks import read_candidate, read_task

    read = read_task(task)
    proposal = Proposal(candidate=_with_dsl(read_candidate(candidate), settings.dsl))
    options = ClimbOptions(
        target=settings.target or TARGET,
        upto=settings.upto,
        extra=settings.extra,
        timeout_s=settings.timeout_s,
        seed=settings.seed,
        confirm=settings.confirm,
    )
    own = _rungs(settings.rungs)
    check_target(options.target)
    check_upto(options.upto, options.extra, own)
    with _store(settings.store) as store, _judge(store) as judge:
        created = _created(read, options.target, VERIFY, "once", settings.seed)
        run = store.create_run(created)
        store.append(run, AttemptStarted(index=0, proposal=proposal))
        start = time.monotonic()
        try:
            verdict = judge.climb(read, proposal.candidate, options, own, progress)
        except BaseException:
            store.append(run, Done(reason="stopped", message="the climb was broken off"))
            raise
        seconds = time.monotonic() - start
        store.append(run, Judged(index=0, verdict=verdict, seconds=seconds))
        if verdict.outcome == "passed":
            store.append(run, Kept(index=0))
        store.append(run, Done(reason="stopped", message="one candidate was verified"))
        return verdict


def optimize(
    task: Path | None, settings: OptimizeSettings, on_event: Callable[[Event], None]
) -> Run:
    """Search for a faster kernel, or go on with a run that was stopped or killed."""
    from toprung.pool.local import LocalPool
    from toprung.proposers import table as proposers
    from toprung.proposers.settings import ProposerSettings
    from toprung.search.loop import SearchOptions, search
    from toprung.tasks import read_candidate

    with _store(settings.store) as store:
        run = _resumed(store, settings) if settings.resume else _begun(store, task, settings)
        start = (read_candidate(settings.start),) if settings.start else ()
        proposer = proposers.create(
            run.proposer,
            ProposerSettings(
                target=run.target,
                dsl=settings.dsl,
                seed=run.seed,
                model=settings.model,
                start=start,
            ),
        )
        options = SearchOptions(
            climb=ClimbOptions(target=run.target, seed=settings.seed), strategy=run.strategy
        )
        with _judge(store) as judge:
            pool = LocalPool(judge, _rungs(()))
            return search(run.id, store, pool, proposer, options, on_event=on_event)


def best_file(run: Run, store: Path | None) -> Path | None:
    """Write the best kernel of a run into the store's folder; its main file, `None` without one."""
    best = run.best
    if best is None:
        return None
    candidate = best.proposal.candidate
    folder = _store_folder(store) / "best" / run.id
    for name, text in candidate.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / candidate.main


def runs(store: Path | None) -> list[RunSummary]:
    """Every run in the store, newest first."""
    with _store(store) as opened:
        return opened.runs()


def report(run: str | None, out: Path, store: Path | None) -> Path:
    """Write the page of a run (`None`: the newest) to `out`."""
    from toprung.outputs.report import render

    with _store(store) as opened:
        known = opened.runs()
        if not known:
            raise UsageError(
                f"{opened.root} holds no run yet",
                hint="`toprung verify` or `toprung optimize` first",
            )
        page = render(opened.run(run or known[0].id))
    try:
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}") from error
    return out


class DoctorReport(Value):
    """What `toprung doctor` prints: this machine, what was measured on it, what can be used."""

    schema_: Literal["toprung.doctor/1"] = Field(default="toprung.doctor/1", alias="schema")
    toprung: str
    python: str
    torch: str
    hardware: HardwareReport
    ceilings: Ceilings
    dsls: tuple[Availability, ...]
    walls: Walls
    store: str
    cache: str


def doctor(refresh: bool = False) -> DoctorReport:
    """Look at the machine; measures its ceilings when nobody has, or again with `refresh`."""
    from toprung.dsls import table
    from toprung.judge.clock.ceilings import ceilings
    from toprung.judge.sandbox.process import Nursery

    nursery = Nursery()
    try:
        process = nursery.spawn("toprung.judge.child.main:serve")
        walls, torch = process.walls, nursery.torch
        process.close()
    finally:
        nursery.close()
    return DoctorReport(
        toprung=__version__,
        python=platform.python_version(),
        torch=torch,
        hardware=hardware_report(),
        ceilings=ceilings(TARGET, refresh=refresh),
        dsls=tuple(table.availability()),
        walls=walls,
        store=str(_store_folder(None).absolute()),
        cache=str(cache_folder()),
    )


def _begun(store: Store, path: Path | None, settings: OptimizeSettings) -> Run:
    from toprung.judge.judge import check_target
    from toprung.tasks import read_task

    if path is None:
        raise UsageError("name a task, or a run to go on with", hint="toprung optimize TASK")
    check_target(settings.target or TARGET)
    budget = Budget(attempts=settings.attempts, minutes=settings.minutes, usd=settings.usd)
    created = _created(
        read_task(path),
        settings.target or TARGET,
        settings.proposer,
        settings.strategy,
        settings.seed,
        Goal(attained=settings.goal),
        budget,
    )
    return store.run(store.create_run(created))


def _resumed(store: Store, settings: OptimizeSettings) -> Run:
    run = store.run(settings.resume or "")
    if run.proposer == VERIFY:
        raise UsageError(f"run {run.id} verified one candidate; there is nothing to go on with")
    return run


def _created(
    task: Task,
    target: str,
    proposer: str,
    strategy: str,
    seed: int | None,
    goal: Goal | None = None,
    budget: Budget | None = None,
) -> Created:
    return Created(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        task=task,
        goal=goal or Goal(),
        budget=budget or Budget(),
        target=target,
        proposer=proposer,
        strategy=strategy,
        seed=seed,
    )


def _with_dsl(candidate: Candidate, dsl: str | None) -> Candidate:
    return candidate.model_copy(update={"dsl": dsl}) if dsl else candidate


def _rungs(files: tuple[Path, ...]) -> list[Rung]:
    """Rungs that packages offer, and those in the files that the user names."""
    from toprung.judge.ladder import user_rungs
    from toprung.judge.rungs.files import rungs_in

    return [*user_rungs(), *(rung for file in files for rung in rungs_in(file))]


@contextmanager
def _store(named: Path | None) -> Iterator[Store]:
    with Store.open(_store_folder(named)) as store:
        yield store


def _store_folder(named: Path | None) -> Path:
    return named or Path(os.environ.get(STORE_VARIABLE, ".toprung"))


@contextmanager
def _judge(store: Store) -> Iterator[Judge]:
    from toprung.judge.judge import Judge

    judge = Judge(
        recall=lambda key: store.recall("baseline", key),
        remember=lambda key, value: store.remember("baseline", key, value),
        builds=cache_folder() / "builds",
    )
    try:
        yield judge
    finally:
        judge.close()
