"""Which family a graph belongs to, and how its axes become loops.

Reductions decide. Without any it is `pointwise`; over everything, `full`; over the last dimensions,
`row`; over dimensions that others follow, `column`. Whatever fits none raises `NotCovered`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from .axes import Axes, Label
from .graph import Graph
from .ir import Apply, Expression, Index, Load, Pick, Reduce, Ref, operands
from .lower import NotCovered, lower
from .order import domain_order

Family = Literal["pointwise", "full", "row", "column"]


class Level(IntEnum):
    """Where a node is computed: once, for each row, for each segment of a row, for each element."""

    CALL = 0
    ROW = 1
    SEGMENT = 2
    ELEMENT = 3


@dataclass(frozen=True)
class Loops:
    """The axes of all loops, outermost first. `element` axes are neighbours in memory.

    In the `row` family, rows over `outer`, and in each row segments over `segment`, elements over
    `element`; those two are what is reduced. In the `column` family, `reduced` lies between `outer` and
    `element`, and every element of the innermost loop is a row of its own.
    """

    family: Family
    outer: Label
    segment: Label
    element: Label
    reduced: Label = ()

    @property
    def row(self) -> Label:
        """Axes within one row."""
        return (*self.segment, *self.element)


@dataclass(frozen=True, slots=True)
class Output:
    """A tensor that is returned: leaf number, node, element type, and what it has elements for."""

    place: int
    node: int
    dtype: str
    level: Level


@dataclass(frozen=True)
class Plan:
    """A matched graph: loops, and for every node where, in which stage and after which pass.

    A stage is one sweep over the data; the next stage begins when its full reductions are known.
    Within a stage, the passes over a row are counted from 0, and a node of depth `d` can be
    computed from pass `d` on.
    """

    expression: Expression
    loops: Loops
    nodes: tuple[int, ...]
    """Everything that the outputs need, in order."""
    level: dict[int, Level]
    stage: dict[int, int]
    depth: dict[int, int]
    full: frozenset[int]
    """Reductions whose result is one number for the whole call."""

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs and what they range over."""
        loops, axes = self.loops, self.expression.axes
        everything = {*loops.outer, *loops.row, *loops.reduced}
        found: list[Output] = []
        for place, ref in enumerate(self.expression.outputs):
            own = set(order_of(ref, axes))
            level = Level.ELEMENT if own == everything else Level.ROW
            found.append(Output(place, ref.node, ref.dtype, level if own else Level.CALL))
        return tuple(found)

    @property
    def stages(self) -> int:
        """How many sweeps there are; the outputs of the last one need no further reduction."""
        ends = [self.stage[node] for node in self.full]
        last = [self.stage[o.node] + 1 for o in self.outputs if o.level > Level.CALL]
        return max(last + ends, default=0)


def plan_of(graph: Graph) -> Plan:
    """The plan of a graph; raises `NotCovered`."""
    try:
        return match(lower(graph))
    except NotCovered as shared:
        try:
            return match(lower(graph, apart=True))
        except NotCovered:
            raise shared from None


def match(expression: Expression) -> Plan:
    """The plan of an expression; raises `NotCovered`."""
    nodes = _needed(expression)
    _check_outputs(expression, nodes)
    domain = domain_order(expression, nodes)
    reductions = {n: _axes_of(expression, n) for n in nodes if _reduces(expression, n)}
    loops = _loops(expression, nodes, domain, reductions)
    inner = set(loops.reduced or loops.row)
    everything = loops.family in ("pointwise", "full")
    full = frozenset(
        n
        for n, axes in reductions.items()
        if isinstance(expression.nodes[n], Reduce) and (everything or not axes <= inner)
    )
    plan = _scheduled(expression, loops, nodes, full)
    for ref in expression.outputs:
        if not order_of(ref, expression.axes) and plan.level[ref.node] > Level.CALL:
            raise NotCovered("a number that is computed anew for each row")
    return plan


def _needed(expression: Expression) -> tuple[int, ...]:
    waiting = [ref.node for ref in expression.outputs]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += operands(expression.nodes[node])
    return tuple(sorted(seen))


def _check_outputs(expression: Expression, nodes: tuple[int, ...]) -> None:
    if not expression.outputs:
        raise NotCovered("it returns no tensor")
    for ref in expression.outputs:
        if isinstance(expression.nodes[ref.node], Load):
            raise NotCovered("it returns one of its inputs, or a view of it")
    if not any(isinstance(expression.nodes[n], Apply | Reduce | Pick) for n in nodes):
        raise NotCovered("it computes nothing")


def _reduces(expression: Expression, place: int) -> bool:
    return isinstance(expression.nodes[place], Reduce | Pick)


def _axes_of(expression: Expression, place: int) -> set[int]:
    node = expression.nodes[place]
    assert isinstance(node, Reduce | Pick)
    return set(expression.axes.resolve(node.label))


def _loops(
    expression: Expression, nodes: tuple[int, ...], domain: Label, reductions: dict[int, set[int]]
) -> Loops:
    everything = set(domain)
    proper = {frozenset(axes) for axes in reductions.values() if axes != everything}
    picks = any(isinstance(expression.nodes[n], Pick) for n in reductions)
    if not proper and not picks:
        _check_shapes(expression, (everything, set()))
        family = "full" if reductions else "pointwise"
        outer, element = _split(expression, nodes, domain, 0)
        return Loops(family, outer, (), element)
    inner = _inner(expression, domain, reductions, proper)
    kept = everything - inner
    _check_shapes(expression, (everything, kept, set()))
    if set(domain[len(kept) :]) == inner:
        outer, row = domain[: len(kept)], domain[len(kept) :]
        segment, element = _split(expression, nodes, row, 0)
        if segment and picks:
            raise NotCovered("aten.gather from a row whose elements need several indices")
        return Loops("row", outer, segment, element)
    start = min(domain.index(axis) for axis in inner)
    stop = start + len(inner)
    if (
        set(domain[start:stop]) != inner
        or picks
        or len(proper) > 1
        or everything in reductions.values()
    ):
        raise NotCovered("reductions over dimensions that do not lie beside one another in memory")
    spare, element = _split(expression, nodes, domain[stop:], 0)
    if spare:
        raise NotCovered("a reduction over dimensions that others follow, with mixed broadcasting")
    return Loops("column", domain[:start], (), element, domain[start:stop])


