"""The commands that give the same again."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

from toprung.model.run import Attempt, Run


def commands(run: Run, main: Attempt | None, *, single: bool) -> list[tuple[str, str]]:
    """Pairs of what a command does and the command itself, ready for a shell."""
    task = run.task.path or "task.py"
    found: list[tuple[str, str]] = []
    if main:
        name = _file_name(main)
        target = main.verdict.target if main.verdict else run.target
        words = ["toprung", "verify", task, name, "--target", target]
        found.append((f"Judge the kernel above again, saved as {name}", shlex.join(words)))
    if not single:
        found.append(("Search again from nothing", shlex.join(_optimize(run, task))))
        if run.reason in (None, "stopped"):
            again = ["toprung", "optimize", "--resume", run.id]
            found.append(("Go on with this run", shlex.join(again)))
    return found


def _file_name(main: Attempt) -> str:
    candidate = main.proposal.candidate
    return PurePosixPath(candidate.main).name if len(candidate.files) == 1 else "kernel"


def _optimize(run: Run, task: str) -> list[str]:
    words = ["toprung", "optimize", task, "--target", run.target, "--proposer", run.proposer]
    words += ["--strategy", run.strategy, "--goal", f"{run.goal.attained:g}"]
    for option, ceiling in (
        ("--attempts", run.budget.attempts),
        ("--minutes", run.budget.minutes),
        ("--usd", run.budget.usd),
    ):
        if ceiling is not None:
            words += [option, f"{ceiling:g}"]
    return words
