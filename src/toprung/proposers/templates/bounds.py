"""What is known about the values of nodes without looking at any data."""

from __future__ import annotations

from .ir import Apply, Const, Expression, Node, Reduce, Size

TINY = 1e-30
"""A divisor of at least this size has a reciprocal that is an ordinary float."""


class Bounds:
    """Lower bounds of the nodes of one expression; NaN and infinity are nobody's concern here."""

    def __init__(self, expression: Expression):
        self._nodes = expression.nodes
        self._safe: dict[int, bool] = {}

    def safe(self, place: int) -> bool:
        """Whether a node is always at least `TINY`, so that dividing by it and multiplying by its
        reciprocal differ only by rounding."""
        if place not in self._safe:
            self._safe[place] = self._is_safe(self._nodes[place])
        return self._safe[place]

    def _is_safe(self, node: Node) -> bool:
        match node:
            case Const(value=value):
                return value >= TINY
            case Size():
                return False
            case Apply(function="sqrt", args=(arg,)):
                return self.safe(arg)
            case Apply(function="cast" | "as_f32", args=(arg,)):
                return self.safe(arg)
            case Apply(function="max", args=args):
                return any(self.safe(arg) for arg in args)
            case Apply(function="add", args=(one, other)):
                pairs = ((one, other), (other, one))
                return any(self.safe(a) and self.positive(b) for a, b in pairs)
            case Reduce(function="sum"):
                return self._holds_a_one(node)
        return False

    def positive(self, place: int) -> bool:
        """Whether a node is never negative."""
        match self._nodes[place]:
            case Const(value=value):
                return value >= 0
            case Size():
                return True
            case Apply(function="abs" | "exp" | "exp2" | "sqrt" | "sigmoid"):
                return True
            case Apply(function="mul", args=(one, other)):
                return one == other or (self.positive(one) and self.positive(other))
            case Apply(function="add" | "div", args=args):
                return all(self.positive(arg) for arg in args)
            case Apply(function="max", args=args):
                return any(self.positive(arg) for arg in args)
            case Apply(function="cast" | "as_f32", args=(arg,)):
                return self.positive(arg)
            case Reduce(function="sum" | "max" | "min" | "prod", arg=arg):
                return self.positive(arg)
        return False

    def _holds_a_one(self, total: Reduce) -> bool:
        """A sum of exp(x - max(x)): one of its terms is 1, and none is negative."""
        match self._nodes[total.arg]:
            case Apply(function="exp", args=(power,)):
                pass
            case _:
                return False
        match self._nodes[power]:
            case Apply(function="sub", args=(x, top)):
                found = self._nodes[top]
                same = isinstance(found, Reduce) and (found.arg, found.label) == (x, total.label)
                return same and isinstance(found, Reduce) and found.function == "max"
        return False
