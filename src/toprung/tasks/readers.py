"""From the path of a task, in any known format, to the `Task`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from toprung.errors import TaskError, UsageError
from toprung.model.task import Task

from .source import shown

Reader = Callable[[Path], Task | None]
"""Reads a task, or returns `None` when the path is not of its format; raises `TaskError`."""

READERS = {
    "kernelbench": "toprung.tasks.kernelbench:read",
    "native": "toprung.tasks.native:read",
}
"""Format -> `module:function`. Built-in formats are asked first, in this order."""

GROUP = "toprung.tasks"
"""Entry points that add formats: `myformat = "package.module:function"`."""


def read_task(path: Path, format: str | None = None) -> Task:
    """The task at `path`; `format` names the reader, by default the first that knows the path.

    Raises `UsageError` when there is nothing at `path` or no format fits, and `TaskError` when the
    format fits and the task is wrong.
    """
    path = Path(path)
    try:
        there = path.exists()
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown(path)}: not a usable path: {error}") from None
    if not there:
        raise UsageError(f"{shown(path)}: there is no such file or folder", hint="check the path")
    known = readers()
    if format is not None and format not in known:
        raise UsageError(f"no task format {format!r}", hint=f"known formats: {', '.join(known)}")
    for name in [format] if format is not None else known:
        task = _load(name, known[name])(path)
        if task is not None:
            return task
    raise UsageError(
        f"{shown(path)}: not a task",
        hint="a task is a KernelBench .py file, a folder with a task.toml beside reference.py, or "
        f"that task.toml; formats asked: {format or ', '.join(known)}",
    )


def readers() -> dict[str, str]:
    """Every known format: the built-in ones, then what entry points add, by name."""
    added = {point.name: point.value for point in entry_points(group=GROUP)}
    return {**READERS, **{name: added[name] for name in sorted(added) if name not in READERS}}


def _load(name: str, where: str) -> Reader:
    module, _, function = where.partition(":")
    try:
        return cast(Reader, getattr(import_module(module), function))
    except (ImportError, AttributeError) as error:
        raise TaskError(
            f"the task format {name!r} cannot be loaded from {where}: {error}",
            hint=f"mend or uninstall the package that declares the entry point {GROUP}: {name}",
        ) from error
