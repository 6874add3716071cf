"""The clock that runs in the candidate's process.

It holds its own references to the system's clocks, taken before any candidate code is loaded, so
that patching `time` changes nothing. A forger can still reach them through frames or memory; the
judge's own time, taken outside, is what tells.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Lap(NamedTuple):
    """One timed call: its result, elapsed and processor time (all threads) in nanoseconds."""

    result: Any
    elapsed_ns: int
    cpu_ns: int


def stopwatch() -> Callable[..., Lap]:
    """A function that calls `entry(*args, **kwargs)` once and says how long it took."""
    now = time.perf_counter_ns
    cpu = time.process_time_ns

    def lap(entry: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Lap:
        cpu_start = cpu()
        start = now()
        result = entry(*args, **kwargs)
        elapsed = now() - start
        return Lap(result, elapsed, cpu() - cpu_start)

    return lap
