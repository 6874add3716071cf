"""From a graph of ATen operators to scalar expressions over axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toprung.model.value import Json

from .axes import Axes, Dims, Label, Misfit
from .graph import Graph, Meta
from .graph import Node as Operator
from .ir import KINDS, Apply, Const, Expression, Index, Kind, Load, Node, Pick, Reduce, Ref, Size
from .sizes import product

Lowered = Ref | tuple[Ref, ...]
Handler = Callable[["Lowering", Operator], Lowered]


class NotCovered(Exception):
    """A graph that no template expresses; the message says what in it."""


def lower(graph: Graph, *, apart: bool = False) -> Expression:
    """Everything that `graph` computes; raises `NotCovered`, naming every unknown operator.

    With `apart`, every use of an input counts as a tensor of its own, which a graph needs that
    puts an input across itself.
    """
    handlers = _handlers()
    unknown = sorted({node.op for node in graph.nodes} - handlers.keys())
    if unknown:
        plural = "s" if len(unknown) > 1 else ""
        raise NotCovered(f"no template covers the operator{plural} {', '.join(unknown)}")
    lowering = Lowering(graph, apart)
    for node in graph.nodes:
        try:
            lowering.define(node, handlers[node.op](lowering, node))
        except Misfit as misfit:
            raise NotCovered(f"{node.op}: {misfit}") from None
    outputs = tuple(lowering.ref(leaf) for leaf in leaves(graph.outputs))
    return _settled(Expression(tuple(lowering.nodes), outputs, lowering.axes))


def _settled(expression: Expression) -> Expression:
    """The same with every label in terms of final axes, where equal nodes become one."""
    axes = expression.axes
    nodes: list[Node] = []
    places: dict[Node, int] = {}
    became: list[int] = []
    for node in expression.nodes:
        settled = _fused(_with_axes(node, axes, became), nodes)
        if settled not in places:
            places[settled] = len(nodes)
            nodes.append(settled)
        became.append(places[settled])
    outputs = tuple(replace(ref, node=became[ref.node]) for ref in expression.outputs)
    return Expression(tuple(nodes), outputs, axes)


def _fused(node: Node, nodes: Sequence[Node]) -> Node:
    """`1 + erf(x)` is one function: as a sum, its small values are the rounding of large ones."""
    match node:
        case Apply(function="add", args=(one, other), kind=kind):
            for erf, number_ in ((nodes[one], nodes[other]), (nodes[other], nodes[one])):
                if (
                    isinstance(erf, Apply)
                    and erf.function == "erf"
                    and isinstance(number_, Const)
                    and number_.value == 1
                ):
                    return Apply("one_plus_erf", erf.args, kind)
    return node


def _with_axes(node: Node, axes: Axes, became: Sequence[int]) -> Node:
    match node:
        case Load(steps=steps):
            return replace(node, steps=tuple((axes.resolve(at), step) for at, step in steps))
        case Index(label=label):
            return replace(node, label=axes.resolve(label))
        case Apply(args=args):
            return replace(node, args=tuple(became[arg] for arg in args))
        case Reduce(arg=arg, label=label, domain=domain):
            label, domain = axes.resolve(label), tuple(sorted(set(axes.resolve(domain))))
            return replace(node, arg=became[arg], label=label, domain=domain)
        case Pick(arg=arg, index=index, label=label):
            arg, index, label = became[arg], became[index], axes.resolve(label)
            return replace(node, arg=arg, index=index, label=label)
    return node


def _handlers() -> dict[str, Handler]:
    from . import lower_pointwise, lower_reduce, lower_shape

    return {**lower_pointwise.HANDLERS, **lower_reduce.HANDLERS, **lower_shape.HANDLERS}


def leaves(layout: Json) -> list[dict[str, Json]]:
    """The tensors of an output layout, in order."""
    if "n" in layout:
        return [layout]
    if "dict" in layout:
        return [leaf for _, item in layout["dict"] for leaf in leaves(item)]
    items = layout.get("tuple", layout.get("list", []))
    return [leaf for item in items for leaf in leaves(item)]


class Lowering:
    """The nodes so far, each only once, and what every tensor of the graph is in terms of them."""

    def __init__(self, graph: Graph, apart: bool):
        self._apart = apart
        self.nodes: list[Node] = []
        self._places: dict[Node, int] = {}
        self._refs: dict[tuple[str, int], Ref] = {}
        self.axes = Axes(_symbol_hints(graph))
        states = {state.name: state for state in graph.state}
        for source in graph.sources:
            if source.input is not None:
                meta = graph.input_meta(source.input)
                if meta is not None:
                    self._refs[source.name, 0] = self._load(f"input.{source.input}", meta)
            elif source.state is not None:
                state = states[source.state]
                shape = tuple(str(size) for size in state.shape)
                meta = Meta(dtype=state.dtype, shape=shape, hint=state.shape)
                self._refs[source.name, 0] = self._load(f"state.{source.state}", meta)
            else:
                self._refs[source.name, 0] = self.constant(number(source.constant))

    def _load(self, tensor: str, meta: Meta) -> Ref:
        if meta.dtype not in KINDS:
            # Only what is read must be covered: the reference may own more than it uses.
            return Ref(-1, (), meta.dtype)
        pairs = zip(meta.shape, meta.hint, strict=True)
        dims = tuple(self.axes.new(size, hint) for size, hint in pairs)
        steps = tuple(
            (label, product(meta.shape[place + 1 :])) for place, label in enumerate(dims) if label
        )
        node = Load(tensor, meta.dtype, "0", steps, KINDS[meta.dtype])
        return self.named(node, dims, meta.dtype)

    def define(self, operator: Operator, lowered: Lowered) -> None:
        """What the outputs of `operator` are."""
        refs = (lowered,) if isinstance(lowered, Ref) else lowered
        for place, ref in enumerate(refs):
            self._refs[operator.name, place] = ref

    def node(self, node: Node) -> int:
        """The place of `node`; the same node has the same place."""
        if node not in self._places:
            self._places[node] = len(self.nodes)
            self.nodes.append(node)
        return self._places[node]

    def named(self, node: Node, dims: Dims, dtype: str) -> Ref:
        """A tensor whose elements `node` gives."""
        return Ref(self.node(node), dims, dtype)

    def ref(self, argument: Mapping[str, Json]) -> Ref:
        """The tensor that a reference names; raises `NotCovered` for element types unknown here."""
        found = self._refs[argument["n"], argument["i"]]
        if found.node < 0:
            raise NotCovered(f"no template covers tensors of type {found.dtype}")
        return self._afresh(found)

    def _afresh(self, ref: Ref) -> Ref:
        """`ref` with axes of its own where it is only positions, or an input that is to be apart.

        Positions that are used twice, along rows and along columns, are two different things.
        """
        if not self._independent(ref.node):
            return ref
        new: dict[int, Label] = {}
        for axis in {axis for label in self.axes.dims(ref.dims) for axis in label}:
            new[axis] = self.axes.new(self.axes[axis].size, self.axes[axis].hint)
        node = self._relabelled(ref.node, new)
        return Ref(node, tuple(self._renamed(label, new) for label in ref.dims), ref.dtype)

    def _independent(self, place: int) -> bool:
        node = self.nodes[place]
        if isinstance(node, Load):
            return self._apart
        if isinstance(node, Apply):
            return all(self._independent(arg) for arg in node.args)
        return isinstance(node, Index | Const | Size)

    def _renamed(self, label: Label, new: Mapping[int, Label]) -> Label:
        return tuple(a for axis in self.axes.resolve(label) for a in new.get(axis, (axis,)))

    def _relabelled(self, place: int, new: Mapping[int, Label]) -> int:
        node = self.nodes[place]
        if isinstance(node, Index):
            return self.node(replace(node, label=self._renamed(node.label, new)))
        if isinstance(node, Load):
            steps = tuple((self._renamed(label, new), stride) for label, stride in node.steps)
            return self.node(replace(node, steps=steps))
        if isinstance(node, Apply):
            args = tuple(self._relabelled(arg, new) for arg in node.args)
            return self.node(replace(node, args=args))
        return place

    def tensor(self, argument: Json) -> Ref:
        """A tensor argument, or a number as a tensor without dimensions."""
        if isinstance(argument, dict) and "n" in argument:
            return self.ref(argument)
        if isinstance(argument, dict) and "size" in argument:
            expression = argument["size"]
            return self.named(Size(expression, "f64"), (), "size")
        return self.constant(number(argument))

    def constant(self, value: float | int | bool) -> Ref:
        """A number that takes the element type of whatever it meets."""
        kind: Kind = "b8" if isinstance(value, bool) else "i64" if isinstance(value, int) else "f64"
        return self.named(Const(value, kind), (), "number")

    def apply(self, function: str, dtype: str, *args: Ref, within: str | None = None) -> Ref:
        """`function` of `args`, broadcast, with elements of type `dtype`.

        The operands are first cast to what `within` (else `dtype`) is computed in.
        """
        kind = kind_of(within or dtype)
        dims = self.axes.broadcast([arg.dims for arg in args])
        places = tuple(self.cast(arg, kind).node for arg in args)
        return self.named(Apply(function, places, kind_of(dtype)), dims, dtype)

    def where(self, condition: Ref, dtype: str, yes: Ref, no: Ref) -> Ref:
        """`yes` where `condition` holds, else `no`."""
        dims = self.axes.broadcast([condition.dims, yes.dims, no.dims])
        kind = kind_of(dtype)
        places = (self.cast(condition, "b8").node, *(self.cast(r, kind).node for r in (yes, no)))
        return self.named(Apply("where", places, kind), dims, dtype)

    def cast(self, ref: Ref, kind: Kind) -> Ref:
        """The same elements computed in `kind`; numbers simply become numbers of that kind."""
        node = self.nodes[ref.node]
        if node.kind == kind:
            return ref
        if isinstance(node, Const):
            to = {"b8": bool, "i64": int}.get(kind, float)
            return self.named(Const(to(node.value), kind), ref.dims, ref.dtype)
        if isinstance(node, Size):
            return self.named(Size(node.expression, kind), ref.dims, ref.dtype)
        if kind == "b8":
            zero = self.named(Const(False if node.kind == "b8" else 0, node.kind), (), "number")
            return self.named(Apply("ne", (ref.node, zero.node), "b8"), ref.dims, ref.dtype)
        function = "as_f32" if (node.kind, kind) == ("f64", "f32") else "cast"
        return self.named(Apply(function, (ref.node,), kind), ref.dims, ref.dtype)

    def reduce(
        self, function: str, ref: Ref, dtype: str, dims: Sequence[int], keepdim: bool
    ) -> Ref:
        """`ref` reduced over the dimensions `dims`; over all when there are none."""
        rank = len(ref.dims)
        chosen = {dim % rank for dim in dims} if dims else set(range(rank))
        label = tuple(axis for dim in sorted(chosen) for axis in ref.dims[dim])
        kept = [() if dim in chosen else ref.dims[dim] for dim in range(rank)]
        if not keepdim:
            kept = [label_ for dim, label_ in enumerate(kept) if dim not in chosen]
        place = function.startswith("arg")
        operand = ref if place else self.cast(ref, kind_of(dtype))
        if not self.axes.resolve(label):
            one = self.constant(0) if place else operand
            return Ref(self.cast(one, kind_of(dtype)).node, tuple(kept), dtype)
        domain: Label = tuple(axis for each in ref.dims for axis in each)
        node = Reduce(function, operand.node, label, domain, kind_of(dtype))
        return self.named(node, tuple(kept), dtype)

    def count(self, ref: Ref, dims: Sequence[int]) -> str:
        """How many elements each result of a reduction over `dims` has, as an expression."""
        rank = len(ref.dims)
        chosen = sorted({dim % rank for dim in dims}) if dims else range(rank)
        return product(tuple(self.axes.size(ref.dims[dim]) for dim in chosen))


def kind_of(dtype: str) -> Kind:
    """What elements of `dtype` are computed in; raises `NotCovered`."""
    if dtype not in KINDS:
        raise NotCovered(f"no template covers tensors of type {dtype}")
    return KINDS[dtype]


def number(content: Json) -> Any:
    """A number as a graph writes it."""
    if isinstance(content, dict) and "float" in content:
        return float(content["float"])
    if isinstance(content, bool | int | float):
        return content
    raise NotCovered(f"an argument that is no number: {content!r}")


def argument(operator: Operator, place: int, name: str, default: Json = None) -> Json:
    """An argument given by place or by name, as it is written."""
    if place < len(operator.args):
        return operator.args[place]
    return operator.kwargs.get(name, default)


def _symbol_hints(graph: Graph) -> dict[str, int]:
    hints: dict[str, int] = {}
    for symbol, (index, dim) in graph.symbols.items():
        meta = graph.input_meta(index)
        assert meta is not None, symbol
        hints[symbol] = meta.hint[dim]
    return hints
