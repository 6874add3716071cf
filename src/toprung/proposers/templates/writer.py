"""Nodes as C++ text.

Elements are computed in the kind of their node. What is computed once for a row or a call is kept
in double where it stands for a float: that costs nothing there, and an element that subtracts such
a value subtracts both halves of it, so that large offsets do not eat the digits of small distances.
"""

from __future__ import annotations

import math

from .axes import Label
from .bounds import Bounds
from .choices import Choices
from .ir import Apply, Const, Index, Load, Node, Pick, Reduce, Size
from .lower import NotCovered
from .match import Level, Plan, strides
from .scalar import CPP_TYPES, FUNCTIONS
from .sizes import cpp, product

STORAGE: dict[str, str] = {
    "float32": "float",
    "float64": "double",
    "bfloat16": "uint16_t",
    "int64": "int64_t",
    "int32": "int32_t",
    "int16": "int16_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "bool": "bool",
}
"""Element type of a tensor -> how C++ holds it."""

KEEPS_EXACT = ("neg", "abs", "max", "min", "where")


class Writer:
    """Writes the nodes of one plan. `suffix` follows every name of a row's value: a column kernel
    keeps a value for each lane."""

    def __init__(self, plan: Plan, choices: Choices, suffix: str = ""):
        self.plan = plan
        self.divide = choices.divide
        self.bounds = Bounds(plan.expression)
        self.nodes = plan.expression.nodes
        self.axes = plan.expression.axes
        self.suffix = suffix
        self.pieces: set[str] = set()
        self._numbers = {node: place for place, node in enumerate(plan.nodes)}
        self._exact: dict[int, bool] = {}

    def name(self, node: int) -> str:
        """The variable of a node."""
        return f"v{self._numbers[node]}"

    def row_value(self, node: int) -> str:
        """How a value of a call or row is read, in full precision."""
        if isinstance(self.nodes[node], Const):
            return self.literal(node, wide=True)
        suffix = self.suffix if self.plan.level[node] == Level.ROW else ""
        return self.name(node) + suffix

    def row_type(self, node: int) -> str:
        """The C++ type of a value of a call or row."""
        kind = self.nodes[node].kind
        return "double" if kind == "f32" else CPP_TYPES[kind]

    def high(self, node: int) -> str:
        """A value of a call or row as elements see it."""
        if isinstance(self.nodes[node], Const):
            return self.literal(node, wide=False)
        if self.nodes[node].kind != "f32":
            return self.row_value(node)
        suffix = self.suffix if self.plan.level[node] == Level.ROW else ""
        return self.name(node) + "f" + suffix

    def low(self, node: int) -> str | None:
        """What `high` leaves out, if it can be anything."""
        found = self.nodes[node]
        if found.kind != "f32" or isinstance(found, Const) or self.exact(node):
            return None
        suffix = self.suffix if self.plan.level[node] == Level.ROW else ""
        return self.name(node) + "l" + suffix

    def element(self, node: int) -> str:
        """How an element's expression reads a node of any level."""
        if self.plan.level[node] < Level.ELEMENT:
            return self.high(node)
        return self.name(node)

    def literal(self, node: int, *, wide: bool) -> str:
        """A constant; `wide` constants are double where they stand for a float."""
        const = self.nodes[node]
        assert isinstance(const, Const)
        value = const.value
        if const.kind == "b8":
            return "true" if value else "false"
        if const.kind == "i64":
            return f"int64_t({int(value)})"
        narrow = const.kind == "f32" and not wide
        if not math.isfinite(value):
            name = "NAN" if math.isnan(value) else "INF" if value > 0 else "-INF"
            return f"float({name})" if narrow else name
        text = f"{value:.9g}" if narrow else repr(float(value))
        text = text if any(mark in text for mark in ".en") else f"{text}.0"
        return f"{text}f" if narrow else text

    def exact(self, node: int) -> bool:
        """Whether a float value of a call or row is the same once rounded to float."""
        if node not in self._exact:
            self._exact[node] = self._is_exact(self.nodes[node])
        return self._exact[node]

    def _is_exact(self, node: Node) -> bool:
        match node:
            case Load() | Pick():
                return True
            case Const(value=value):
                return math.isinf(value) or float(f"{value:.9g}") == value == _rounded(value)
            case Reduce(function="max" | "min", arg=arg):
                return self.plan.level[arg] == Level.ELEMENT or self.exact(arg)
            case Apply(function="as_bf16" | "as_f32"):
                return True
            case Apply(function=function, args=args):
                values = args[1:] if function == "where" else args
                return function in KEEPS_EXACT and all(self.exact(arg) for arg in values)
        return False

    def reciprocal(self, node: int) -> str | None:
        """One over a value of a call or row, if elements may be multiplied by that instead."""
        if self.divide == "exact" or self.nodes[node].kind != "f32" or not self.bounds.safe(node):
            return None
        if isinstance(self.nodes[node], Const):
            return None
        suffix = self.suffix if self.plan.level[node] == Level.ROW else ""
        return self.name(node) + "q" + suffix

    def row_expression(self, node: int) -> str:
        """The right-hand side of a call's or row's value; reductions are no expressions."""
        found = self.nodes[node]
        match found:
            case Const():
                return self.literal(node, wide=True)
            case Size(expression=expression):
                return f"{self.row_type(node)}({cpp(expression)})"
            case Load():
                return self.loaded(found, f"p{self._numbers[node]}[{self.outer_place(found)}]")
            case Index(start=start, step=step):
                return _affine(start, step, self.index_place(found))
            case Apply(function=function, args=args):
                operands = [self._cast_row(arg, found) for arg in args]
                return self._function(function, operands)
        raise NotCovered("a reduction inside an expression")

    def element_expression(self, node: int) -> str:
        """The right-hand side of an element's value; `i` is its place in the row."""
        found = self.nodes[node]
        match found:
            case Load():
                return self.loaded(found, f"{self.pointer(node)}[{self.inner_place(found)}]")
            case Index(start=start, step=step):
                return _affine(start, step, self.index_place(found))
            case Apply(function="add" | "sub" as function, args=(one, other), kind="f32"):
                return self._sum(function == "sub", one, other)
            case Apply(function="div", args=(one, other), kind="f32") if self.plan.level[
                other
            ] < Level.ELEMENT and self.reciprocal(other):
                return f"{_atom(self.element(one))} * {self.reciprocal(other)}"
            case Apply(function=function, args=args):
                operands = [self._cast_element(arg, found) for arg in args]
                return self._function(function, operands)
        raise NotCovered("a reduction inside an expression")

    def _function(self, function: str, operands: list[str]) -> str:
        entry = FUNCTIONS[function]
        self.pieces.update(entry.needs)
        if function == "as_bf16":
            self.pieces.add("rounded_to_bf16")
        return entry.text.format(*(_atom(text) for text in operands))

    def _sum(self, minus: bool, one: int, other: int) -> str:
        """`one ± other`, where one of them may be a row's value in two halves."""
        sign = "-" if minus else "+"
        text = f"{_atom(self.element(one))} {sign} {_atom(self.element(other))}"
        if self.plan.level[other] < Level.ELEMENT and (low := self.low(other)):
            return f"({text}) {sign} {low}"
        if self.plan.level[one] < Level.ELEMENT and (low := self.low(one)):
            return f"({text}) + {low}"
        return text

    def _cast_row(self, arg: int, user: Apply) -> str:
        """An operand; truth values become numbers when the function casts."""
        text = self.row_value(arg)
        if user.function == "cast":
            return _number(text, self.nodes[arg].kind, self._row_name(user))
        return text

    def _row_name(self, node: Node) -> str:
        return "double" if node.kind == "f32" else CPP_TYPES[node.kind]

    def _cast_element(self, arg: int, user: Apply) -> str:
        text = self.element(arg)
        if user.function == "cast":
            return _number(text, self.nodes[arg].kind, CPP_TYPES[user.kind])
        return text

    def loaded(self, load: Load, text: str) -> str:
        """An element of memory as a number of the load's kind."""
        if load.dtype == "bfloat16":
            self.pieces.add("bf16")
            return f"widened({text})"
        if load.kind == "i64" and load.dtype != "int64":
            return f"int64_t({text})"
        return text

    def stored(self, dtype: str, text: str) -> str:
        """A number as an element of memory."""
        if dtype == "bfloat16":
            self.pieces.add("bf16")
            return f"narrowed({text})"
        return f"{STORAGE[dtype]}({text})" if dtype not in ("float32", "bool") else text

    def pointer(self, node: int) -> str:
        """The pointer through which an element node is read."""
        return f"p{self._numbers[node]}r"

    def base(self, node: int) -> str:
        """The pointer of a load for the whole call."""
        return f"p{self._numbers[node]}"

    def outer_place(self, load: Load, row: str = "r") -> str:
        """Where a load's element, or for element loads its row, lies from the base pointer."""
        loops = [(label, row if name == "r" else name) for label, name in self.outer_loops()]
        return flat_place(self, strides(self.axes, load), loops)

    def inner_place(self, load: Load) -> str:
        """The place of an element behind its row pointer."""
        steps = strides(self.axes, load)
        return "i" if set(steps) & set(self.plan.loops.element) else "0"

    def index_place(self, index: Index) -> str:
        """The position along a label, in terms of all loops."""
        steps: dict[int, str] = {}
        step = "1"
        for axis in reversed(self.axes.resolve(index.label)):
            steps[axis] = step
            step = f"({step})*({self.axes[axis].size})"
        return flat_place(self, steps, [*self.outer_loops(), (self.plan.loops.element, "i")])

    def outer_loops(self) -> list[tuple[Label, str]]:
        """The loops around a row's elements, and their variables."""
        loops = self.plan.loops
        return [(loops.outer, "r"), (loops.segment, "j")]


