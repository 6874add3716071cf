"""Reductions, and the composed operators that are made of them."""

from __future__ import annotations

import math

from .axes import Label
from .graph import Node as Operator
from .ir import Apply, Pick, Ref, Size
from .lower import Handler, Lowered, Lowering, NotCovered, argument, kind_of, number
from .lower_pointwise import power


def _dims(content: object) -> list[int]:
    if content is None:
        return []
    return list(content) if isinstance(content, list) else [content]  # type: ignore[list-item]


def _sum(low: Lowering, op: Operator) -> Ref:
    ref = low.tensor(op.args[0])
    dims, keepdim = _dims(argument(op, 1, "dim")), bool(argument(op, 2, "keepdim", False))
    return low.reduce("sum", ref, op.outs[0].dtype, dims, keepdim)


def _mean(low: Lowering, op: Operator) -> Ref:
    ref = low.tensor(op.args[0])
    dims, keepdim = _dims(argument(op, 1, "dim")), bool(argument(op, 2, "keepdim", False))
    return mean(low, ref, op.outs[0].dtype, dims, keepdim)


def mean(low: Lowering, ref: Ref, dtype: str, dims: list[int], keepdim: bool) -> Ref:
    """The sum over the number of elements."""
    total = low.reduce("sum", ref, dtype, dims, keepdim)
    count = low.named(Size(low.count(ref, dims), "f64"), (), "size")
    return low.apply("div", dtype, total, count)


def variance(
    low: Lowering, ref: Ref, dtype: str, dims: list[int], keepdim: bool, correction: float
) -> tuple[Ref, Ref]:
    """Variance and mean, in two passes: the squares are of distances to the mean."""
    center = mean(low, ref, dtype, dims, keepdim=True)
    distance = low.apply("sub", dtype, ref, center)
    square = low.apply("mul", dtype, distance, distance)
    total = low.reduce("sum", square, dtype, dims, keepdim)
    count = low.count(ref, dims)
    if correction:
        count = f"Max(0, ({count})-{correction:g})"
    size = low.named(Size(count, "f64"), (), "size")
    found = low.apply("div", dtype, total, size)
    return found, center if keepdim else mean(low, ref, dtype, dims, keepdim=False)


def _var(low: Lowering, op: Operator) -> Lowered:
    """In double, as torch computes it on the CPU: squares of large floats would be infinite."""
    ref, dtype = low.tensor(op.args[0]), op.outs[0].dtype
    given = argument(op, 2, "correction", 1)
    correction = 1.0 if given is None else float(number(given))
    keepdim = bool(argument(op, 3, "keepdim", False))
    wide = low.cast(ref, "f64")
    dims = _dims(argument(op, 1, "dim"))
    pair = variance(low, wide, "float64", dims, keepdim, correction)
    # Not rounded to float here: a deviation is its root, which fits where the variance does not.
    found = [
        low.named(Apply("cast", (each.node,), kind_of(dtype)), each.dims, dtype) for each in pair
    ]
    return tuple(found) if op.op == "aten.var_mean" else found[0]


def _extreme(low: Lowering, op: Operator) -> Ref:
    ref = low.tensor(op.args[0])
    dims, keepdim = _dims(argument(op, 1, "dim")), bool(argument(op, 2, "keepdim", False))
    return low.reduce(op.op.removeprefix("aten.a"), ref, _number_type(op), dims, keepdim)


def _number_type(op: Operator) -> str:
    dtype = op.outs[0].dtype
    if dtype == "bool":
        raise NotCovered(f"{op.op} of truth values")
    return dtype


def _max(low: Lowering, op: Operator) -> Lowered:
    """`max(x)`, or `max(x, dim)`, which also tells where."""
    ref, dtype = low.tensor(op.args[0]), _number_type(op)
    function = op.op.removeprefix("aten.")
    if len(op.outs) == 1:
        return low.reduce(function, ref, dtype, [], False)
    dims, keepdim = _dims(argument(op, 1, "dim")), bool(argument(op, 2, "keepdim", False))
    where = low.reduce(f"arg{function}", ref, "int64", dims, keepdim)
    return low.reduce(function, ref, dtype, dims, keepdim), where


def _argmax(low: Lowering, op: Operator) -> Ref:
    ref = low.tensor(op.args[0])
    dims, keepdim = _dims(argument(op, 1, "dim")), bool(argument(op, 2, "keepdim", False))
    return low.reduce(op.op.removeprefix("aten."), ref, "int64", dims, keepdim)


