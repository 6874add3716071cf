"""Operators that move no data: views, broadcasts, slices, and tensors that are only numbers."""

from __future__ import annotations

from dataclasses import replace

from .axes import Label
from .graph import Node as Operator
from .ir import Apply, Const, Index, Load, Ref, Size
from .lower import Handler, Lowered, Lowering, NotCovered, argument, kind_of, number


def _same(low: Lowering, op: Operator) -> Ref:
    return low.tensor(op.args[0])


def _view(low: Lowering, op: Operator) -> Ref:
    ref, out = low.tensor(op.args[0]), op.outs[0]
    sizes = list(zip(out.shape, out.hint, strict=True))
    return Ref(ref.node, low.axes.view(ref.dims, sizes), ref.dtype)


def _unsqueeze(low: Lowering, op: Operator) -> Ref:
    ref = low.tensor(op.args[0])
    place = op.args[1] % (len(ref.dims) + 1)
    return Ref(ref.node, (*ref.dims[:place], (), *ref.dims[place:]), ref.dtype)


def _squeeze(low: Lowering, op: Operator) -> Ref:
    ref = low.tensor(op.args[0])
    asked = argument(op, 1, "dim")
    rank = len(ref.dims)
    if asked is None:
        chosen = set(range(rank))
    else:
        chosen = {dim % rank for dim in (asked if isinstance(asked, list) else [asked])}
    kept = [
        label for dim, label in enumerate(ref.dims) if dim not in chosen or low.axes.resolve(label)
    ]
    return Ref(ref.node, tuple(kept), ref.dtype)


def _expand(low: Lowering, op: Operator) -> Ref:
    ref, out = low.tensor(op.args[0]), op.outs[0]
    added = len(out.shape) - len(ref.dims)
    dims = [()] * added + list(ref.dims)
    for place, (size, hint) in enumerate(zip(out.shape, out.hint, strict=True)):
        if not low.axes.resolve(dims[place]):
            dims[place] = low.axes.new(size, hint)
    return Ref(ref.node, tuple(dims), ref.dtype)


def _repeat(low: Lowering, op: Operator) -> Ref:
    ref, out = low.tensor(op.args[0]), op.outs[0]
    added = len(out.shape) - len(ref.dims)
    dims = [()] * added + list(ref.dims)
    for place, times in enumerate(op.args[1]):
        if _size(times) != "1":
            again = out.hint[place] // low.axes.hint(dims[place])
            dims[place] = (*low.axes.new(_size(times), again), *dims[place])
    return Ref(ref.node, tuple(dims), ref.dtype)


def _permute(low: Lowering, op: Operator) -> Ref:
    ref = low.tensor(op.args[0])
    rank = len(ref.dims)
    return Ref(ref.node, tuple(ref.dims[dim % rank] for dim in op.args[1]), ref.dtype)


def _transpose(low: Lowering, op: Operator) -> Ref:
    ref = low.tensor(op.args[0])
    dims = list(ref.dims)
    one, other = (op.args[1], op.args[2]) if len(op.args) > 1 else (0, -1)
    if len(dims) > 1:
        dims[one], dims[other] = dims[other], dims[one]
    return Ref(ref.node, tuple(dims), ref.dtype)


def _slice(low: Lowering, op: Operator) -> Ref:
    ref, out = low.tensor(op.args[0]), op.outs[0]
    dim = argument(op, 1, "dim", 0) % len(ref.dims)
    if low.axes.agree(low.axes.size(ref.dims[dim]), out.shape[dim]):
        return ref
    start, step = argument(op, 2, "start", 0) or 0, argument(op, 4, "step", 1)
    new = low.axes.new(out.shape[dim], out.hint[dim])
    return _shifted(low, ref, dim, _from_start(low, ref, dim, start), _size(step), new)


def _select(low: Lowering, op: Operator) -> Ref:
    ref = low.tensor(op.args[0])
    dim = op.args[1] % len(ref.dims)
    start = _from_start(low, ref, dim, op.args[2])
    found = _shifted(low, ref, dim, start, "1", ())
    return Ref(found.node, (*found.dims[:dim], *found.dims[dim + 1 :]), found.dtype)


def _split(low: Lowering, op: Operator) -> tuple[Ref, ...]:
    ref = low.tensor(op.args[0])
    dim = argument(op, 2, "dim", 0) % len(ref.dims)
    parts: list[Ref] = []
    start = "0"
    for out in op.outs:
        new = low.axes.new(out.shape[dim], out.hint[dim])
        parts.append(_shifted(low, ref, dim, start, "1", new))
        start = out.shape[dim] if start == "0" else f"({start})+({out.shape[dim]})"
    return tuple(parts)


def _size(content: object) -> str:
    if isinstance(content, dict) and "size" in content:
        return content["size"]
    return str(content)


def _from_start(low: Lowering, ref: Ref, dim: int, start: object) -> str:
    """A position counted from the start; torch counts negative ones from the end."""
    text = _size(start)
    if text.startswith("-"):
        return f"({low.axes.size(ref.dims[dim])})-({text[1:]})"
    return text


