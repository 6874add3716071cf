"""How near the top a time is, and below which time physics puts an end to it.

The roofline (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009) takes what is likely at best:
it is a goal and may be beaten by a little. The floor of `plausible` takes what is possible at all, and
a true time never lies below it.
"""

from __future__ import annotations

from typing import Literal

from toprung.model.device import Ceilings, Peaks
from toprung.model.roofline import Limiter, Roofline, Work
from toprung.model.tensor import Precision

Cache = Literal["cold", "warm"]

FLOOR = 0.9
"""Share of the least possible time below which `plausible` refutes."""

UNSEEN = 2.0
"""How much faster than the best stream ever measured a CPU's memory may still be.

Stores past the caches avoid reading each line before it is written, which the fastest measured stream
may not have managed: at most one half more. The rest is for a machine that never was quiet while it
was measured, and for clocks that rise later.
"""

CACHES = 2.0
"""How much more the caches may hold than they say: virtual machines report the share of their cores,
and get more of a shared cache when neighbours leave it."""


def roofline(
    work: Work,
    ceilings: Ceilings,
    precision: Precision,
    measured_us: float,
    *,
    cache: Cache = "warm",
) -> Roofline:
    """The bound of `work` on a device with these ceilings, and the share of it that was attained.

    The bound is the longest of three times, which may all overlap: moving `min_bytes`, read and
    written, through main memory, or through the nearest cache of which the working set fills at most
    half, unless caches were `cold`; the flops of matrix products, or all others, at their best rates
    for `precision`; and a call that does nothing.
    """
    bytes_us = memory_us(work, ceilings, cache)
    flops_us = compute_us(work, ceilings, precision)
    bound_us = max(bytes_us, flops_us, ceilings.launch_us)
    limiter: Limiter = "latency"
    if bound_us > ceilings.launch_us:
        limiter = "memory" if bytes_us >= flops_us else "compute"
    return Roofline(
        flops=work.flops,
        min_bytes=work.min_bytes,
        bound_us=bound_us,
        attained=bound_us / measured_us if measured_us > 0 else 0.0,
        limiter=limiter,
    )


def memory_us(work: Work, ceilings: Ceilings, cache: Cache = "warm") -> float:
    """Time to move the bytes of `work`, in microseconds."""
    level = ceilings.memory if cache == "cold" else ceilings.level_of(work.min_bytes)
    return 1e6 * level.seconds(work.min_bytes - work.written_bytes, work.written_bytes)


def compute_us(work: Work, ceilings: Ceilings, precision: Precision) -> float:
    """Time to compute the flops of `work`, in microseconds; 0 where no rate is known.

    Products and the rest may run at the same time on different units, so the longer one counts.
    """
    products, others = ceilings.matrix_rate(precision), ceilings.vector_rate(precision)
    return 1e6 * max(
        work.product_flops / products if products else 0.0,
        (work.flops - work.product_flops) / others if others else 0.0,
    )


def floor_us(work: Work, ceilings: Ceilings, peaks: Peaks | None = None) -> float:
    """The time in microseconds below which a measurement of `work` cannot be true; often 0.

    0.9 of the time to move what provably must move and cannot lie in a cache, at the highest rate
    the memory can have: the data sheet's where there is one; else twice the best ever measured here,
    or what the last cache before it gave. Ceilings from a busy machine prove nothing: 0. Flops are no
    part of it: algebra may save them.
    """
    moved = work.must_bytes - CACHES * ceilings.cache_bytes
    if moved <= 0 or not (peaks or ceilings.was_quiet):
        return 0.0
    if peaks:
        rate = max(peaks.memory_bytes_per_s, ceilings.memory.best_bytes_per_s)
    else:
        nearer = [level.best_bytes_per_s for level in ceilings.levels[-2:-1]]
        rate = max([UNSEEN * ceilings.memory.best_bytes_per_s, *nearer])
    return FLOOR * 1e6 * moved / rate