def _prod(low: Lowering, op: Operator) -> Ref:
    ref = low.tensor(op.args[0])
    dims, keepdim = _dims(argument(op, 1, "dim")), bool(argument(op, 2, "keepdim", False))
    return low.reduce("prod", ref, _number_type(op), dims, keepdim)


def _vector_norm(low: Lowering, op: Operator) -> Ref:
    ref, dtype = low.tensor(op.args[0]), op.outs[0].dtype
    order = float(number(argument(op, 1, "ord", 2)))
    dims, keepdim = _dims(argument(op, 2, "dim")), bool(argument(op, 3, "keepdim", False))
    if order == 2:
        square = low.apply("mul", dtype, ref, ref)
        return low.apply("sqrt", dtype, low.reduce("sum", square, dtype, dims, keepdim))
    if order == 0:
        zero = low.constant(0)
        nonzero = low.apply("ne", "bool", ref, zero, within=ref.dtype)
        return low.reduce("sum", nonzero, dtype, dims, keepdim)
    size = low.apply("abs", dtype, ref)
    if math.isinf(order):
        return low.reduce("max" if order > 0 else "min", size, dtype, dims, keepdim)
    total = low.reduce("sum", power(low, size, order, dtype), dtype, dims, keepdim)
    return power(low, total, 1 / order, dtype)


def _shifted(low: Lowering, ref: Ref, dtype: str, dim: int) -> tuple[Ref, Ref]:
    """`x - max(x)` and the sum of its exponentials."""
    top = low.reduce("max", ref, dtype, [dim], keepdim=True)
    less = low.apply("sub", dtype, ref, top)
    total = low.reduce("sum", low.apply("exp", dtype, less), dtype, [dim], keepdim=True)
    return less, total


def _softmax(low: Lowering, op: Operator) -> Ref:
    ref, dtype = low.tensor(op.args[0]), op.outs[0].dtype
    if not ref.dims:
        ref = Ref(ref.node, ((),), ref.dtype)
    less, total = _shifted(low, ref, dtype, op.args[1])
    if op.op == "aten._log_softmax":
        return low.apply("sub", dtype, less, low.apply("log", dtype, total))
    return low.apply("div", dtype, low.apply("exp", dtype, less), total)


def _logsumexp(low: Lowering, op: Operator) -> Ref:
    ref, dtype = low.tensor(op.args[0]), op.outs[0].dtype
    dims, keepdim = _dims(op.args[1]), bool(argument(op, 2, "keepdim", False))
    top = low.reduce("max", ref, dtype, dims, keepdim=True)
    infinite = low.apply("is_inf", "bool", top, within=dtype)
    shift = low.where(infinite, dtype, low.constant(0.0), top)
    less = low.apply("exp", dtype, low.apply("sub", dtype, ref, shift))
    total = low.apply("log", dtype, low.reduce("sum", less, dtype, dims, keepdim=True))
    found = low.apply("add", dtype, total, shift)
    rank = len(ref.dims)
    gone = set() if keepdim else {dim % rank for dim in dims}
    kept = tuple(label for dim, label in enumerate(found.dims) if dim not in gone)
    return Ref(found.node, kept, dtype)


def _normalised(
    low: Lowering, ref: Ref, dtype: str, dims: list[int], eps: float
) -> tuple[Ref, Ref, Ref]:
    """`(x - mean) / sqrt(var + eps)`, the mean and the factor."""
    var, center = variance(low, ref, dtype, dims, keepdim=True, correction=0.0)
    root = low.apply("sqrt", dtype, low.apply("add", dtype, var, low.constant(eps)))
    factor = low.apply("div", dtype, low.constant(1.0), root)
    distance = low.apply("sub", dtype, ref, center)
    return low.apply("mul", dtype, distance, factor), center, factor


def _affine(low: Lowering, ref: Ref, dtype: str, weight: Ref | None, bias: Ref | None) -> Ref:
    if weight is not None:
        ref = low.apply("mul", dtype, ref, weight)
    return ref if bias is None else low.apply("add", dtype, ref, bias)


def _optional(low: Lowering, content: object) -> Ref | None:
    return None if content is None else low.tensor(content)


def _layer_norm(low: Lowering, op: Operator) -> tuple[Ref, ...]:
    ref, dtype = low.tensor(op.args[0]), op.outs[0].dtype
    dims = [-place - 1 for place in range(len(op.args[1]))]
    found, center, factor = _normalised(low, ref, dtype, dims, number(op.args[4]))
    weight, bias = _optional(low, op.args[2]), _optional(low, op.args[3])
    return _affine(low, found, dtype, weight, bias), center, factor