def _inner(
    expression: Expression,
    domain: Label,
    reductions: dict[int, set[int]],
    proper: set[frozenset[int]],
) -> set[int]:
    """The axes of one row: what is reduced first; whatever else is reduced comes after it."""
    everything = set(domain)
    if not proper:  # rows from which elements are picked
        return next(iter(reductions.values()))
    if len(proper) == 1:
        return set(next(iter(proper)))
    first, second, *more = sorted(proper, key=lambda axes: _first_use(reductions, axes))
    domains = {
        n: set(expression.axes.resolve(expression.nodes[n].domain))  # type: ignore[union-attr]
        for n, axes in reductions.items()
        if axes == second and isinstance(expression.nodes[n], Reduce)
    }
    if more or first | second != everything or first & second:
        raise NotCovered("reductions over different dimensions")
    if any(axes != set(second) for axes in domains.values()):
        raise NotCovered("reductions over different dimensions")
    return set(first)


def _first_use(reductions: dict[int, set[int]], axes: frozenset[int]) -> int:
    return min(n for n, found in reductions.items() if found == axes)


def _check_shapes(expression: Expression, allowed: tuple[set[int], ...]) -> None:
    """An output has an element for each iteration, for each row, or is one number."""
    for ref in expression.outputs:
        axes = [axis for label in expression.axes.dims(ref.dims) for axis in label]
        if set(axes) not in allowed:
            raise NotCovered("outputs that do not range over the same dimensions")


def _split(
    expression: Expression, nodes: tuple[int, ...], axes: Label, least: int
) -> tuple[Label, Label]:
    """Split `axes` so that the second part is one loop in which every tensor is either contiguous
    or constant; the second part is as long as can be."""
    for start in range(least, len(axes) + 1):
        if all(_regular(expression, n, axes[start:]) for n in nodes):
            if start == len(axes) and axes:
                break
            return axes[:start], axes[start:]
    raise NotCovered("a tensor whose last dimension is not contiguous in memory")


def _regular(expression: Expression, place: int, axes: Label) -> bool:
    node = expression.nodes[place]
    if isinstance(node, Index):
        label = expression.axes.resolve(node.label)
        return not set(label) & set(axes) or label == axes
    if not isinstance(node, Load):
        return True
    steps = strides(expression.axes, node)
    here = [axis for axis in axes if axis in steps]
    return not here or (tuple(here) == axes and contiguous(expression.axes, steps, axes))


def strides(axes: Axes, load: Load) -> dict[int, str]:
    """Axis -> stride of a load, in elements; axes on which it does not depend are absent."""
    found: dict[int, str] = {}
    for label, stride in load.steps:
        step = stride
        for axis in reversed(axes.resolve(label)):
            if axis in found:
                raise NotCovered("a tensor that meets its own transpose")
            found[axis] = step
            step = axes[axis].size if step == "1" else f"({step})*({axes[axis].size})"
    return found


def contiguous(axes: Axes, steps: dict[int, str], label: Label) -> bool:
    """Whether the axes of `label` follow one another without gaps, the last with stride 1."""
    expected = "1"
    for axis in reversed(label):
        if not axes.agree(steps[axis], expected):
            return False
        expected = f"({expected})*({axes[axis].size})"
    return True


def _scheduled(
    expression: Expression, loops: Loops, nodes: tuple[int, ...], full: frozenset[int]
) -> Plan:
    level: dict[int, Level] = {}
    stage: dict[int, int] = {}
    depth: dict[int, int] = {}
    for n in nodes:
        node = expression.nodes[n]
        below = operands(node)
        level[n] = _own_level(expression, loops, n, [level[b] for b in below], n in full)
        stage[n] = max((stage[b] for b in below), default=0) + (n in full)
        depth[n] = max((depth[b] for b in below if level[b] > Level.CALL), default=0)
        if isinstance(node, Reduce) and n not in full:
            depth[n] += 1
    return Plan(expression, loops, nodes, level, stage, depth, full)


def _own_level(
    expression: Expression, loops: Loops, place: int, below: list[Level], full: bool
) -> Level:
    node = expression.nodes[place]
    if full:
        return Level.CALL
    if isinstance(node, Reduce | Pick):
        return Level.ROW
    if isinstance(node, Load):
        return _level_of(loops, set(strides(expression.axes, node)))
    if isinstance(node, Index):
        return _level_of(loops, set(expression.axes.resolve(node.label)))
    return max(below, default=Level.CALL)


def _level_of(loops: Loops, axes: set[int]) -> Level:
    if loops.family == "column":
        if axes & set(loops.reduced):
            return Level.ELEMENT
        return Level.ROW if axes else Level.CALL
    if axes & set(loops.element):
        return Level.ELEMENT
    if axes & set(loops.segment):
        return Level.SEGMENT
    return Level.ROW if axes else Level.CALL


def order_of(ref: Ref, axes: Axes) -> Label:
    """The axes of a tensor in the order of its dimensions."""
    return tuple(axis for label in axes.dims(ref.dims) for axis in label)
