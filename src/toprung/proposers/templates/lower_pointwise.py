"""Elementwise operators."""

from __future__ import annotations

import math

from .graph import Node as Operator
from .ir import KINDS, Ref
from .lower import Handler, Lowering, NotCovered, argument, number
from .scalar import BINARY, COMPARE, LOGICAL, UNARY

FLOATS = ("float32", "float64", "bfloat16")


def _out(operator: Operator) -> str:
    dtype = operator.outs[0].dtype
    if dtype not in KINDS:
        raise NotCovered(f"{operator.op} of type {dtype}")
    return dtype


def _unary(low: Lowering, op: Operator) -> Ref:
    dtype = _out(op)
    function = UNARY[op.op]
    if dtype not in FLOATS and function not in ("neg", "abs", "sign"):
        return low.tensor(op.args[0])  # rounding an integer
    if dtype == "bool":
        raise NotCovered(f"{op.op} of truth values")
    return low.apply(function, dtype, low.tensor(op.args[0]))


def _binary(low: Lowering, op: Operator) -> Ref:
    dtype = _out(op)
    one, other = low.tensor(op.args[0]), low.tensor(op.args[1])
    if dtype == "bool":
        if op.op != "aten.mul":
            raise NotCovered(f"{op.op} of truth values")
        return low.apply("and", dtype, one, other)
    return low.apply(BINARY[op.op], dtype, one, other)


def _sum(low: Lowering, op: Operator) -> Ref:
    dtype = _out(op)
    if dtype == "bool":
        raise NotCovered(f"{op.op} of truth values")
    one, other = low.tensor(op.args[0]), low.tensor(op.args[1])
    alpha = argument(op, 2, "alpha", 1)
    if alpha != 1:
        other = low.apply("mul", dtype, other, low.tensor(alpha))
    return low.apply("add" if op.op == "aten.add" else "sub", dtype, one, other)


def _div(low: Lowering, op: Operator) -> Ref:
    dtype = _out(op)
    if argument(op, 2, "rounding_mode") is not None or dtype not in FLOATS:
        raise NotCovered("aten.div that rounds")
    one, other = low.tensor(op.args[0]), low.tensor(op.args[1])
    return low.apply("div", dtype, one, other)


