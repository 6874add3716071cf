"""Axes: from a figure to its place along an axis, and the ticks that a reader needs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from markupsafe import Markup

from .svg import line, text

Say = Callable[[float], str]
"""How a figure is written beside its tick."""

# What no device reaches is drawn at the edge: a chart must never fail for its figures.
_LEAST, _MOST = 1e-9, 1e30

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """`low` to `high`, linear or logarithmic; on a logarithmic axis both are above zero."""

    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """The place of `value`: 0 at `low`, 1 at `high`; beyond the ends it stays at the end."""
        low, high, value = (self._scaled(v) for v in (self.low, self.high, value))
        return min(max((value - low) / (high - low), 0.0), 1.0)

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.log else value

    def ticks(self, most: int) -> list[float]:
        """At most `most` round values within the axis: powers of ten on a logarithmic one."""
        return self._log_ticks(most) if self.log else self._linear_ticks(most)

    def _linear_ticks(self, most: int) -> list[float]:
        span = self.high - self.low
        power = 10.0 ** math.floor(math.log10(span / most))
        step = next(s * power for s in _STEPS if span / (s * power) <= most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)][:most]

    def _log_ticks(self, most: int) -> list[float]:
        first = math.ceil(math.log10(self.low) - 1e-9)
        last = math.floor(math.log10(self.high) + 1e-9)
        powers = [10.0**power for power in range(first, last + 1)]
        if len(powers) < 2:
            near = math.floor(math.log10(self.low))
            fine = [m * 10.0**p for p in (near, near + 1) for m in (1, 2, 5)]
            return [value for value in fine if self.low <= value <= self.high][:most]
        return powers[:: math.ceil(len(powers) / most)]


def covering(values: Iterable[float], *, margin: float = 0.08, most: float = 8.0) -> Axis:
    """An axis around positive `values`, logarithmic where the largest is `most` times the smallest."""
    known = [min(max(value, _LEAST), _MOST) for value in values if value > 0]
    if not known:
        return Axis(0.0, 1.0)
    low, high = min(known), max(known)
    if high / low > most:
        room = (high / low) ** margin
        return Axis(low / room, high * room, log=True)
    room = (high - low) * margin or high * margin
    return Axis(max(low - room, 0.0), high + room)


def around(values: Iterable[float], factor: float) -> Axis:
    """A logarithmic axis that leaves room for `factor` on both sides of positive `values`."""
    known = [min(max(value, _LEAST), _MOST) for value in values]
    return Axis(min(known) / factor, max(known) * factor, log=True)


def from_zero(high: float, *, margin: float = 0.06) -> Axis:
    """An axis from zero, on which lengths can be compared."""
    return Axis(0.0, min(high, _MOST) * (1 + margin) or 1.0)


def columns(axis: Axis, top: float, foot: float, say: Say, most: int = 5) -> list[Markup]:
    """Vertical lines at the ticks of a horizontal axis, and their figures below."""
    marks: list[Markup] = []
    for value in axis.ticks(most):
        x = axis.at(value)
        anchor = "start" if x < 0.03 else "end" if x > 0.97 else "middle"
        marks.append(line(x, top, x, foot, "grid"))
        marks.append(text(x, foot + 17, _short(say(value)), "axis", anchor=anchor))
    return marks


def rows(axis: Axis, foot: float, say: Say, most: int = 5) -> list[Markup]:
    """Horizontal lines at the ticks of a vertical axis, and their figures in the margin."""
    marks: list[Markup] = []
    for value in axis.ticks(most):
        y = (1 - axis.at(value)) * foot
        marks.append(line(0, y, 1, y, "grid"))
        marks.append(text(0, y + 4, _short(say(value)), "axis", anchor="end", shift=-12))
    return marks


def _short(figure: str) -> str:
    """A tick is exact, so zeros behind its point say nothing: `1.50 ms` is `1.5 ms`."""
    return re.sub(r"(\.\d*?)0+(?!\d)", r"\1", figure).replace(". ", " ").removesuffix(".")
