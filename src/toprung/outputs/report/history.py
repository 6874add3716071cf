"""The history of a run: times over attempts, and below them where the others stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from toprung.outputs import figures

from .axes import Axis, covering, rows
from .svg import dot, drawing, line, text

PLOT = 220
LANE = 26
GAP = 24
"""Pixels between the plot and the first lane."""
MOST_NUMBERS = 12

Kind = Literal["kept", "passed", "refuted", "errored", "waiting"]
_SIGNS: dict[Kind, str] = {
    "kept": "●",
    "passed": "○",
    "refuted": "×",
    "errored": "!",
    "waiting": "…",
}


@dataclass(frozen=True)
class Mark:
    """An attempt: its time, or the lane of the rung where it stopped."""

    index: int
    kind: Kind
    tip: str
    median_us: float | None = None
    lane: str = ""


def history_chart(
    marks: Sequence[Mark], lanes: Sequence[str], baselines: dict[str, float]
) -> Markup:
    """Times as dots, the best so far as a line; a lane for each rung that an attempt stopped at."""
    timed = [mark.median_us for mark in marks if mark.median_us is not None]
    plot = PLOT if timed else 0
    foot = plot + (GAP if timed and lanes else 0) + LANE * len(lanes)
    drawn: list[Markup] = []
    if timed:
        # Baselines far above would flatten what is to be seen; they only join when near.
        near = {n: us for n, us in baselines.items() if us < 4 * max(timed)}
        upward = covering((*timed, *near.values()), margin=0.12)
        drawn += rows(upward, plot, figures.time_us, most=5)
        drawn += _baselines(near, upward)
        drawn += _timed(marks, upward)
    drawn += _lanes(marks, lanes, foot - LANE * len(lanes))
    drawn += _numbers(marks, foot)
    return drawing(foot + 42, "Attempts in order: times, or the rung where each stopped", drawn)


def _place(position: int, count: int) -> float:
    return (position + 0.5) / count


def _baselines(baselines: dict[str, float], upward: Axis) -> list[Markup]:
    drawn: list[Markup] = []
    for name, us in baselines.items():
        y = (1 - upward.at(us)) * PLOT
        drawn += [line(0, y, 1, y, "baseline"), text(1, y - 6, name, "axis", anchor="end")]
    return drawn


def _timed(marks: Sequence[Mark], upward: Axis) -> list[Markup]:
    steps: list[Markup] = []
    dots: list[Markup] = []
    last: tuple[float, float] | None = None
    for position, mark in enumerate(marks):
        if mark.median_us is None:
            continue
        x, y = _place(position, len(marks)), (1 - upward.at(mark.median_us)) * PLOT
        dots.append(dot(x, y, 6 if mark.kind == "kept" else 4.5, f"try {mark.kind}", mark.tip))
        if mark.kind == "kept":
            if last:
                steps += [line(*last, x, last[1], "best"), line(x, last[1], x, y, "best")]
            last = (x, y)
    if last:
        steps.append(line(*last, 1, last[1], "best"))
    return steps + dots


def _lanes(marks: Sequence[Mark], lanes: Sequence[str], top: float) -> list[Markup]:
    middle = {lane: top + LANE * (place + 0.5) for place, lane in enumerate(lanes)}
    drawn: list[Markup] = []
    for lane, y in middle.items():
        drawn.append(line(0, y, 1, y, "lane"))
        drawn.append(text(0, y + 4, lane, "axis", anchor="end", shift=-12))
    for position, mark in enumerate(marks):
        if mark.median_us is None:
            x, y = _place(position, len(marks)), middle[mark.lane] + 6
            drawn.append(
                text(x, y, _SIGNS[mark.kind], f"sign {mark.kind}", anchor="middle", tip=mark.tip)
            )
    return drawn


def _numbers(marks: Sequence[Mark], foot: float) -> list[Markup]:
    """The numbers of some attempts, a round number apart."""
    steps = (step * 10**power for power in range(9) for step in (1, 2, 5))
    every = next(step for step in steps if len(marks) <= step * MOST_NUMBERS)
    drawn = [
        text(_place(position, len(marks)), foot + 16, str(mark.index), "axis", anchor="middle")
        for position, mark in enumerate(marks)
        if position % every == 0
    ]
    return [*drawn, text(1, foot + 36, "attempt →", "axis", anchor="end")]
