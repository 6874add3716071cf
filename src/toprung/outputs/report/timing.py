"""Charts of times: a kernel beside its baselines, and each of its timed calls."""

from __future__ import annotations

from markupsafe import Markup

from toprung.model.measurement import Measurement, Timing
from toprung.outputs import figures

from .axes import Axis, columns, covering, from_zero
from .svg import bar, dot, drawing, line, text

ROW = 50
STRIP = 92
MOST_DOTS = 400
"""Samples that are drawn; of more, every n-th."""


def timing_chart(measured: Measurement, names: dict[str, str]) -> Markup:
    """Bars from zero: the kernel and each baseline, with intervals and the kernel's own samples."""
    rows: list[tuple[str, str, Timing]] = [("kernel", "this kernel", measured)]
    rows += [("base", names[key], timing) for key, timing in measured.baselines.items()]
    axis = from_zero(max(timing.ci_us[1] for _, _, timing in rows))
    foot = len(rows) * ROW + 4
    marks = columns(axis, 0, foot, figures.time_us)
    for place, (kind, name, timing) in enumerate(rows):
        top = place * ROW + 14
        marks.append(text(0, top, name, "label"))
        said = f"{figures.time_us(timing.median_us)}  ({figures.interval_us(timing)})"
        marks.append(text(1, top, said, "figure", anchor="end"))
        length = axis.at(timing.median_us)
        marks.append(bar(0, top + 8, length, 14, f"bar {kind}", f"{name}: {said}"))
        marks += _whisker(axis, timing, top + 15)
    return drawing(foot + 26, "Time of this kernel beside its baselines; shorter is faster", marks)


def _whisker(axis: Axis, timing: Timing, y: float) -> list[Markup]:
    low, high = (axis.at(end) for end in timing.ci_us)
    caps = [line(end, y - 5, end, y + 5, "whisker") for end in (low, high)]
    return [line(low, y, high, y, "whisker"), *caps]


def sample_chart(measured: Measurement) -> Markup:
    """Every timed call as a dot, the first at the top, around the median and its interval."""
    ordered = sorted(measured.samples_us)
    high = max(ordered[int(0.98 * (len(ordered) - 1))], measured.ci_us[1])
    axis = covering((ordered[0], high, *measured.ci_us))
    low, top = (axis.at(end) for end in measured.ci_us)
    band = bar(low, 4, max(top - low, 0.002), STRIP - 4, "band", figures.interval_us(measured))
    middle = axis.at(measured.median_us)
    marks = [
        *columns(axis, 4, STRIP, figures.time_us),
        band,
        line(middle, 4, middle, STRIP, "median"),
    ]
    stride = -(-len(measured.samples_us) // MOST_DOTS)
    step = (STRIP - 18) / max(len(measured.samples_us) - 1, 1)
    for call in range(0, len(measured.samples_us), stride):
        us = measured.samples_us[call]
        far = " far" if us > axis.high else ""
        tip = f"call {call + 1}: {figures.time_us(us)}"
        marks.append(dot(axis.at(us), 11 + call * step, 2.6, f"sample{far}", tip))
    return drawing(STRIP + 24, "Times of single calls around their median", marks)
