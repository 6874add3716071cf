"""Device: what kernels run on, what its data sheet promises, and what was measured on it.

Rates are in SI units per second: `_bytes_per_s` and `_flops_per_s` (a multiply-add is two flops).
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator

from .tensor import Precision
from .value import Value, digest_of

DeviceKind = Literal["cpu", "cuda", "hip"]
Unit = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8"]
"""Arithmetic as data sheets name it; both fp8 formats run at one rate."""

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]


class Device(Value):
    """One CPU (the cores this process may use) or one GPU; `None` is what nobody could tell."""

    kind: DeviceKind
    name: str
    target: str
    """What a DSL compiles for: `cpu:native`, `cuda:sm_90a`, `hip:gfx942`."""
    index: Annotated[int, Field(ge=0)] = 0
    memory_bytes: Count
    units: Count | None = None
    """Usable cores of a CPU, multiprocessors of a GPU, compute units on AMD."""
    clock_mhz: Positive | None = None
    """Highest clock the device reports."""
    l2_bytes: Count | None = None
    """All level-2 caches of the device together."""
    llc_bytes: Count | None = None
    """The last-level cache; the same as `l2_bytes` where level 2 is the last."""
    features: tuple[str, ...] = ()
    """Instruction sets that matter to kernels, e.g. `avx512f`."""
    driver: str | None = None

    @cached_property
    def digest(self) -> str:
        """Names the device for caches of what was measured on it.

        The clock is left out and memory is taken in whole GiB: both differ a little at each boot.
        """
        same = self.model_dump(
            mode="json", exclude={"clock_mhz", "index", "driver", "memory_bytes"}
        )
        return digest_of({**same, "memory_gib": self.memory_bytes >> 30})


class Peaks(Value):
    """Data-sheet figures of one product. Dense rates: structured sparsity is never counted."""

    product: str
    names: tuple[str, ...]
    """The names under which drivers report the product."""
    target: str
    source: Annotated[str, Field(min_length=1)]
    """Document and table the figures are from."""
    note: str = ""
    vector_flops_per_s: dict[Unit, Positive]
    """Ordinary arithmetic units."""
    matrix_flops_per_s: dict[Unit, Positive]
    """Tensor cores or matrix cores; fp32 accumulation where it has a rate of its own."""
    memory_bytes_per_s: Positive
    memory_bytes: Count
    units: Count
    l2_bytes: Count | None = None
    llc_bytes: Count | None = None
    """Where a cache lies behind level 2 (MI300X: Infinity Cache)."""
    boost_clock_mhz: Positive

    def flops_per_s(self, precision: Precision) -> float | None:
        """The highest rate at which a task of `precision` may compute; `None` if none is known."""
        unit = _unit_of(precision)
        rates = [
            table[unit]
            for table in (self.matrix_flops_per_s, self.vector_flops_per_s)
            if unit in table
        ]
        return max(rates, default=None)


def _unit_of(precision: Precision) -> Unit:
    return "fp8" if precision.startswith("fp8") else precision  # type: ignore[return-value]


class MemoryLevel(Value):
    """Measured bandwidths of one level of memory, by kind of traffic, in bytes per second.

    `copy` counts the byte read and the byte written, `triad` (a = b + s*c) two read, one written.
    """

    name: str
    capacity_bytes: Count | None = None
    """`None` for main memory."""
    read_bytes_per_s: Positive
    write_bytes_per_s: Positive
    copy_bytes_per_s: Positive
    triad_bytes_per_s: Positive

    @property
    def best_bytes_per_s(self) -> float:
        """The fastest of the four."""
        return max(
            self.read_bytes_per_s,
            self.write_bytes_per_s,
            self.copy_bytes_per_s,
            self.triad_bytes_per_s,
        )

    def seconds(self, read_bytes: float, written_bytes: float) -> float:
        """Time to move both at this level's best.

        Time per byte is interpolated linearly over the share that is written, between the four
        measured mixes: read (share 0), triad (1/3), copy (1/2), write (1).
        """
        total = read_bytes + written_bytes
        if total <= 0:
            return 0.0
        share = written_bytes / total
        points = (
            (0.0, 1 / self.read_bytes_per_s),
            (1 / 3, 1 / self.triad_bytes_per_s),
            (1 / 2, 1 / self.copy_bytes_per_s),
            (1.0, 1 / self.write_bytes_per_s),
        )
        for (left, low), (right, high) in itertools.pairwise(points):
            if share <= right:
                return total * (low + (high - low) * (share - left) / (right - left))
        return total * points[-1][1]


# Arithmetic that a task of the given precision may also be computed in: always a wider one.
_WIDER: dict[Precision, tuple[Precision, ...]] = {
    "fp64": ("fp64",),
    "fp32": ("fp32", "fp64"),
    "tf32": ("tf32", "fp32"),
    "fp16": ("fp16", "fp32"),
    "bf16": ("bf16", "fp32"),
    "fp8_e4m3": ("fp8_e4m3", "fp16", "bf16", "fp32"),
    "fp8_e5m2": ("fp8_e5m2", "fp16", "bf16", "fp32"),
}


BUSY = 0.5
"""Load per core above which a measurement is not the last word."""


class Ceilings(Value):
    """The best that was ever measured on one device; a later, better measurement only raises it."""

    schema_: Literal["toprung.ceilings/1"] = Field(default="toprung.ceilings/1", alias="schema")
    target: str
    device: str
    """Digest of the `Device`."""
    name: str
    software: str
    """Version of torch, whose matrix product set `matrix_flops_per_s`."""
    levels: Annotated[tuple[MemoryLevel, ...], Field(min_length=1)]
    """Nearest first; the last one is main memory."""
    cache_bytes: Annotated[int, Field(ge=0)]
    """What all caches together can hold."""
    matrix_flops_per_s: dict[Precision, Positive]
    vector_flops_per_s: dict[Precision, Positive] = {}
    launch_us: Positive
    """The least time any call takes that does no work."""
    load: Annotated[float, Field(ge=0)] = 0.0
    """Processes per core that wanted to run in the minute before the measurement."""

    @model_validator(mode="after")
    def _levels_in_order(self) -> Ceilings:
        capacities = [level.capacity_bytes for level in self.levels]
        if capacities[-1] is not None or None in capacities[:-1]:
            raise ValueError("exactly the last level is main memory, without a capacity")
        known = [c for c in capacities if c is not None]
        if known != sorted(known):
            raise ValueError(f"levels are not nearest first: {known}")
        return self

    @property
    def was_quiet(self) -> bool:
        """Whether the machine was free enough for the figures to be near what it can do."""
        return self.load <= BUSY

    @property
    def memory(self) -> MemoryLevel:
        """Main memory."""
        return self.levels[-1]

    def level_of(self, working_set_bytes: int) -> MemoryLevel:
        """The nearest level of which the working set fills at most half."""
        for level in self.levels:
            if level.capacity_bytes is None or 2 * working_set_bytes <= level.capacity_bytes:
                return level
        return self.memory

    def matrix_rate(self, precision: Precision) -> float | None:
        """Best matrix-product rate for a task of `precision`: its own, or a wider precision's."""
        rates = [
            self.matrix_flops_per_s[p] for p in _WIDER[precision] if p in self.matrix_flops_per_s
        ]
        return max(rates, default=None)

    def vector_rate(self, precision: Precision) -> float | None:
        """Best rate outside matrix products; where it was not measured, the matrix product's."""
        rates = [
            self.vector_flops_per_s[p] for p in _WIDER[precision] if p in self.vector_flops_per_s
        ]
        return max(rates, default=None) or self.matrix_rate(precision)

    def raised_by(self, other: Ceilings) -> Ceilings:
        """Both measurements of one device taken together: every figure the better of the two."""
        if (other.device, other.software) != (self.device, self.software):
            raise ValueError("ceilings of different devices or software do not mix")
        mine = {level.name: level for level in self.levels}
        return other.model_copy(
            update={
                "levels": tuple(_better(mine.get(level.name), level) for level in other.levels),
                "matrix_flops_per_s": _highest(self.matrix_flops_per_s, other.matrix_flops_per_s),
                "vector_flops_per_s": _highest(self.vector_flops_per_s, other.vector_flops_per_s),
                "launch_us": min(self.launch_us, other.launch_us),
                "load": min(self.load, other.load),
            }
        )


def _better(old: MemoryLevel | None, new: MemoryLevel) -> MemoryLevel:
    if old is None:
        return new
    rates = [name for name in MemoryLevel.model_fields if name.endswith("_per_s")]
    return new.model_copy(update={r: max(getattr(old, r), getattr(new, r)) for r in rates})


def _highest(a: dict[Precision, float], b: dict[Precision, float]) -> dict[Precision, float]:
    keys: set[Precision] = {*a, *b}
    return {key: max(a.get(key, 0.0), b.get(key, 0.0)) for key in sorted(keys)}
