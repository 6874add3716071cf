"""One sweep over the data as text for the templates: what is computed where, in which pass."""

from __future__ import annotations

from dataclasses import dataclass, field

from .accumulate import Accumulator, accumulator
from .choices import Choices
from .ir import Apply, Load, Pick, Reduce, operands
from .lower import NotCovered
from .match import Level, Output, Plan
from .scalar import CPP_TYPES, FUNCTIONS
from .writer import Writer


@dataclass
class Accumulated:
    """A reduction in one pass: variable, lanes and texts ready for a template."""

    type: str
    variable: str
    start: str
    lanes: list[str]
    merge: str
    result: str
    name: str
    result_type: str
    full: bool
    join: str


@dataclass
class Pass:
    """One loop over the elements of a row, and what follows it."""

    reductions: list[Accumulated] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    segment: list[str] = field(default_factory=list)
    ahead: list[str] = field(default_factory=list)
    """Statements that ask memory for the next row."""
    streams: list[tuple[str, str]] = field(default_factory=list)
    """(place in the output, tile) of every output that is written past the caches."""
    after: list[str] = field(default_factory=list)
    """Statements about the row once the reductions are known."""

    @property
    def loops(self) -> bool:
        """Whether there is anything to do for the elements."""
        return bool(self.body)


class Sweep:
    """Builds the text of one stage of a plan."""

    def __init__(self, plan: Plan, stage: int, writer: Writer, choices: Choices):
        self.plan = plan
        self.stage = stage
        self.writer = writer
        self.choices = choices
        self.nodes = plan.expression.nodes
        self.outputs = [o for o in plan.outputs if self._mine(o)]
        self.fulls = [n for n in plan.full if plan.stage[n] - 1 == stage]
        self.passes: list[Pass] = []
        self.before: list[str] = []
        """Statements at the start of every row."""
        self.kept: list[tuple[str, str]] = []
        """(type, name) of the rows that are kept from one pass to the next."""
        self._build()

    def ask_ahead(self, pointers: list[str]) -> None:
        """Have the busiest pass, but the first, prefetch behind `pointers` of the next row."""
        later = [each for each in self.passes[1:] if each.loops]
        if not later or not pointers:
            return
        self.writer.pieces.add("ahead")
        busiest = max(later, key=lambda each: sum("(" in line for line in each.body))
        busiest.ahead = [f"prefetch<LANES>({pointer} + i);" for pointer in pointers]

    def _mine(self, output: Output) -> bool:
        return output.level > Level.CALL and self.plan.stage[output.node] == self.stage

    def _build(self) -> None:
        plan = self.plan
        roots = [o.node for o in self.outputs] + [operands(self.nodes[n])[0] for n in self.fulls]
        needed = self._below(roots)
        last = max((plan.depth[n] for n in needed), default=0)
        rows = [n for n in sorted(needed) if plan.level[n] == Level.ROW]
        plans = [self._roots_of_pass(p, needed) for p in range(last + 1)]
        keep = self._choose_kept(plans)
        self.before = self._row_statements([n for n in rows if plan.depth[n] == 0])
        for p, pass_roots in enumerate(plans):
            found = self._pass(p, pass_roots, keep)
            found.after += self._row_statements([n for n in rows if plan.depth[n] == p + 1])
            if found.loops or found.after:
                self.passes.append(found)
        self._finish_rows()

    def _below(self, roots: list[int]) -> set[int]:
        """Everything that a row needs for `roots`; what the call knows already is left out."""
        seen: set[int] = set()
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if node in seen or self.plan.level[node] == Level.CALL:
                continue
            seen.add(node)
            waiting += operands(self.nodes[node])
        return seen

    def _roots_of_pass(self, number: int, needed: set[int]) -> list[int]:
        """Elements that pass `number` must compute."""
        plan = self.plan
        roots: list[int] = []
        for n in sorted(needed):
            node = self.nodes[n]
            if isinstance(node, Reduce) and n not in plan.full and plan.depth[n] == number + 1:
                roots.append(node.arg)
        for n in self.fulls:
            arg = operands(self.nodes[n])[0]
            if self._of_elements(n) and plan.depth[arg] == number:
                roots.append(arg)
        for output in self.outputs:
            if output.level == Level.ELEMENT and plan.depth[output.node] == number:
                roots.append(output.node)
        return roots

    def _of_elements(self, full: int) -> bool:
        """Whether a full reduction ranges over elements, not over one value of each row."""
        node = self.nodes[full]
        assert isinstance(node, Reduce)
        return bool(set(self.writer.axes.resolve(node.domain)) & set(self.plan.loops.row))

    def _elements(self, roots: list[int], cut: set[int]) -> list[int]:
        """The element nodes that `roots` need, in order; `cut` nodes are read back, not computed."""
        seen: set[int] = set()
        waiting = [n for n in roots if self.plan.level[n] == Level.ELEMENT]
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node in cut:
                continue
            below = operands(self.nodes[node])
            waiting += [n for n in below if self.plan.level[n] == Level.ELEMENT]
        return sorted(seen)

    def _choose_kept(self, plans: list[list[int]]) -> dict[int, set[int]]:
        """Per pass, the nodes whose value of an earlier pass is read back rather than recomputed."""
        if self.choices.keep == "recompute":
            return {p: set() for p in range(len(plans))}
        computed: set[int] = set()
        keep: dict[int, set[int]] = {}
        for p, roots in enumerate(plans):
            keep[p] = set()
            waiting = [n for n in roots if self.plan.level[n] == Level.ELEMENT]
            while waiting:
                node = waiting.pop()
                if node in computed and self._dear(node):
                    keep[p].add(node)
                    continue
                below = operands(self.nodes[node])
                waiting += [n for n in below if self.plan.level[n] == Level.ELEMENT]
            computed |= set(self._elements(roots, keep[p]))
        return keep

    def _dear(self, node: int) -> bool:
        """Whether computing a node again costs more than reading it back."""
        found = self.nodes[node]
        below = [n for n in operands(found) if self.plan.level[n] == Level.ELEMENT]
        if isinstance(found, Apply) and FUNCTIONS[found.function].dear:
            return True
        return any(self._dear(n) for n in below)

    def _pass(self, number: int, roots: list[int], keep: dict[int, set[int]]) -> Pass:
        found = Pass()
        cut = keep[number]
        later = {n for p, kept in keep.items() if p > number for n in kept}
        for n in self._elements(roots, cut):
            name, kind = self.writer.name(n), CPP_TYPES[self.nodes[n].kind]
            if n in cut:
                found.body.append(f"const {kind} {name} = {self._kept_place(n)};")
                continue
            found.body.append(f"const {kind} {name} = {self.writer.element_expression(n)};")
            if n in later and self._kept_first(n, number, keep):
                found.body.append(f"{self._kept_place(n)} = {name};")
        for n in self._reductions(number):
            found.reductions.append(self._reduction(n, found.body))
        for output in self.outputs:
            if output.level == Level.ELEMENT and self.plan.depth[output.node] == number:
                self._store(output, found)
        segments = self._segment_nodes(roots, cut)
        found.segment = self._row_statements(segments)
        return found

    def _segment_nodes(self, roots: list[int], cut: set[int]) -> list[int]:
        seen: set[int] = set()
        waiting = [n for n in roots if n not in cut]
        while waiting:
            node = waiting.pop()
            if node in seen or self.plan.level[node] < Level.SEGMENT:
                continue
            seen.add(node)
            if node not in cut:
                waiting += operands(self.nodes[node])
        return sorted(n for n in seen if self.plan.level[n] == Level.SEGMENT)

    def _kept_first(self, node: int, number: int, keep: dict[int, set[int]]) -> bool:
        """Whether pass `number` computes a kept node; from then on it is only read."""
        return all(node not in keep[p] for p in range(number + 1))

    def _kept_place(self, node: int) -> str:
        name = f"k{self.writer.name(node)[1:]}"
        kind = CPP_TYPES[self.nodes[node].kind]
        if (kind, name) not in self.kept:
            self.kept.append((kind, name))
        return f"{name}[{self.row_place()}]"

    def row_place(self) -> str:
        """The place of an element within its row."""
        return "j * cols + i" if self.plan.loops.segment else "i"

    def _reductions(self, number: int) -> list[int]:
        plan = self.plan
        rows = [
            n
            for n in plan.nodes
            if isinstance(self.nodes[n], Reduce)
            and n not in plan.full
            and plan.depth[n] == number + 1
            and n in self._below([o.node for o in self.outputs] + self._full_args())
        ]
        fulls = [
            n
            for n in self.fulls
            if self._of_elements(n) and plan.depth[operands(self.nodes[n])[0]] == number
        ]
        return rows + fulls

    def _full_args(self) -> list[int]:
        return [operands(self.nodes[n])[0] for n in self.fulls]

    def accumulator_of(self, node: int) -> Accumulator:
        """How a reduction is accumulated here."""
        reduce = self.nodes[node]
        assert isinstance(reduce, Reduce)
        in_double = self.choices.sum_in == "double"
        found = accumulator(reduce, self.nodes[reduce.arg].kind, in_double=in_double)
        self.writer.pieces.update(found.pieces)
        return found

    def _reduction(self, node: int, body: list[str]) -> Accumulated:
        reduce = self.nodes[node]
        assert isinstance(reduce, Reduce)
        texts = self.accumulator_of(node)
        full = node in self.plan.full
        name = self.writer.name(node)
        variable, lanes = f"t{name[1:]}", f"a{name[1:]}"
        at = self._position(reduce) if reduce.function.startswith("arg") else ""
        x = self.writer.element(reduce.arg)
        body.append(texts.update.format(a=lanes, x=x, at=at))
        return Accumulated(
            type=texts.type,
            variable=variable,
            start=texts.start,
            lanes=[lane.format(a=lanes) for lane in texts.lanes],
            merge=texts.merge.format(v=variable, a=lanes),
            result=texts.value.format(v=variable),
            name=name,
            result_type=self.writer.row_type(node),
            full=full,
            join=texts.join.format(v=variable, x="other"),
        )

    def _position(self, reduce: Reduce) -> str:
        """What `argmax` returns: the place along the reduced dimensions, in their order."""
        loops = self.plan.loops
        label = self.writer.axes.resolve(reduce.label)
        if label == loops.row:
            return self.row_place()
        if label == (*loops.outer, *loops.row):
            return "r * cols + i"
        raise NotCovered(f"{reduce.function} over dimensions in another order than in memory")

    def _row_statements(self, nodes: list[int]) -> list[str]:
        """Definitions of values of a row or segment, with the halves that elements read."""
        statements: list[str] = []
        for n in nodes:
            name, found = self.writer.name(n), self.nodes[n]
            if isinstance(found, Pick):
                statements += self._picked(n, found)
            elif not isinstance(found, Reduce):
                kind = self.writer.row_type(n)
                statements.append(f"const {kind} {name} = {self.writer.row_expression(n)};")
            statements += halves(self.writer, n)
        return statements

    def _picked(self, node: int, pick: Pick) -> list[str]:
        """One element of the row, computed by itself."""
        name, kind = self.writer.name(node), self.writer.row_type(node)
        if self.plan.level[pick.arg] < Level.ELEMENT:
            return [f"const {kind} {name} = {self.writer.row_value(pick.arg)};"]
        self.writer.pieces.add("checked")
        lines = [
            f"{kind} {name};",
            "{",
            f"  const int64_t i = checked({self.writer.row_value(pick.index)}, cols, outside);",
        ]
        for n in self._elements([pick.arg], set()):
            type_ = CPP_TYPES[self.nodes[n].kind]
            text = self.writer.element_expression(n)
            lines.append(f"  const {type_} {self.writer.name(n)} = {text};")
        return [*lines, f"  {name} = {self.writer.element(pick.arg)};", "}"]

    def _store(self, output: Output, found: Pass) -> None:
        value = self.writer.element(output.node)
        place = f"y{output.place}r"
        if self.choices.stream and output.dtype == "float32":
            found.body.append(f"tile{output.place}[i - b] = {value};")
            found.streams.append((f"{place} + b", f"tile{output.place}"))
            return
        found.body.append(f"{place}[i] = {self.writer.stored(output.dtype, value)};")

    def _finish_rows(self) -> None:
        """Outputs of one value a row, and full reductions of such values."""
        lines: list[str] = []
        for output in self.outputs:
            if output.level == Level.ROW:
                text = self.writer.stored(output.dtype, self._narrow(output))
                lines.append(f"y{output.place}[r] = {text};")
        for n in self.fulls:
            if not self._of_elements(n):
                arg = operands(self.nodes[n])[0]
                texts = self.accumulator_of(n)
                x = self.writer.row_value(arg)
                if texts.type == "Best":
                    x = f"Best{{double({x}), r}}"
                lines.append(texts.join.format(v=f"t{self.writer.name(n)[1:]}", x=x))
        if lines:
            if not self.passes:
                self.passes.append(Pass())
            self.passes[-1].after += lines

    def _narrow(self, output: Output) -> str:
        text = self.writer.row_value(output.node)
        return f"float({text})" if output.dtype in ("float32", "bfloat16") else text

    def call_accumulators(self) -> list[Accumulated]:
        """The full reductions of this sweep, as every thread keeps them."""
        return [self._reduction(n, []) for n in self.fulls]

    def loads(self) -> list[int]:
        """Loads that rows read through a pointer of their own."""
        roots = [o.node for o in self.outputs] + self._full_args()
        below = self._below(roots)
        return [
            n
            for n in sorted(below)
            if isinstance(self.nodes[n], Load) and self.plan.level[n] == Level.ELEMENT
        ]


def halves(writer: Writer, node: int) -> list[str]:
    """A value as elements read it: its float halves, and its reciprocal."""
    if writer.nodes[node].kind != "f32":
        return []
    name = writer.name(node)
    lines = [f"[[maybe_unused]] const float {name}f = float({name});"]
    if writer.low(node):
        writer.pieces.add("rest")
        lines.append(f"[[maybe_unused]] const float {name}l = rest({name});")
    if writer.reciprocal(node):
        lines.append(f"[[maybe_unused]] const float {name}q = float(1.0 / {name});")
    return lines