def _shifted(low: Lowering, ref: Ref, dim: int, start: str, step: str, new: Label) -> Ref:
    """Positions `start`, `start + step`, … along dimension `dim`, which becomes `new`."""
    old = low.axes.resolve(ref.dims[dim])
    if len(old) > 1:
        raise NotCovered("a slice of several dimensions that were made one")
    node = _shift(low, ref.node, old, start, step, new)
    return Ref(node, (*ref.dims[:dim], new, *ref.dims[dim + 1 :]), ref.dtype)


def _shift(low: Lowering, place: int, old: Label, start: str, step: str, new: Label) -> int:
    node = low.nodes[place]
    match node:
        case Const() | Size():
            return place
        case Load(steps=steps):
            return low.node(_shift_load(low, node, steps, old, start, step, new))
        case Index(label=label) if low.axes.resolve(label) != old:
            return place
        case Index(start=from_, step=by):
            first = f"({from_})+({start})*({by})"
            if not new:
                return low.node(Size(first, "i64"))
            return low.node(Index(new, first, f"({by})*({step})"))
        case Apply(args=args):
            moved = tuple(_shift(low, arg, old, start, step, new) for arg in args)
            return low.node(replace(node, args=moved))
    raise NotCovered("a slice of something that was reduced")


def _shift_load(
    low: Lowering,
    load: Load,
    steps: tuple[tuple[Label, str], ...],
    old: Label,
    start: str,
    step: str,
    new: Label,
) -> Load:
    moved: list[tuple[Label, str]] = []
    offset = load.offset
    for label, stride in steps:
        resolved = low.axes.resolve(label)
        if resolved != old:
            if set(resolved) & set(old):
                raise NotCovered("a slice of part of a dimension")
            moved.append((label, stride))
            continue
        if start != "0":
            offset = (
                f"({offset})+({start})*({stride})" if offset != "0" else f"({start})*({stride})"
            )
        if new:
            moved.append((new, stride if step == "1" else f"({stride})*({step})"))
    return replace(load, steps=tuple(moved), offset=offset)


def _full(low: Lowering, op: Operator) -> Ref:
    """A tensor of one number; `full` has it second, the others by their name."""
    by_name = {"aten.zeros": 0, "aten.ones": 1, "aten.empty": 0, "aten.empty_permuted": 0}
    by_name |= {"aten.zeros_like": 0, "aten.ones_like": 1, "aten.empty_like": 0}
    value = low.tensor(by_name.get(op.op, op.args[1] if op.op not in by_name else 0))
    out = op.outs[0]
    value = low.cast(value, kind_of(out.dtype))
    pairs = zip(out.shape, out.hint, strict=True)
    return Ref(value.node, tuple(low.axes.new(size, hint) for size, hint in pairs), out.dtype)


def _scalar(low: Lowering, op: Operator) -> Ref:
    value, dtype = low.tensor(op.args[0]), op.outs[0].dtype
    return Ref(low.cast(value, kind_of(dtype)).node, (), dtype)


def _arange(low: Lowering, op: Operator) -> Ref:
    out = op.outs[0]
    if kind_of(out.dtype) != "i64":
        raise NotCovered(f"aten.arange of type {out.dtype}")
    start, step = (0, 1) if len(op.args) < 2 else (op.args[0], (*op.args, 1)[2])
    label = low.axes.new(out.shape[0], out.hint[0])
    if not label:
        return Ref(low.node(Size(_size(start), "i64")), ((),), out.dtype)
    return low.named(Index(label, _size(start), _size(step)), (label,), out.dtype)


def _lifted(low: Lowering, op: Operator) -> Lowered:
    argument_ = op.args[0]
    if isinstance(argument_, dict) and "n" in argument_:
        return low.ref(argument_)
    return low.constant(number(argument_))


HANDLERS: dict[str, Handler] = {
    "aten.clone": _same,
    "aten.alias": _same,
    "aten.detach": _same,
    "aten.lift_fresh_copy": _lifted,
    "aten.lift_fresh": _lifted,
    "aten.view": _view,
    "aten._unsafe_view": _view,
    "aten.reshape": _view,
    "aten.unsqueeze": _unsqueeze,
    "aten.squeeze": _squeeze,
    "aten.expand": _expand,
    "aten.repeat": _repeat,
    "aten.permute": _permute,
    "aten.transpose": _transpose,
    "aten.t": _transpose,
    "aten.slice": _slice,
    "aten.select": _select,
    "aten.split_with_sizes": _split,
    "aten.split": _split,
    "aten.full": _full,
    "aten.full_like": _full,
    "aten.zeros": _full,
    "aten.ones": _full,
    "aten.empty": _full,
    "aten.zeros_like": _full,
    "aten.ones_like": _full,
    "aten.empty_like": _full,
    "aten.empty_permuted": _full,
    "aten.scalar_tensor": _scalar,
    "aten.arange": _arange,
}
