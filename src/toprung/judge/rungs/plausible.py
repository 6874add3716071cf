"""Can that time be true?"""

from __future__ import annotations

from statistics import median

from toprung.judge.clock.roofline import floor_us

from .base import Facts
from .subject import Subject

QUESTION = "Can that time be true?"
REFUTES = "a time below what physics allows, or a child's clock that the judge's clock contradicts"
FACTS = "floor, both clocks, overhead, resolution"

TOLD = 0.5
"""The child must admit to at least this part of what the judge saw, resolution aside."""


def check(subject: Subject) -> Facts:
    """Compare the clocks with each other and with the floor, on every open case."""
    facts: Facts = {}
    for _, case in subject.open_cases:
        figures = subject.figures[case.name]
        calibration = figures.calibration
        child = median(figures.samples.child_us)
        judge = median(figures.samples.judge_us) - calibration.overhead_us
        floor = floor_us(case.work, subject.services.ceilings())
        prefix = "" if len(subject.open_cases) == 1 else f"{case.name}."
        facts |= {
            f"{prefix}floor_us": floor,
            f"{prefix}child_us": child,
            f"{prefix}judge_us": judge,
            f"{prefix}overhead_us": calibration.overhead_us,
            f"{prefix}resolution_us": calibration.resolution_us,
        }
        slack = 5 * calibration.resolution_us + 0.1 * calibration.overhead_us
        if child < TOLD * judge - slack:
            raise subject.refute(
                case,
                f"its own clock says {child:.1f} us where the judge saw {judge:.1f} us",
                hint="compute everything before the call returns, and leave the clocks alone",
                **facts,
            )
        if figures.measurement.median_us < floor:
            raise subject.refute(
                case,
                f"{figures.measurement.median_us:.1f} us is below {floor:.1f} us, the least time in "
                f"which {case.work.must_bytes} bytes can move here",
                hint="some of the inputs are not read, or some of the outputs are not written",
                **facts,
            )
    return facts