class ColumnWriter(Writer):
    """Every lane is a row: values of a row are arrays, and elements lie `m` steps down a column."""

    def __init__(self, plan: Plan, choices: Choices):
        super().__init__(plan, choices, "[l]")

    def outer_loops(self) -> list[tuple[Label, str]]:
        loops = self.plan.loops
        return [(loops.outer, "r"), (loops.reduced, "m")]

    def outer_place(self, load: Load, row: str = "r") -> str:
        steps = strides(self.axes, load)
        loops = [(label, row if name == "r" else name) for label, name in self.outer_loops()]
        if not set(steps) & set(self.plan.loops.reduced):  # a value of each lane
            loops = [*loops, (self.plan.loops.element, "(from + l)")]
        return flat_place(self, steps, loops)


def flat_place(writer: Writer, steps: dict[int, str], loops: list[tuple[Label, str]]) -> str:
    """The place that loop variables name, each running over the axes of a label at once."""
    terms: list[str] = []
    for label, variable in loops:
        terms += _terms(writer, {a: s for a, s in steps.items() if a in label}, label, variable)
    return " + ".join(terms) or "0"


def _terms(writer: Writer, steps: dict[int, str], label: Label, variable: str) -> list[str]:
    """Axes that follow one another without gaps are one term; others are told apart by division."""
    axes = writer.axes
    runs: list[list[int]] = []
    for axis in label:
        if axis not in steps:
            continue
        last = runs[-1][-1] if runs else None
        neighbour = last is not None and label.index(axis) == label.index(last) + 1
        if neighbour and last is not None:
            expected = f"({steps[axis]})*({axes[axis].size})"
            if axes.agree(steps[last], expected):
                runs[-1].append(axis)
                continue
        runs.append([axis])
    terms: list[str] = []
    for run in runs:
        after = label[label.index(run[-1]) + 1 :]
        index = variable
        if after:
            index = f"{index} / {_atom(cpp(axes.size(after)))}"
        if run[0] != label[0]:
            span = product(tuple(axes[a].size for a in run))
            index = f"{_atom(index)} % {_atom(cpp(span))}"
        stride = cpp(steps[run[-1]])
        terms.append(index if stride == "1" else f"{_atom(index)} * {_atom(stride)}")
    return terms


def _affine(start: str, step: str, place: str) -> str:
    scaled = place if step == "1" else f"{_atom(cpp(step))} * {_atom(place)}"
    return scaled if start == "0" else f"{_atom(cpp(start))} + {_atom(scaled)}"


def _number(text: str, kind: str, to: str) -> str:
    if kind == "b8" and to in ("float", "double"):
        return f"({text} ? {to}(1) : {to}(0))"
    return f"{to}({text})"


def _atom(text: str) -> str:
    """`text` in parentheses unless it is one term."""
    if text.replace(".", "").replace("_", "").isalnum() and not text.startswith("-"):
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and letter in " -" and place >= 0:
            return f"({text})"
    return text


def _rounded(value: float) -> float:
    """`value` as the nearest float, without numpy."""
    import struct

    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
