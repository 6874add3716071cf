"""Can that time be true?"""

from __future__ import annotations

from statistics import median

from toprung.errors import Refuted
from toprung.judge.clock.roofline import floor_us

from .base import Facts
from .subject import CaseFigures, Subject

QUESTION = "Can that time be true?"
REFUTES = "a time below what physics allows, or a child's clock that the judge's clock contradicts"
FACTS = "floor, both clocks, overhead, resolution"

TOLD = 0.5
"""The child must admit to at least this part of what the judge saw, resolution aside."""


def check(subject: Subject) -> Facts:
    """Compare the clocks with each other and with the floor, on every open case."""
    facts: Facts = {}
    for _, case in subject.timed_cases:
        prefix = "" if len(subject.timed_cases) == 1 else f"{case.name}/"
        figures = subject.figures[case.name]
        clocks = _clocks(figures, floor_us(case.work, subject.services.ceilings()))
        facts |= {f"{prefix}{name}": round(value, 3) for name, value in clocks.items()}
        with subject.on(case):
            _compare(clocks, figures.measurement.median_us, case.work.must_bytes, facts)
    return facts


def _clocks(figures: CaseFigures, floor: float) -> dict[str, float]:
    calibration = figures.calibration
    return {
        "floor_us": floor,
        "child_us": median(figures.samples.child_us),
        "judge_us": figures.samples.wall_us,
        "overhead_us": calibration.overhead_us,
        "resolution_us": calibration.resolution_us,
    }


def _compare(clocks: dict[str, float], median_us: float, must_bytes: int, facts: Facts) -> None:
    slack = 5 * clocks["resolution_us"] + 0.1 * clocks["overhead_us"]
    if clocks["child_us"] < TOLD * clocks["judge_us"] - slack:
        raise Refuted(
            f"its own clock says {clocks['child_us']:.1f} us where the judge saw "
            f"{clocks['judge_us']:.1f} us",
            hint="compute everything before the call returns, and leave the clocks alone",
            facts=facts,
        )
    if median_us < clocks["floor_us"]:
        raise Refuted(
            f"{median_us:.1f} us is below {clocks['floor_us']:.1f} us, the least time in which "
            f"{must_bytes} bytes can move here",
            hint="some of the inputs are not read, or some of the outputs are not written",
            facts=facts,
        )
