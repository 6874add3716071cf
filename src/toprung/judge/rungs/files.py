"""Rungs in a Python file that the user names with `--rungs`. The file is trusted: it runs here."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from toprung.errors import UsageError

from .base import Rung


def rungs_in(path: Path) -> list[Rung]:
    """Every rung that the file makes with `@toprung.rung`; raises `UsageError`."""
    if not path.is_file():
        raise UsageError(f"{path} is not a file", hint="--rungs takes a Python file")
    spec = importlib.util.spec_from_file_location(f"rungs_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as broken:
        raise UsageError(f"{path}: {type(broken).__name__}: {broken}") from broken
    found = [thing for thing in vars(module).values() if isinstance(thing, Rung)]
    if not found:
        raise UsageError(f"{path} makes no rung", hint="decorate a function with @toprung.rung")
    return found
