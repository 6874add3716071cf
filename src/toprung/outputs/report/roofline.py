"""The roofline: kernels under the ceilings of their device, both axes logarithmic.

Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from toprung.outputs import figures

from .axes import Axis, around, columns, rows
from .svg import dot, drawing, line, text

ROOF = 330
LABEL = 16
"""Pixels that a label takes, so that those of near points do not cover each other."""


@dataclass(frozen=True)
class Point:
    """A measured kernel on the roofline: FLOP per byte and FLOP per second."""

    intensity: float
    flops_per_s: float
    bound_flops_per_s: float
    label: str
    """Written beside it, empty for all but the best."""
    tip: str
    best: bool = False


@dataclass(frozen=True)
class Roofs:
    """Ceilings of the device, each with its name (empty for the one that set the bound)."""

    bytes_per_s: tuple[tuple[str, float], ...] = ()
    flops_per_s: tuple[tuple[str, float], ...] = ()


def roofline_chart(points: Sequence[Point], roofs: Roofs) -> Markup:
    """Both axes logarithmic: the roofs, and every kernel under them."""
    intensities = [point.intensity for point in points]
    bandwidth = max((rate for _, rate in roofs.bytes_per_s), default=0.0)
    peak = max((rate for _, rate in roofs.flops_per_s), default=0.0)
    ridge = [peak / bandwidth] if peak and bandwidth else []
    heights = [p.flops_per_s for p in points] + [p.bound_flops_per_s for p in points]
    across = around(intensities + ridge, 8)
    upward = around([*heights, *([peak] if peak else [])], 5)
    marks = [
        *columns(across, 0, ROOF, lambda value: figures.digits(value, 1), most=6),
        *rows(upward, ROOF, lambda value: figures.rate(value, "FLOP/s"), most=6),
        text(1, ROOF + 40, "FLOP per byte of least traffic →", "axis", anchor="end"),
    ]
    marks += _roofs(roofs, across, upward)
    marks += [
        dot(across.at(p.intensity), _height(upward, p.flops_per_s), 4, "point", p.tip)
        for p in points
        if not p.best
    ]
    free = 0.0
    for point in sorted((p for p in points if p.best), key=lambda p: -p.flops_per_s):
        free = max(free, _height(upward, point.flops_per_s) + 4)
        marks += _best(point, across, upward, free)
        free += LABEL
    return drawing(ROOF + 46, "Roofline: speed over arithmetic intensity, with the roofs", marks)


def _roofs(roofs: Roofs, across: Axis, upward: Axis) -> list[Markup]:
    marks: list[Markup] = []
    peak = max((rate for _, rate in roofs.flops_per_s), default=upward.high)
    widest = max((rate for _, rate in roofs.bytes_per_s), default=None)
    for name, rate in roofs.bytes_per_s:
        start, end = max(across.low, upward.low / rate), min(across.high, peak / rate)
        y = [_height(upward, rate * at) for at in (start, end)]
        marks.append(line(across.at(start), y[0], across.at(end), y[1], _roof(name)))
        at = start * (end / start) ** 0.12
        said = f"{name} {figures.rate(rate, 'B/s')}".strip()
        marks.append(text(across.at(at), _height(upward, rate * at) + 16, said, "axis", shift=8))
    for name, rate in roofs.flops_per_s:
        start = max(across.low, rate / widest) if widest else across.low
        y = _height(upward, rate)
        marks.append(line(across.at(start), y, 1, y, _roof(name)))
        said = f"{name} {figures.rate(rate, 'FLOP/s')}".strip()
        marks.append(text(1, y - 8, said, "axis", anchor="end"))
    return marks


def _roof(name: str) -> str:
    return "roof other" if name else "roof"


def _height(upward: Axis, flops_per_s: float) -> float:
    return (1 - upward.at(flops_per_s)) * ROOF


def _best(point: Point, across: Axis, upward: Axis, label_y: float) -> list[Markup]:
    x, y = across.at(point.intensity), _height(upward, point.flops_per_s)
    bound = _height(upward, point.bound_flops_per_s)
    return [
        line(x, y, x, bound, "gap"),
        dot(x, bound, 3, "bound", "the least time this device could take"),
        dot(x, y, 6, "point best", point.tip),
        text(x, label_y, point.label, "label", shift=12),
    ]
