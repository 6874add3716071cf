"""Figures as people read them: three digits, a unit that suits, an interval where there is one."""

from __future__ import annotations

import math

from toprung.model.measurement import Speedup, Timing
from toprung.model.value import Json

_TIMES = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns"))
_RATES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SIZES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_MINUS = "\N{MINUS SIGN}"
_EN_DASH = "\N{EN DASH}"


def digits(value: float, count: int = 3) -> str:
    """`value` with `count` significant digits, as an ordinary number where that is short."""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return str(value)
    power = math.floor(math.log10(abs(value)))
    if -3 < power < 6:
        return f"{round(value, count - 1 - power):.{max(count - 1 - power, 0)}f}"
    mantissa, exponent = f"{value:.{count - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def time_us(us: float) -> str:
    """A time, given in microseconds."""
    scale, unit = _time_unit(us)
    return f"{digits(us / scale)} {unit}"


def interval_us(timing: Timing) -> str:
    """The interval of a timing, in the unit of its median."""
    scale, unit = _time_unit(timing.median_us)
    low, high = (digits(end / scale) for end in timing.ci_us)
    return f"{low}{_EN_DASH}{high} {unit}"


def _time_unit(us: float) -> tuple[float, str]:
    return next(((s, u) for s, u in _TIMES if us >= s), _TIMES[2] if us == 0 else _TIMES[3])


def times(ratio: float) -> str:
    """A ratio of times, such as `2.33×`."""
    return f"{digits(ratio)}×"


def times_interval(speedup: Speedup) -> str:
    """The interval of a speed-up, such as `2.24–2.45×`."""
    low, high = (digits(end) for end in speedup.ci)
    return f"{low}{_EN_DASH}{high}×"


def percent(fraction: float) -> str:
    """A fraction as a percentage, with two digits at least below one."""
    return (
        f"{fraction * 100:.0f}%"
        if fraction >= 0.1 or fraction == 0
        else f"{digits(fraction * 100, 2)}%"
    )


def size(nbytes: float) -> str:
    """Bytes, in binary units."""
    scale, unit = next(((s, u) for s, u in _SIZES if nbytes >= s), _SIZES[-1])
    return f"{nbytes:.0f} B" if scale == 1 else f"{digits(nbytes / scale)} {unit}"


def rate(value: float, unit: str) -> str:
    """A rate in decimal units, such as `33.0 GB/s`."""
    scale, prefix = next(((s, p) for s, p in _RATES if value >= s), (1.0, ""))
    return f"{digits(value / scale)} {prefix}{unit}"


def count(value: int) -> str:
    """A count: in full while it is short, else rounded with a decimal prefix."""
    return f"{value:,}" if value < 10**4 else rate(value, "").strip()


def seconds(value: float) -> str:
    """A span in seconds, minutes or hours."""
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def plural(count: int, noun: str) -> str:
    """`1 attempt`, `2 attempts`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def fact(name: str, value: Json) -> str:
    """The value of a fact of a rung; its unit is read from its name (`_us`, `_bytes`, `_per_s`)."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int | float):
        return _quantity(name, value)
    if isinstance(value, list):
        return ", ".join(fact(name, item) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {fact(str(key), item)}" for key, item in value.items())
    return str(value)


def _quantity(name: str, value: float) -> str:
    if name.endswith("_us"):
        return time_us(value)
    if name.endswith(("bytes_per_s", "flops_per_s")):
        return rate(value, "B/s" if name.endswith("bytes_per_s") else "FLOP/s")
    if name.endswith("bytes"):
        return size(value)
    if name.endswith("_s") or name == "seconds":
        return f"{digits(value)} s"
    # Six digits of an integer are shown in full, and so are the nines of a cosine.
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**15 else digits(value)
    return f"1 {_MINUS} {digits(1 - value, 2)}" if 0.9995 < value < 1 else digits(value)
