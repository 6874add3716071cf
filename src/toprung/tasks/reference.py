"""What a reference module defines, told from its syntax tree; the file is never executed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from toprung.errors import TaskError

from .source import parse_python, shown

NEEDED = ("Model", "get_inputs", "get_init_inputs")
"""The names that every reference module must define at module level."""

_WHAT = {
    "Model": "a class Model(torch.nn.Module): the reference",
    "get_inputs": "a function get_inputs(): a list of the arguments of Model.forward",
    "get_init_inputs": "a function get_init_inputs(): a list of the arguments of Model.__init__; "
    "write `def get_init_inputs(): return []` when there are none",
}


@dataclass(frozen=True)
class Outline:
    """Names bound at module level; the statement that binds each, the last one if several do."""

    names: Mapping[str, ast.AST]
    open_ended: bool
    """A star import or the like may bind names that cannot be seen here."""

    @classmethod
    def of(cls, tree: ast.Module) -> Outline:
        """The outline of a module."""
        names: dict[str, ast.AST] = {}
        open_ended = False
        for statement in _statements(tree.body):
            for name in _bound_by(statement):
                open_ended = open_ended or name == "*"
                names[name] = statement
        return cls(names, open_ended)


def check_reference(text: str, path: Path) -> Outline:
    """The outline of a reference; a `TaskError` says which of `NEEDED` is missing or misshapen."""
    outline = Outline.of(parse_python(text, path))
    missing = [name for name in NEEDED if name not in outline.names]
    if missing and not outline.open_ended:
        raise TaskError(
            f"{shown(path)}: no {', no '.join(missing)} at module level",
            hint=_hint_for(missing, outline),
        )
    _check_model(outline.names.get("Model"), path)
    for name in ("get_inputs", "get_init_inputs"):
        if isinstance(outline.names.get(name), ast.ClassDef | ast.AsyncFunctionDef):
            line = getattr(outline.names[name], "lineno", 1)
            raise TaskError(
                f"{shown(path)}, line {line}: {name} is not a plain function", hint=_WHAT[name]
            )
    return outline


def _hint_for(missing: list[str], outline: Outline) -> str:
    if "Model" in missing and ("ModelNew" in outline.names or "kernel" in outline.names):
        return "this looks like a candidate; the task comes first: toprung verify TASK CANDIDATE"
    return "a task file defines " + "; and ".join(_WHAT[name] for name in missing)


def _check_model(model: ast.AST | None, path: Path) -> None:
    if isinstance(model, ast.FunctionDef | ast.AsyncFunctionDef):
        raise TaskError(
            f"{shown(path)}, line {model.lineno}: Model is a function", hint=_WHAT["Model"]
        )
    if not isinstance(model, ast.ClassDef):
        return  # imported or assigned: only running it can tell
    if not model.bases:
        raise TaskError(
            f"{shown(path)}, line {model.lineno}: class Model has no base class",
            hint="derive it from torch.nn.Module",
        )
    plain_module = all(ast.unparse(base).split(".")[-1] == "Module" for base in model.bases)
    body = {name for statement in _statements(model.body) for name in _bound_by(statement)}
    if plain_module and "forward" not in body:
        raise TaskError(
            f"{shown(path)}, line {model.lineno}: class Model has no forward()",
            hint="forward(*inputs) computes what candidates must compute",
        )


def check_arguments(
    outline: Outline, function: str, given: Iterable[str], path: Path, giver: str
) -> None:
    """Raise `TaskError` unless `function` can be called with exactly the keywords `given`.

    `giver` says in messages where the keywords come from. What is not a `def` here cannot be told.
    """
    node = outline.names.get(function)
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return
    where = f"{shown(path)}, line {node.lineno}"
    keywords = set(given)
    accepted = parameters_of(node)
    unknown = sorted(keywords - accepted.keys())
    if unknown and node.args.kwarg is None:
        raise TaskError(
            f"{where}: {function}() has no parameter {unknown[0]!r}, which {giver} gives",
            hint=f"its parameters are: {', '.join(accepted) or 'none'}",
        )
    lacking = [name for name, optional in accepted.items() if not optional and name not in keywords]
    lacking += [parameter.arg for parameter in node.args.posonlyargs[: _required_positions(node)]]
    if lacking:
        raise TaskError(
            f"{where}: {function}() needs {lacking[0]!r}, and {giver} does not give it",
            hint=f"give {lacking[0]} a default value, small enough for a CPU",
        )


def parameters_of(node: ast.FunctionDef) -> dict[str, bool]:
    """Parameters that can be given by keyword, in order; true where a default makes them optional."""
    arguments = node.args
    without = len(arguments.args) - len(arguments.defaults)
    found = {parameter.arg: place >= without for place, parameter in enumerate(arguments.args)}
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found[parameter.arg] = default is not None
    return found


def _required_positions(node: ast.FunctionDef) -> int:
    """How many positional-only parameters have no default."""
    positional = len(node.args.posonlyargs)
    return max(0, min(positional, positional + len(node.args.args) - len(node.args.defaults)))


def _statements(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Statements of a body in order, those inside `if`, `try`, `with` and loops included."""
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inner = [
            child
            for child in ast.iter_child_nodes(statement)
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
        ]
        waiting.extend(reversed(inner))


def _bound_by(statement: ast.AST) -> list[str]:
    """Names that one statement binds, its inner statements left out; `*` for a star import."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).split(".")[0] for alias in statement.names]
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    else:
        return []
    return [
        node.id
        for target in targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
