"""Elementwise functions: what each is called in C++, and what torch calls it."""

from __future__ import annotations

from dataclasses import dataclass

from .ir import Kind


@dataclass(frozen=True, slots=True)
class Function:
    """`text` is C++ with `{0}`, `{1}` for operands; `needs` names functions of the prelude."""

    text: str
    needs: tuple[str, ...] = ()
    dear: bool = False
    """Costs much more than loading its result: worth keeping from one pass to the next."""


def _call(name: str, arity: int = 1, dear: bool = False) -> Function:
    holes = ", ".join(f"{{{i}}}" for i in range(arity))
    return Function(f"{name}({holes})", (name,), dear)


FUNCTIONS: dict[str, Function] = {
    "neg": Function("-{0}"),
    "add": Function("{0} + {1}"),
    "sub": Function("{0} - {1}"),
    "mul": Function("{0} * {1}"),
    "div": Function("{0} / {1}", dear=True),
    "abs": _call("absolute"),
    "max": _call("larger", 2),
    "min": _call("smaller", 2),
    "exp": _call("exponential", dear=True),
    "exp2": _call("exponential2", dear=True),
    "expm1": _call("exponential_m1", dear=True),
    "log": _call("logarithm", dear=True),
    "log2": _call("logarithm2", dear=True),
    "log10": _call("logarithm10", dear=True),
    "log1p": _call("logarithm_1p", dear=True),
    "tanh": _call("hyperbolic_tangent", dear=True),
    "sigmoid": _call("sigmoid", dear=True),
    "erf": _call("error_function", dear=True),
    "one_plus_erf": _call("one_plus_error_function", dear=True),
    "sqrt": _call("square_root", dear=True),
    "floor": _call("round_down"),
    "ceil": _call("round_up"),
    "trunc": _call("round_to_zero"),
    "round": _call("round_to_even"),
    "sign": _call("sign"),
    "pow": Function("std::pow({0}, {1})", dear=True),
    "sin": Function("std::sin({0})", dear=True),
    "cos": Function("std::cos({0})", dear=True),
    "tan": Function("std::tan({0})", dear=True),
    "asin": Function("std::asin({0})", dear=True),
    "acos": Function("std::acos({0})", dear=True),
    "atan": Function("std::atan({0})", dear=True),
    "atan2": Function("std::atan2({0}, {1})", dear=True),
    "sinh": Function("std::sinh({0})", dear=True),
    "cosh": Function("std::cosh({0})", dear=True),
    "asinh": Function("std::asinh({0})", dear=True),
    "acosh": Function("std::acosh({0})", dear=True),
    "atanh": Function("std::atanh({0})", dear=True),
    "erfc": Function("std::erfc({0})", dear=True),
    "hypot": Function("std::hypot({0}, {1})", dear=True),
    "lt": Function("{0} < {1}"),
    "le": Function("{0} <= {1}"),
    "gt": Function("{0} > {1}"),
    "ge": Function("{0} >= {1}"),
    "eq": Function("{0} == {1}"),
    "ne": Function("{0} != {1}"),
    "and": Function("{0} & {1}"),
    "or": Function("{0} | {1}"),
    "xor": Function("{0} ^ {1}"),
    "not": Function("!{0}"),
    "where": Function("{0} ? {1} : {2}"),
    "is_nan": Function("{0} != {0}"),
    "is_inf": _call("is_infinite"),
    "cast": Function("{0}"),
    "as_bf16": _call("rounded_to_bf16"),
    "as_f32": Function("float({0})"),
}
"""By the name that `ir.Apply` uses. Operands have been cast to what the function computes in."""

CPP_TYPES: dict[Kind, str] = {"f32": "float", "f64": "double", "i64": "int64_t", "b8": "bool"}

UNARY: dict[str, str] = {
    "aten.neg": "neg",
    "aten.abs": "abs",
    "aten.exp": "exp",
    "aten.exp2": "exp2",
    "aten.expm1": "expm1",
    "aten.log": "log",
    "aten.log2": "log2",
    "aten.log10": "log10",
    "aten.log1p": "log1p",
    "aten.tanh": "tanh",
    "aten.sigmoid": "sigmoid",
    "aten.erf": "erf",
    "aten.erfc": "erfc",
    "aten.sqrt": "sqrt",
    "aten.floor": "floor",
    "aten.ceil": "ceil",
    "aten.trunc": "trunc",
    "aten.sign": "sign",
    "aten.sin": "sin",
    "aten.cos": "cos",
    "aten.tan": "tan",
    "aten.asin": "asin",
    "aten.acos": "acos",
    "aten.atan": "atan",
    "aten.sinh": "sinh",
    "aten.cosh": "cosh",
    "aten.asinh": "asinh",
    "aten.acosh": "acosh",
    "aten.atanh": "atanh",
}
"""Operators of one tensor that are one function."""

BINARY: dict[str, str] = {
    "aten.mul": "mul",
    "aten.maximum": "max",
    "aten.minimum": "min",
    "aten.atan2": "atan2",
    "aten.hypot": "hypot",
}

COMPARE: dict[str, str] = {
    "aten.lt": "lt",
    "aten.le": "le",
    "aten.gt": "gt",
    "aten.ge": "ge",
    "aten.eq": "eq",
    "aten.ne": "ne",
}

LOGICAL: dict[str, str] = {
    "aten.logical_and": "and",
    "aten.logical_or": "or",
    "aten.logical_xor": "xor",
    "aten.bitwise_and": "and",
    "aten.bitwise_or": "or",
    "aten.bitwise_xor": "xor",
}