def _promoted(one: Ref, other: Ref) -> str:
    """What two operands are compared in; a number takes the type of the tensor it meets."""
    dtypes = [ref.dtype for ref in (one, other) if ref.dtype not in ("number", "size")]
    order = ("float64", "float32", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
    return min(dtypes, key=order.index, default="float64")


def _compare(low: Lowering, op: Operator) -> Ref:
    one, other = low.tensor(op.args[0]), low.tensor(op.args[1])
    within = _promoted(one, other)
    fraction = any(
        ref.dtype == "number" and isinstance(low.nodes[ref.node].value, float)  # type: ignore[union-attr]
        for ref in (one, other)
    )
    if within not in FLOATS and fraction:
        within = "float64"
    return low.apply(COMPARE[op.op], "bool", one, other, within=within)


def _logical(low: Lowering, op: Operator) -> Ref:
    dtype = _out(op)
    one, other = low.tensor(op.args[0]), low.tensor(op.args[1])
    return low.apply(LOGICAL[op.op], dtype, one, other)


def _not(low: Lowering, op: Operator) -> Ref:
    if _out(op) != "bool":
        raise NotCovered(f"{op.op} of whole numbers")
    return low.apply("not", "bool", low.tensor(op.args[0]))


def _is(low: Lowering, op: Operator) -> Ref:
    ref = low.tensor(op.args[0])
    if ref.dtype not in FLOATS:
        return low.constant(False)
    function = "is_nan" if op.op == "aten.isnan" else "is_inf"
    return low.apply(function, "bool", ref, within=ref.dtype)


def _where(low: Lowering, op: Operator) -> Ref:
    condition, yes, no = (low.tensor(arg) for arg in op.args)
    return low.where(condition, _out(op), yes, no)


def _masked_fill(low: Lowering, op: Operator) -> Ref:
    ref, mask, value = (low.tensor(arg) for arg in op.args)
    return low.where(mask, _out(op), value, ref)


def _clamp(low: Lowering, op: Operator) -> Ref:
    ref = low.tensor(op.args[0])
    bounds = (("max", argument(op, 1, "min")), ("min", argument(op, 2, "max")))
    for function, bound in bounds:
        if bound is not None:
            ref = low.apply(function, _out(op), ref, low.tensor(bound))
    return ref


def _relu(low: Lowering, op: Operator) -> Ref:
    return low.apply("max", _out(op), low.tensor(op.args[0]), low.constant(0))


def _hardtanh(low: Lowering, op: Operator) -> Ref:
    least, most = argument(op, 1, "min_val", -1.0), argument(op, 2, "max_val", 1.0)
    ref = low.apply("max", _out(op), low.tensor(op.args[0]), low.tensor(least))
    return low.apply("min", _out(op), ref, low.tensor(most))


def _leaky_relu(low: Lowering, op: Operator) -> Ref:
    dtype, ref = _out(op), low.tensor(op.args[0])
    slope = low.tensor(argument(op, 1, "negative_slope", 0.01))
    above = low.apply("gt", "bool", ref, low.constant(0), within=dtype)
    return low.where(above, dtype, ref, low.apply("mul", dtype, ref, slope))


def _elu(low: Lowering, op: Operator) -> Ref:
    """`scale * x` above zero, else `scale * alpha * (exp(input_scale * x) - 1)`."""
    dtype, ref = _out(op), low.tensor(op.args[0])
    alpha = number(argument(op, 1, "alpha", 1.0))
    scale = number(argument(op, 2, "scale", 1.0))
    input_scale = number(argument(op, 3, "input_scale", 1.0))
    above = low.apply("gt", "bool", ref, low.constant(0), within=dtype)
    scaled = ref if input_scale == 1 else low.apply("mul", dtype, ref, low.constant(input_scale))
    below = low.apply("expm1", dtype, scaled)
    if alpha * scale != 1:
        below = low.apply("mul", dtype, below, low.constant(float(alpha * scale)))
    up = ref if scale == 1 else low.apply("mul", dtype, ref, low.constant(scale))
    return low.where(above, dtype, up, below)


def _gelu(low: Lowering, op: Operator) -> Ref:
    """Hendrycks, Gimpel: Gaussian Error Linear Units, arXiv 1606.08415."""
    dtype, ref = _out(op), low.tensor(op.args[0])
    half = low.apply("mul", dtype, ref, low.constant(0.5))
    if argument(op, 1, "approximate", "none") == "none":
        inner = low.apply("mul", dtype, ref, low.constant(math.sqrt(0.5)))
        bent = low.apply("erf", dtype, inner)
    else:
        square = low.apply("mul", dtype, ref, ref)
        cube = low.apply("mul", dtype, square, ref)
        sum_ = low.apply("add", dtype, ref, low.apply("mul", dtype, cube, low.constant(0.044715)))
        inner = low.apply("mul", dtype, sum_, low.constant(math.sqrt(2 / math.pi)))
        bent = low.apply("tanh", dtype, inner)
    return low.apply("mul", dtype, half, low.apply("add", dtype, bent, low.constant(1.0)))


def _reciprocal(low: Lowering, op: Operator) -> Ref:
    return low.apply("div", _out(op), low.constant(1.0), low.tensor(op.args[0]))


def _rsqrt(low: Lowering, op: Operator) -> Ref:
    root = low.apply("sqrt", _out(op), low.tensor(op.args[0]))
    return low.apply("div", _out(op), low.constant(1.0), root)


def _round(low: Lowering, op: Operator) -> Ref:
    if argument(op, 1, "decimals", 0) != 0:
        raise NotCovered("aten.round to decimals")
    return low.apply("round", _out(op), low.tensor(op.args[0]))


def _pow(low: Lowering, op: Operator) -> Ref:
    dtype = _out(op)
    base, exponent = op.args[0], op.args[1]
    if not isinstance(exponent, int | float) or isinstance(exponent, bool):
        ref = low.tensor(exponent)
        if isinstance(base, int | float) and base == 2 and dtype in FLOATS:
            return low.apply("exp2", dtype, ref)
        if dtype not in FLOATS:
            raise NotCovered("aten.pow of whole numbers")
        return low.apply("pow", dtype, low.tensor(base), ref)
    return power(low, low.tensor(base), float(exponent), dtype)


def power(low: Lowering, base: Ref, exponent: float, dtype: str) -> Ref:
    """`base ** exponent`, by products and roots where that is as exact."""
    if exponent == 0.5:
        return low.apply("sqrt", dtype, base)
    if exponent == -0.5:
        return low.apply("div", dtype, low.constant(1.0), low.apply("sqrt", dtype, base))
    if exponent in (1.0, 2.0, 3.0, 4.0):
        result = base
        if exponent == 4.0:
            result = base = low.apply("mul", dtype, base, base)
            exponent = 2.0
        for _ in range(int(exponent) - 1):
            result = low.apply("mul", dtype, result, base)
        return low.cast(result, KINDS[dtype])
    if exponent == -1.0:
        return low.apply("div", dtype, low.constant(1.0), base)
    if exponent == -2.0:
        return low.apply("div", dtype, low.constant(1.0), low.apply("mul", dtype, base, base))
    if dtype not in FLOATS:
        raise NotCovered("aten.pow of whole numbers")
    return low.apply("pow", dtype, base, low.constant(exponent))


def _to_copy(low: Lowering, op: Operator) -> Ref:
    ref, dtype = low.tensor(op.args[0]), _out(op)
    if dtype == ref.dtype:
        return ref
    if dtype == "bfloat16":
        return low.apply("as_bf16", dtype, ref)
    if dtype in ("int32", "int16", "int8", "uint8"):
        raise NotCovered(f"a conversion to {dtype}")
    cast = low.cast(ref, KINDS[dtype])
    return Ref(cast.node, ref.dims, dtype)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(COMPARE, _compare),
    **dict.fromkeys(LOGICAL, _logical),
    "aten.add": _sum,
    "aten.sub": _sum,
    "aten.div": _div,
    "aten.logical_not": _not,
    "aten.bitwise_not": _not,
    "aten.isnan": _is,
    "aten.isinf": _is,
    "aten.where": _where,
    "aten.masked_fill": _masked_fill,
    "aten.clamp": _clamp,
    "aten.relu": _relu,
    "aten.hardtanh": _hardtanh,
    "aten.leaky_relu": _leaky_relu,
    "aten.elu": _elu,
    "aten.gelu": _gelu,
    "aten.reciprocal": _reciprocal,
    "aten.rsqrt": _rsqrt,
    "aten.round": _round,
    "aten.pow": _pow,
    "aten._to_copy": _to_copy,
}
