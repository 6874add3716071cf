"""Axes: the dimensions of all tensors of a graph, told apart and put together.

A dimension of a tensor is a label: a tuple of axes, empty where its size is 1 and it broadcasts.
Broadcasting unites axes; a reshape splits an axis, or reads several as one. So the same axis has
the same number in every tensor, whatever shapes the tensors take on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .sizes import evaluate, product

Label = tuple[int, ...]
Dims = tuple[Label, ...]


class Misfit(Exception):
    """Dimensions that this bookkeeping cannot follow; the message says why."""


@dataclass(frozen=True)
class Axis:
    """Size as an expression, and what it was while capturing."""

    size: str
    hint: int


class Axes:
    """All axes of one graph. Labels are read through `resolve`, since axes unite and split.

    `symbols` are the sizes while capturing. That two sizes happened to be equal then proves
    nothing: they must also agree when any symbol is twice or three times as large.
    """

    def __init__(self, symbols: Mapping[str, int]) -> None:
        self._axes: list[Axis] = []
        self._became: dict[int, Label] = {}
        self._samples = [dict(symbols)]
        for name, size in symbols.items():
            self._samples += [{**symbols, name: size * 2}, {**symbols, name: size * 3}]

    def new(self, size: str, hint: int) -> Label:
        """The label of a new axis; empty for a size that is known to be 1."""
        if size == "1":
            return ()
        self._axes.append(Axis(size, hint))
        return (len(self._axes) - 1,)

    def resolve(self, label: Label) -> Label:
        """`label` in terms of axes that neither were united with others nor split."""
        found: list[int] = []
        for axis in label:
            became = self._became.get(axis)
            found += (axis,) if became is None else self.resolve(became)
        return tuple(found)

    def dims(self, dims: Dims) -> Dims:
        """Every label resolved."""
        return tuple(self.resolve(label) for label in dims)

    def __getitem__(self, axis: int) -> Axis:
        return self._axes[axis]

    def hint(self, label: Label) -> int:
        """The size of a label while capturing."""
        size = 1
        for axis in self.resolve(label):
            size *= self._axes[axis].hint
        return size

    def size(self, label: Label) -> str:
        """The size of a label as an expression."""
        return product(tuple(self._axes[axis].size for axis in self.resolve(label)))

    def agree(self, one: str, other: str) -> bool:
        """Whether two size expressions are the same size."""
        return one == other or all(evaluate(one, s) == evaluate(other, s) for s in self._samples)

    def unite(self, one: Label, other: Label) -> None:
        """`one` and `other` are the same dimension."""
        left, right = list(self.resolve(one)), list(self.resolve(other))
        while left and right:
            a, b = left.pop(0), right.pop(0)
            if a == b:
                continue
            small, large = (a, b) if self[a].hint <= self[b].hint else (b, a)
            if self[small].hint == self[large].hint:
                if not self.agree(self[a].size, self[b].size):
                    raise Misfit("dimensions meet whose sizes are equal only by chance")
                self._became[max(a, b)] = (min(a, b),)
                continue
            head, rest = self._split(large, self[small])
            self._became[head] = (small,)
            (left if large == a else right).insert(0, rest)
        if left or right:
            raise Misfit("dimensions of different sizes meet")

    def _split(self, axis: int, first: Axis) -> tuple[int, int]:
        """Split `axis` into one like `first` and a rest."""
        whole = self[axis]
        if first.hint < 1 or whole.hint % first.hint:
            raise Misfit(f"a dimension of {whole.hint} does not split into {first.hint}")
        (head,) = self.new(first.size, first.hint)
        (rest,) = self.new(f"({whole.size})//({first.size})", whole.hint // first.hint)
        self._became[axis] = (head, rest)
        return head, rest

    def broadcast(self, shapes: Sequence[Dims]) -> Dims:
        """The dimensions of the result of an elementwise operation."""
        rank = max((len(dims) for dims in shapes), default=0)
        result: list[Label] = [()] * rank
        for dims in shapes:
            for back in range(1, len(dims) + 1):
                label = dims[-back]
                if not self.resolve(label):
                    continue
                if self.resolve(result[-back]):
                    self.unite(result[-back], label)
                result[-back] = label
        return self.dims(tuple(result))

    def view(self, dims: Dims, sizes: Sequence[tuple[str, int]]) -> Dims:
        """The labels after a reshape of `dims` to `sizes`, given as expression and hint."""
        waiting = [axis for label in dims for axis in self.resolve(label)]
        result: list[Label] = []
        for size, hint in sizes:
            if size == "1":
                result.append(())
                continue
            taken: list[int] = []
            have = 1
            while have < hint:
                if not waiting or hint % have:
                    raise Misfit(
                        "a reshape that mixes dimensions, or gives size to a broadcast one"
                    )
                axis = waiting.pop(0)
                need = hint // have
                if self[axis].hint > need:
                    part = Axis(
                        size if not taken else f"({size})//({self.size(tuple(taken))})", need
                    )
                    axis, rest = self._split(axis, part)
                    waiting.insert(0, rest)
                taken.append(axis)
                have *= self[axis].hint
            if have != hint:
                raise Misfit("a reshape that mixes dimensions")
            if not self.agree(self.size(tuple(taken)), size):
                raise Misfit("a reshape that mixes dimensions")
            result.append(tuple(taken))
        if any(self[axis].hint != 1 for axis in waiting):
            raise Misfit("a reshape that loses a dimension")
        return tuple(result)