def _at(ref: Ref | None, dim: int, rank: int) -> Ref | None:
    """A vector laid along dimension `dim` of a tensor of `rank` dimensions."""
    if ref is None:
        return None
    dims: list[Label] = [()] * rank
    dims[dim] = ref.dims[0]
    return Ref(ref.node, tuple(dims), ref.dtype)


def _group_norm(low: Lowering, op: Operator) -> Ref:
    ref, dtype = low.tensor(op.args[0]), op.outs[0].dtype
    weight, bias = _optional(low, op.args[1]), _optional(low, op.args[2])
    groups, eps = op.args[6], number(op.args[7])
    rank = len(ref.dims)
    channels, hint = low.axes.size(ref.dims[1]), low.axes.hint(ref.dims[1])
    inner = f"({channels})//{groups}" if hint != groups else "1"
    sizes = [(low.axes.size(label), low.axes.hint(label)) for label in ref.dims]
    grouped = [sizes[0], (str(groups), groups), (inner, hint // groups), *sizes[2:]]
    apart = Ref(ref.node, low.axes.view(ref.dims, grouped), ref.dtype)
    dims = list(range(2, rank + 1))
    found, _, _ = _normalised(low, apart, dtype, dims, eps)
    together = Ref(found.node, low.axes.view(found.dims, sizes), dtype)
    return _affine(low, together, dtype, _at(weight, 1, rank), _at(bias, 1, rank))


def _batch_norm(low: Lowering, op: Operator) -> Ref:
    """With the statistics that were learnt: an elementwise operation."""
    ref, dtype = low.tensor(op.args[0]), op.outs[0].dtype
    rank = len(ref.dims)
    weight, bias, center, var = (_at(_optional(low, a), 1, rank) for a in op.args[1:5])
    assert center is not None and var is not None
    root = low.apply("sqrt", dtype, low.apply("add", dtype, var, low.constant(number(op.args[6]))))
    found = low.apply("div", dtype, low.apply("sub", dtype, ref, center), root)
    return _affine(low, found, dtype, weight, bias)


def _batch_norm_of_batch(low: Lowering, op: Operator) -> Ref:
    """With the statistics of this batch, and no memory of them."""
    if len(op.args) != 6 or op.args[3] is not True:
        raise NotCovered(f"{op.op} with running statistics")
    ref, dtype = low.tensor(op.args[0]), op.outs[0].dtype
    rank = len(ref.dims)
    dims = [dim for dim in range(rank) if dim != 1]
    found, _, _ = _normalised(low, ref, dtype, dims, number(op.args[5]))
    weight, bias = (_at(_optional(low, a), 1, rank) for a in op.args[1:3])
    return _affine(low, found, dtype, weight, bias)


def _gather(low: Lowering, op: Operator) -> Ref:
    """One element for each row, chosen by a whole number."""
    ref, where = low.tensor(op.args[0]), low.tensor(op.args[2])
    dim = op.args[1] % len(ref.dims)
    if low.axes.resolve(where.dims[dim]):
        raise NotCovered("aten.gather of more than one element of each row")
    label = ref.dims[dim]
    dims = low.axes.broadcast([(*ref.dims[:dim], (), *ref.dims[dim + 1 :]), where.dims])
    index = low.cast(where, "i64")
    return low.named(Pick(ref.node, index.node, label, kind_of(ref.dtype)), dims, ref.dtype)


HANDLERS: dict[str, Handler] = {
    "aten.sum": _sum,
    "aten.mean": _mean,
    "aten.var": _var,
    "aten.var_mean": _var,
    "aten.amax": _extreme,
    "aten.amin": _extreme,
    "aten.max": _max,
    "aten.min": _max,
    "aten.argmax": _argmax,
    "aten.argmin": _argmax,
    "aten.prod": _prod,
    "aten.linalg_vector_norm": _vector_norm,
    "aten._softmax": _softmax,
    "aten._log_softmax": _softmax,
    "aten.logsumexp": _logsumexp,
    "aten.native_layer_norm": _layer_norm,
    "aten.native_group_norm": _group_norm,
    "aten._native_batch_norm_legit_no_training": _batch_norm,
    "aten._native_batch_norm_legit": _batch_norm_of_batch,
    "aten.gather": _gather,
}
