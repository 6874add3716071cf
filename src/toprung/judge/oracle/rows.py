"""Rows of an output: the runs of elements that are judged by a scale of their own, and their blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

SHORTEST = 32
"""Elements; the RMS of fewer says too little about rounding."""

LONGEST = 2**16
BLOCK = 2**17
"""Elements that are compared at once: 1 MiB of float64, so that temporaries stay in the cache."""


@dataclass(frozen=True)
class Rows:
    """`numel` elements in rows of `length`; the last row may be shorter."""

    numel: int
    length: int

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> Rows:
        """The shortest run of trailing dimensions with at least 32 elements, cut at 65,536."""
        length = 1
        for size in reversed(shape):
            length *= size
            if length >= SHORTEST:
                break
        return cls(math.prod(shape), max(min(length, LONGEST), 1))

    @property
    def count(self) -> int:
        """Number of rows."""
        return -(-self.numel // self.length)

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """(elements, rows) of consecutive blocks of whole rows."""
        whole = self.numel // self.length
        step = max(1, BLOCK // self.length)
        for first in range(0, whole, step):
            last = min(first + step, whole)
            yield slice(first * self.length, last * self.length), slice(first, last)
        if self.numel % self.length:
            yield slice(whole * self.length, self.numel), slice(whole, whole + 1)

    def cut(self, flat: torch.Tensor, elements: slice, rows: slice) -> torch.Tensor:
        """A block of `flat` as (rows, elements of a row)."""
        return flat[elements].view(rows.stop - rows.start, -1)

    def rms(self, flat: torch.Tensor) -> torch.Tensor:
        """float64 RMS of every row; what is not finite counts as 0."""
        result = torch.zeros(self.count, dtype=torch.float64)
        for elements, rows in self.blocks():
            block = finite(self.cut(flat, elements, rows).double())
            result[rows] = block.square().mean(1).sqrt()
        return result


def flattened(tensor: torch.Tensor) -> torch.Tensor:
    """One dimension, row-major; complex numbers as pairs."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.reshape(-1)


def finite(block: torch.Tensor) -> torch.Tensor:
    """`block` with 0 where it is infinite or NaN; the same object when it is finite throughout."""
    if bool(block.sum().isfinite()):
        return block
    return block.nan_to_num(0.0, 0.0, 0.0)
