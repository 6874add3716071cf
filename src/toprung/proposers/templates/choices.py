"""What may be chosen freely about a kernel, none of which changes what it computes."""

from __future__ import annotations

from typing import Literal

from toprung.model.value import Value


class Choices(Value):
    """One point of the search space. The defaults are a sensible first attempt everywhere."""

    lanes: int = 32
    """Elements that are computed side by side, each with accumulators of its own."""
    block: int = 4096
    """Elements of a row after which partial sums are taken out of their lanes."""
    chunk: int = 65536
    """Elements of one task where rows may be cut (`pointwise`, `full`)."""
    width: int = 256
    """Neighbouring columns that one task takes (`column`)."""
    keep: Literal["scratch", "output", "recompute"] = "scratch"
    """Where dear values wait from one pass over a row to the next, or that they are recomputed."""
    sum_in: Literal["float", "double"] = "float"
    """What the lanes of a float sum are; blocks are always summed in double."""
    stream: bool = False
    """Write float outputs past the caches."""
    pages: Literal["huge", "plain"] = "huge"
    """Ask for huge pages behind outputs of 4 MiB and more."""
    schedule: Literal["static", "dynamic"] = "static"
    prefetch: bool = True
    """While a row in the cache is computed, ask memory for the next one."""
    grain: int = 32768
    """Elements that are worth a thread."""
    share: int = 1
    """Use one of so many threads."""
    vector: Literal[256, 512] = 512
    """Bits of a vector register, where the machine has them."""
    divide: Literal["reciprocal", "exact"] = "reciprocal"
    """How elements are divided by a value of their row, where that value cannot be tiny."""

    def effective(self) -> Choices:
        """The same kernel by its simplest name: what is streamed cannot also be read back."""
        if self.stream and self.keep == "output":
            return self.model_copy(update={"keep": "scratch"})
        return self

    def flags(self) -> tuple[str, ...]:
        """Compiler flags; they keep IEEE arithmetic, and only say that nobody looks at traps."""
        return ("-fno-trapping-math", f"-mprefer-vector-width={self.vector}")
