"""Sweeps of the `column` family: what is reduced lies between the rows and the columns."""

from __future__ import annotations

from .choices import Choices
from .ir import Reduce
from .lower import NotCovered
from .match import Level, Output, Plan
from .sweep import Pass, Sweep
from .writer import ColumnWriter


class ColumnSweep(Sweep):
    """A task takes `WIDTH` neighbouring columns down; each lane is a row of its own."""

    def __init__(self, plan: Plan, stage: int, writer: ColumnWriter, choices: Choices):
        if plan.full:
            raise NotCovered("a reduction of everything beside one over dimensions in the middle")
        super().__init__(plan, stage, writer, choices)

    def row_place(self) -> str:
        return "m * WIDTH + l"

    def _position(self, reduce: Reduce) -> str:
        if self.writer.axes.resolve(reduce.label) != self.plan.loops.reduced:
            raise NotCovered(f"{reduce.function} over dimensions in another order than in memory")
        return "m"

    def _row_statements(self, nodes: list[int]) -> list[str]:
        """Values of each lane, in one loop over the lanes; results of reductions among them."""
        arrays: list[str] = []
        lines: list[str] = []
        for n in nodes:
            name, kind = self.writer.name(n), self.writer.row_type(n)
            arrays.append(f"{kind} {name}[WIDTH];")
            node = self.nodes[n]
            if isinstance(node, Reduce):
                place = "_at" if node.function.startswith("arg") else ""
                lines.append(f"{name}[l] = a{name[1:]}{place}[l];")
            else:
                lines.append(f"{name}[l] = {self.writer.row_expression(n)};")
            if self.nodes[n].kind != "f32":
                continue
            arrays.append(f"[[maybe_unused]] float {name}f[WIDTH];")
            lines.append(f"{name}f[l] = float({name}[l]);")
            if self.writer.low(n):
                self.writer.pieces.add("rest")
                arrays.append(f"[[maybe_unused]] float {name}l[WIDTH];")
                lines.append(f"{name}l[l] = rest({name}[l]);")
            if self.writer.reciprocal(n):
                arrays.append(f"[[maybe_unused]] float {name}q[WIDTH];")
                lines.append(f"{name}q[l] = float(1.0 / {name}[l]);")
        if not lines:
            return []
        loop = ["for (int l = 0; l < width; ++l) {", *(f"  {line}" for line in lines), "}"]
        return [*arrays, *loop]

    def _store(self, output: Output, found: Pass) -> None:
        value = self.writer.element(output.node)
        found.body.append(f"y{output.place}r[i] = {self.writer.stored(output.dtype, value)};")

    def _finish_rows(self) -> None:
        lines = [
            f"y{o.place}[r * cols + from + l] = {self.writer.stored(o.dtype, self._narrow(o))};"
            for o in self.outputs
            if o.level == Level.ROW
        ]
        if lines:
            loop = ["for (int l = 0; l < width; ++l) {", *(f"  {line}" for line in lines), "}"]
            if not self.passes:
                self.passes.append(Pass())
            self.passes[-1].after += loop
