"""Candidates that are Python files: what `cpp`, `torch` and most other DSLs have in common."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from toprung.errors import Refuted
from toprung.model.candidate import Candidate

from .base import Loaded

ENTRIES = ("ModelNew", "kernel")
"""What a candidate file may define, in order of preference."""


def parse(candidate: Candidate) -> ast.Module:
    """The syntax tree of the main file; raises `Refuted` with the line that is wrong."""
    try:
        return ast.parse(candidate.source, filename=candidate.main)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as bad:
        line = getattr(bad, "lineno", None)
        where = f"{candidate.main}, line {line}" if line else candidate.main
        text = (getattr(bad, "text", None) or "").rstrip()
        raise Refuted(
            f"{where}: {getattr(bad, 'msg', None) or type(bad).__name__}",
            details=text or None,
            hint="the file must be valid Python",
        ) from None


def find_entry(candidate: Candidate) -> str:
    """`ModelNew` or `kernel`, whichever the main file binds at top level."""
    bound = set(_bound_names(parse(candidate).body))
    wanted = (candidate.entry,) if candidate.entry else ENTRIES
    for entry in wanted:
        if entry in bound:
            return entry
    raise Refuted(
        f"{candidate.main} defines neither class ModelNew nor def kernel"
        if not candidate.entry
        else f"{candidate.main} does not define {candidate.entry}",
        hint="define `class ModelNew(torch.nn.Module)` with the constructor and forward of Model, "
        "or `def kernel(*inputs)`",
    )


def _bound_names(body: list[ast.stmt]) -> list[str]:
    names: list[str] = []
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [t.id for t in node.targets if isinstance(t, ast.Name)]
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names += [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.If | ast.Try | ast.With):
            inner = [*node.body, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])]
            names += _bound_names(inner)
    return names


def needed_imports(candidate: Candidate) -> set[str]:
    """First names of what the file cannot do without: imports at its top level, unguarded."""
    names: set[str] = set()
    for node in parse(candidate).body:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def calls_and_imports(candidate: Candidate) -> set[str]:
    """Last names of what is called, and first names of what is imported, anywhere in the file."""
    names: set[str] = set()
    for node in ast.walk(parse(candidate)):
        if isinstance(node, ast.Call):
            function = node.func
            names.add(getattr(function, "attr", None) or getattr(function, "id", ""))
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def load_python(candidate: Candidate, folder: Path) -> Loaded:
    """Import the main file and find its entry. Runs candidate code."""
    module = _import(folder / candidate.main)
    entry = candidate.entry or next((e for e in ENTRIES if hasattr(module, e)), None)
    if entry is None or not hasattr(module, entry):
        raise Refuted(f"{candidate.main} defines no {entry or 'ModelNew or kernel'} once imported")
    thing = getattr(module, entry)
    if isinstance(thing, type):
        return Loaded(entry=entry, build=thing, is_module=True)
    return Loaded(entry=entry, build=lambda *_: thing, is_module=False)


def _import(path: Path) -> ModuleType:
    name = "candidate_" + "".join(c if c.isalnum() else "_" for c in path.stem)
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
