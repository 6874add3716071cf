"""A plan and a choice, as the C++ text of one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from .choices import Choices
from .column import ColumnSweep
from .graph import Graph
from .ir import Const, Load, Reduce
from .match import Level, Plan
from .prelude import text_of
from .sizes import cpp
from .sweep import Sweep, halves
from .writer import STORAGE, ColumnWriter, Writer

STRIP = 32
"""Columns that are computed side by side within a task of the column family."""


@dataclass(frozen=True)
class Kernel:
    """C++ text, and the tensors that its function takes: inputs and parameters, then outputs."""

    text: str
    tensors: tuple[str, ...]


@cache
def environment() -> Any:
    """The templates."""
    import jinja2

    loader = jinja2.PackageLoader("toprung.proposers.templates", "cpp")
    found = jinja2.Environment(
        loader=loader,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    found.filters["tensor_argument"] = lambda name: f"TensorView {name}"
    return found


def kernel_of(plan: Plan, graph: Graph, choices: Choices) -> Kernel:
    """The kernel; raises `NotCovered` for what only shows while it is written."""
    column = plan.loops.family == "column"
    writer = ColumnWriter(plan, choices) if column else Writer(plan, choices)
    tensors = _tensors(plan, graph)
    parts = [*_call_values(plan, writer, 0)]
    for stage in range(plan.stages):
        parts.append(_sweep(plan, stage, writer, choices))
        parts += _call_values(plan, writer, stage + 1)
    parts += _numbers(plan, writer)
    if "checked" in writer.pieces:
        parts.append('  if (outside) TVM_FFI_THROW(IndexError) << "an index is out of range";\n')
    head = _head(plan, graph, writer, tensors, choices)
    prelude = text_of({"data", "team", "lanes", *writer.pieces, *_pieces(choices, parts)})
    text = environment().get_template("kernel.cpp.j2")
    outputs = [f"out{output.place}" for output in plan.outputs]
    names = [*tensors.values(), *outputs]
    constants = _constants(plan, choices)
    rendered = text.render(
        constants=constants, prelude=prelude, tensors=names, head=head, parts=parts
    )
    return Kernel(rendered, (*tensors, *(f"output.{o.place}" for o in plan.outputs)))


def _tensors(plan: Plan, graph: Graph) -> dict[str, str]:
    """Tensors that the kernel reads, or whose sizes it must know -> their names in C++."""
    wanted: dict[str, None] = {}
    for index, _ in graph.symbols.values():
        wanted[f"input.{index}"] = None
    for n in plan.nodes:
        node = plan.expression.nodes[n]
        if isinstance(node, Load):
            wanted[node.tensor] = None
    inputs = sorted(name for name in wanted if name.startswith("input."))
    states = [name for name in wanted if name.startswith("state.")]
    names = {name: f"in{name.removeprefix('input.')}" for name in inputs}
    return names | {name: f"param{place}" for place, name in enumerate(states)}


def _constants(plan: Plan, choices: Choices) -> list[tuple[str, int]]:
    common = [("GRAIN", choices.grain), ("SHARE", choices.share)]
    if plan.loops.family == "column":
        width = choices.width
        return [("WIDTH", width), ("LANES", width), ("STRIP", STRIP), *common]
    found = [("LANES", choices.lanes), ("BLOCK", choices.block), *common]
    return [*found, ("CHUNK", choices.chunk)] if _cut(plan) else found


def _pieces(choices: Choices, parts: list[str]) -> set[str]:
    text = "".join(parts)
    found = {name for name in ("scratch", "slots") if f"{name.capitalize()}<" in text}
    if "stream(" in text:
        found.add("stream")
    if choices.pages == "huge":
        found.add("huge_pages")
    return found


def _head(
    plan: Plan, graph: Graph, writer: Writer, tensors: dict[str, str], choices: Choices
) -> list[str]:
    """Sizes and pointers of the whole call."""
    lines = [
        f"const int64_t {symbol} = {tensors[f'input.{index}']}.size({dim});"
        for symbol, (index, dim) in sorted(graph.symbols.items(), key=lambda entry: entry[1])
    ]
    loops = plan.loops
    sizes = {"rows": loops.outer, "cols": loops.element}
    sizes |= {"segments": loops.segment} if loops.segment else {}
    sizes |= {"depth": loops.reduced} if loops.family == "column" else {}
    for name, label in sizes.items():
        size = cpp(plan.expression.axes.size(label)) if label else "1"
        lines.append(f"[[maybe_unused]] const int64_t {name} = {size};")
    if loops.family != "column":
        row = "segments * cols" if loops.segment else "cols"
        lines.append(f"[[maybe_unused]] const int64_t row = {row};")
    if "checked" in writer.pieces:
        lines.append("std::atomic<bool> outside{false};")
    if _cut(plan):
        lines.append("const int64_t pieces = (cols + CHUNK - 1) / CHUNK;")
    for n in plan.nodes:
        node = plan.expression.nodes[n]
        if isinstance(node, Load):
            kind = STORAGE[node.dtype]
            offset = "" if node.offset == "0" else f" + {cpp(node.offset)}"
            lines.append(
                f"const {kind}* const {writer.base(n)} = "
                f"data<const {kind}>({tensors[node.tensor]}){offset};"
            )
    for output in plan.outputs:
        kind, name = STORAGE[output.dtype], f"y{output.place}"
        lines.append(f"{kind}* const {name} = data<{kind}>(out{output.place});")
        if choices.pages == "huge" and output.level == Level.ELEMENT:
            lines.append(f"huge_pages({name}, size_t(out{output.place}.numel()) * sizeof({kind}));")
    return lines


def _call_values(plan: Plan, writer: Writer, stage: int) -> list[str]:
    """Values of the whole call that are known once `stage` sweeps have been made."""
    lines: list[str] = []
    for n in plan.nodes:
        node = plan.expression.nodes[n]
        if plan.level[n] != Level.CALL or plan.stage[n] != stage or isinstance(node, Const):
            continue
        kind, name = writer.row_type(n), writer.name(n)
        if isinstance(node, Reduce):
            lines.append(f"  const {kind} {name} = w{name[1:]};\n")
        else:
            text = writer.row_expression(n)
            lines.append(f"  [[maybe_unused]] const {kind} {name} = {text};\n")
        lines += [f"  {line}\n" for line in halves(writer, n)]
    return lines


def _numbers(plan: Plan, writer: Writer) -> list[str]:
    """Outputs that are one number."""
    return [
        f"  y{o.place}[0] = {writer.stored(o.dtype, f'{_plain_type(o.dtype)}({writer.row_value(o.node)})')};\n"
        for o in plan.outputs
        if o.level == Level.CALL
    ]


def _plain_type(dtype: str) -> str:
    return "float" if dtype == "bfloat16" else STORAGE[dtype]


def _cut(plan: Plan) -> bool:
    return plan.loops.family in ("pointwise", "full")


def _sweep(plan: Plan, stage: int, writer: Writer, choices: Choices) -> str:
    if isinstance(writer, ColumnWriter):
        sweep: Sweep = ColumnSweep(plan, stage, writer, choices)
        template = environment().get_template("column.cpp.j2")
    else:
        sweep = Sweep(plan, stage, writer, choices)
        template = environment().get_template("sweep.cpp.j2")
    next_pointers = _next_pointers(plan, sweep, writer) if choices.prefetch else {}
    sweep.ask_ahead(list(next_pointers))
    fulls = sweep.call_accumulators()
    declared = "".join(f"  {f.result_type} w{f.name[1:]};\n" for f in fulls)
    tiles = [tile for each in sweep.passes for _, tile in each.streams]
    in_output = _kept_in_output(sweep, choices)
    return declared + template.render(
        title=f"sweep {stage + 1} of {plan.stages}: {plan.loops.family}",
        segmented=bool(plan.loops.segment),
        cut=_cut(plan),
        fulls=fulls,
        kept=[] if in_output else sweep.kept,
        kept_outputs=[(t, n, in_output) for t, n in sweep.kept] if in_output else [],
        tiles=tiles,
        schedule="static" if choices.schedule == "static" else "dynamic, 1",
        pointers=_row_pointers(plan, sweep, writer),
        next_pointers=list(next_pointers.values()),
        before=sweep.before,
        passes=sweep.passes,
    )


def _kept_in_output(sweep: Sweep, choices: Choices) -> str | None:
    """Where a kept row may wait: in the row of the only output, which is overwritten later."""
    outputs = [o for o in sweep.outputs if o.level == Level.ELEMENT]
    if choices.keep != "output" or choices.stream or sweep.plan.loops.family == "column":
        return None
    if len(sweep.kept) != 1 or len(outputs) != 1 or sweep.plan.loops.segment:
        return None
    (kind, _), (output,) = sweep.kept[0], outputs
    return f"y{output.place}r" if STORAGE[output.dtype] == kind else None


def _row_pointers(plan: Plan, sweep: Sweep, writer: Writer) -> list[str]:
    lines: list[str] = []
    for n in sweep.loads():
        load = plan.expression.nodes[n]
        assert isinstance(load, Load)
        kind = STORAGE[load.dtype]
        place = writer.outer_place(load)
        more = "" if place == "0" else f" + {place}"
        lines.append(f"const {kind}* const {writer.pointer(n)} = {writer.base(n)}{more};")
    for output in sweep.outputs:
        if output.level == Level.ELEMENT:
            lines.append(_output_pointer(plan, output.place, STORAGE[output.dtype]))
    return lines


def _next_pointers(plan: Plan, sweep: Sweep, writer: Writer) -> dict[str, str]:
    """Pointers to the next row of what differs from row to row -> their definitions."""
    if plan.loops.family != "row" or plan.loops.segment or len(sweep.passes) < 2:
        return {}
    found: dict[str, str] = {}
    for n in sweep.loads():
        load = plan.expression.nodes[n]
        assert isinstance(load, Load)
        place = writer.outer_place(load, row="(r + (r + 1 < rows))")
        if place != "0":
            kind, name = STORAGE[load.dtype], f"{writer.base(n)}n"
            found[name] = f"const {kind}* const {name} = {writer.base(n)} + {place};"
    return found


def _output_pointer(plan: Plan, place: int, kind: str) -> str:
    if plan.loops.family == "column":
        offset = "(r * depth + m) * cols"
    elif plan.loops.segment:
        offset = "(r * segments + j) * cols"
    else:
        offset = "r * cols"
    return f"{kind}* const y{place}r = y{place} + {offset};"
