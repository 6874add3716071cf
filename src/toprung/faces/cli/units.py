"""Figures as people read them. A missing figure is a dash."""

from __future__ import annotations

from toprung.model.measurement import Speedup
from toprung.model.value import Json

DASH = "–"
MAX_FACT = 60
"""Characters of one fact's text that are shown."""


def time_us(us: float | None) -> str:
    """Microseconds with three figures, in the unit that suits."""
    if us is None:
        return DASH
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= factor:
            return f"{_three(us / factor)} {unit}"
    return f"{_three(us)} µs"


def _three(value: float) -> str:
    """Three figures without an exponent; all figures before the point from 100 on."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f}"


def seconds(value: float) -> str:
    """Seconds of a climb or a run, to a tenth below a minute."""
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {int(value % 60):02d} s"


def size(nbytes: float) -> str:
    """Bytes in binary units."""
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if nbytes >= factor:
            return f"{nbytes / factor:.1f} {unit}"
    return f"{nbytes:.0f} B"


def times(speedup: Speedup | None) -> str:
    """A speed-up with its interval: `1.52× (1.45–1.60)`."""
    if speedup is None:
        return DASH
    low, high = speedup.ci
    return f"{speedup.ratio:.2f}× ({low:.2f}{DASH}{high:.2f})"


def percent(fraction: float | None) -> str:
    """A fraction of the roofline."""
    return DASH if fraction is None else f"{fraction:.0%}"


def fact(name: str, value: Json) -> str:
    """One fact of a rung, its unit taken from its name (`_us`, `_s`, `_bytes`)."""
    words = name.replace("_", " ")
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = str(value)
        return f"{words} {text if len(text) <= MAX_FACT else text[: MAX_FACT - 1] + '…'}"
    if name.endswith("_us"):
        return f"{words[:-3]} {time_us(value)}"
    if name.endswith("_bytes"):
        return f"{words[:-6]} {size(value)}"
    if name.endswith("_s") and not name.endswith("_per_s"):
        return f"{words[:-2]} {value:.3g} s"
    return f"{words} {value}" if isinstance(value, int) else f"{words} {value:.3g}"
