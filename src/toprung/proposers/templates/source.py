"""A graph and a choice, as the Python file of a candidate."""

from __future__ import annotations

import json
from typing import Any

from toprung.model.value import Json

from .axes import Label
from .choices import Choices
from .graph import Graph, State
from .ir import Ref
from .kernel import environment, kernel_of
from .lower import NotCovered
from .match import Plan
from .sizes import python

MARK = "# toprung-templates: "
"""Begins the line that says which choices a candidate was made with."""


def source_of(plan: Plan, graph: Graph, choices: Choices) -> str:
    """The candidate; raises `NotCovered`."""
    kernel = kernel_of(plan, graph, choices)
    body, conditions = _body(plan, graph, kernel.tensors)
    return (
        environment()
        .get_template("candidate.py.j2")
        .render(
            title=f"A {plan.loops.family} kernel in C++.",
            conditions="; ".join(conditions),
            header=header_of(choices),
            needs_math=any("math." in line for line in body),
            kernel=kernel.text,
            flags=list(choices.flags()),
            state=[_state(entry) for entry in graph.state],
            arguments=[f"x{place}" for place in range(len(graph.inputs))],
            body=body,
        )
    )


def header_of(choices: Choices) -> str:
    """The line that names the choices."""
    return MARK + json.dumps(choices.to_dict(), separators=(", ", ": "))


def choices_of(source: str) -> Choices | None:
    """The choices that a candidate of this engine names, or `None` for any other source."""
    for line in source.splitlines():
        if line.startswith(MARK):
            try:
                return Choices.model_validate_json(line.removeprefix(MARK))
            except ValueError:
                return None
    return None


def _state(entry: State) -> dict[str, str]:
    return {
        "name": json.dumps(entry.name),
        "tensor": f"torch.zeros({entry.shape!r}, dtype=torch.{entry.dtype})",
        "is_buffer": str(entry.kind == "buffer"),
    }


def _body(plan: Plan, graph: Graph, tensors: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The statements of `forward`, and the conditions under which they hold."""
    lines: list[str] = []
    conditions: list[str] = []
    for place in range(len(graph.inputs)):
        meta = graph.input_meta(place)
        if meta is None:
            value = _literal(graph.inputs[place]["constant"])
            lines.append(f"_require(x{place} == {value}, 'input {place} = {value}')")
            continue
        rank = len(meta.shape)
        lines.append(f"x{place} = _tensor(x{place}, {place}, torch.{meta.dtype}, {rank})")
    bound = {where: symbol for symbol, where in graph.symbols.items()}
    for index in sorted({index for index, _ in bound}):
        meta = graph.input_meta(index)
        rank = len(meta.shape) if meta else 0
        names = [bound.get((index, dim), "_") for dim in range(rank)]
        lines.append(f"{', '.join(names)}{',' * (rank == 1)} = x{index}.shape")
    for place in range(len(graph.inputs)):
        meta = graph.input_meta(place)
        if meta is None or all((place, dim) in bound for dim in range(len(meta.shape))):
            continue
        shape = f"({', '.join(python(size) for size in meta.shape)}{',' * (len(meta.shape) == 1)})"
        what = f"input {place} of shape ({', '.join(meta.shape)})"
        lines.append(f"_require(x{place}.shape == {shape}, {json.dumps(what)})")
        conditions.append(what)
    for guard in graph.guards:
        lines.append(f"_require({python(guard)}, {json.dumps(guard)})")
        conditions.append(guard)
    for output, ref in zip(plan.outputs, plan.expression.outputs, strict=True):
        lines.append(f"y{output.place} = {_allocation(plan, ref)}")
    lines.append(f"_kernel.run({', '.join(_argument(tensor) for tensor in tensors)})")
    lines.append(f"return {_returned(plan, graph.outputs, iter(range(len(plan.outputs))))}")
    return lines, conditions


def _argument(tensor: str) -> str:
    kind, _, name = tensor.partition(".")
    if kind == "input":
        return f"x{name}"
    if kind == "output":
        return f"y{name}"
    *folders, last = name.split(".")
    return "self" + "".join(f"._modules[{json.dumps(f)}]" for f in folders) + f".{last}"


def _allocation(plan: Plan, ref: Ref) -> str:
    """An empty tensor whose dimensions lie in memory in the order of the loops."""
    axes = plan.expression.axes
    dims = axes.dims(ref.dims)
    loops = plan.loops
    domain = (*loops.outer, *loops.reduced, *loops.row)
    order = sorted(range(len(dims)), key=lambda d: _first(domain, dims[d], d))
    laid = tuple(axis for d in order for axis in dims[d])
    if laid != tuple(axis for axis in domain if axis in laid):
        raise NotCovered("an output whose dimensions mix those of the loops")
    sizes = [python(axes.size(dims[d])) if dims[d] else "1" for d in order]
    made = f"torch.empty(({', '.join(sizes)}{',' * (len(sizes) == 1)}), dtype=torch.{ref.dtype})"
    if order == sorted(order):
        return made
    back = [order.index(d) for d in range(len(dims))]
    return f"{made}.permute({', '.join(str(place) for place in back)})"


def _first(domain: Label, label: Label, dim: int) -> tuple[int, int]:
    return (domain.index(label[0]) if label else -1, dim)


def _returned(plan: Plan, layout: Json, places: Any) -> str:
    if "n" in layout:
        return f"y{next(places)}"
    if "size" in layout:
        return python(layout["size"])
    if "v" in layout:
        return _literal(layout["v"])
    if "dict" in layout:
        items = [f"{key!r}: {_returned(plan, item, places)}" for key, item in layout["dict"]]
        return "{" + ", ".join(items) + "}"
    kind = "tuple" if "tuple" in layout else "list"
    items = [_returned(plan, item, places) for item in layout[kind]]
    if kind == "list":
        return f"[{', '.join(items)}]"
    return f"({', '.join(items)}{',' * (len(items) == 1)})"


def _literal(content: Json) -> str:
    if isinstance(content, dict) and "float" in content:
        return f"float({content['float']!r})"
    return repr(content)
