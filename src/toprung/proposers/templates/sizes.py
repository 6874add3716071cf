"""Size expressions: texts as torch prints them, read by whitelist, written as Python or C++."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from functools import cache

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
# What torch calls an operation on sizes -> how Python and C++ say it.
_CALLS: dict[str, tuple[str, str]] = {
    "ToFloat": ("float({0})", "double({0})"),
    "FloatTrueDiv": ("({0} / {1})", "(double({0}) / double({1}))"),
    "IntTrueDiv": ("({0} / {1})", "(double({0}) / double({1}))"),
    "FloatPow": ("({0} ** {1})", "std::pow(double({0}), double({1}))"),
    "PowByNatural": ("({0} ** {1})", "int64_t(std::pow(double({0}), double({1})))"),
    "OpaqueUnaryFn_sqrt": ("math.sqrt({0})", "std::sqrt(double({0}))"),
    "OpaqueUnaryFn_log": ("math.log({0})", "std::log(double({0}))"),
    "sqrt": ("math.sqrt({0})", "std::sqrt(double({0}))"),
    "log": ("math.log({0})", "std::log(double({0}))"),
    "FloorDiv": ("({0} // {1})", "({0} / {1})"),
    "CleanDiv": ("({0} // {1})", "({0} / {1})"),
    "Mod": ("({0} % {1})", "({0} % {1})"),
    "PythonMod": ("({0} % {1})", "({0} % {1})"),
    "Max": ("max({0}, {1})", "std::max<double>({0}, {1})"),
    "Min": ("min({0}, {1})", "std::min<double>({0}, {1})"),
    "Eq": ("({0} == {1})", "({0} == {1})"),
    "Ne": ("({0} != {1})", "({0} != {1})"),
}


class Unreadable(ValueError):
    """A size expression that is not understood."""


@cache
def python(expression: str) -> str:
    """`expression` as Python over its symbols, with `math` imported; raises `Unreadable`."""
    return _write(_parse(expression), 0)


@cache
def cpp(expression: str) -> str:
    """`expression` as C++ over `int64_t` symbols; raises `Unreadable`.

    Sizes are never negative, so the integer division of C++ is the floor division of Python.
    """
    return _write(_parse(expression), 1)


def evaluate(expression: str, sizes: Mapping[str, int]) -> float | int | bool:
    """The value of `expression` where every symbol has a value."""
    return eval(python(expression), {"__builtins__": {}, "math": math, **_BUILTINS}, dict(sizes))


_BUILTINS: dict[str, Callable] = {"max": max, "min": min, "float": float}


def product(expressions: tuple[str, ...]) -> str:
    """The product of size expressions, as an expression."""
    factors = [f"({e})" if not e.isidentifier() else e for e in expressions if e != "1"]
    if all(e.isdigit() for e in expressions):
        return str(math.prod(int(e) for e in expressions))
    return "*".join(factors) or "1"


@cache
def _parse(expression: str) -> ast.expr:
    try:
        return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as bad:
        raise Unreadable(f"size {expression!r}: {bad}") from None


def _write(node: ast.expr, language: int) -> str:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as value):
            return repr(value)
        case ast.Name(id=name) if name.isidentifier():
            return name
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"(-{_write(operand, language)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _binary(type(op), left, right, language)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            sign = _COMPARE[type(op)]
            return f"({_write(left, language)} {sign} {_write(right, language)})"
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLS:
            return _call(name, [_write(arg, language) for arg in args], language)
    raise Unreadable(f"size {ast.unparse(node)!r} is not understood")


def _binary(op: type[ast.operator], left: ast.expr, right: ast.expr, language: int) -> str:
    one, other = _write(left, language), _write(right, language)
    if language == 0 or op not in (ast.FloorDiv, ast.Div, ast.Pow):
        return f"({one} {_BINARY[op]} {other})"
    if op is ast.FloorDiv:
        return f"({one} / {other})"
    if op is ast.Div:
        return f"(double({one}) / double({other}))"
    match right:
        case ast.Constant(value=int() as times) if 1 <= times <= 4:
            return "(" + " * ".join([one] * times) + ")"
    return f"std::pow(double({one}), double({other}))"


def _call(name: str, args: list[str], language: int) -> str:
    template = _CALLS[name][language]
    if len(args) > 2 and name in ("Max", "Min"):
        return _call(name, [args[0], _call(name, args[1:], language)], language)
    try:
        return template.format(*args)
    except IndexError:
        raise Unreadable(f"size function {name} with {len(args)} arguments") from None
