"""Can that time be true?"""

from __future__ import annotations

from statistics import median

from toprung.errors import Refuted
from toprung.judge.clock.roofline import floor_us
from toprung.judge.timing.samples import Samples

from .base import Facts
from .bench import plan_case, sample_case
from .subject import Subject

QUESTION = "Can that time be true?"
REFUTES = "a time below what physics allows, or a child's clock that the judge's clock contradicts"
FACTS = "floor, both clocks, overhead, resolution"


def check(subject: Subject) -> Facts:
    """Compare the clocks with each other and with the floor, on every timed case."""
    facts: Facts = {}
    for index, case in subject.timed_cases:
        prefix = "" if len(subject.timed_cases) == 1 else f"{case.name}/"
        figures = subject.figures[case.name]
        samples = figures.samples
        if _contradicts(samples):  # a machine that grew busy does not do it twice
            samples = sample_case(subject, subject.live, plan_case(subject, index, case))
        floor = floor_us(case.work, subject.services.ceilings())
        clocks = _clocks(samples, floor)
        facts |= {f"{prefix}{name}": round(value, 3) for name, value in clocks.items()}
        with subject.on(case):
            _compare(samples, floor, figures.measurement.median_us, case.work.must_bytes, facts)
    return facts


def _contradicts(samples: Samples) -> bool:
    """Whether the child hides at least as much time as it admits to, resolution aside."""
    return samples.hidden_us > median(samples.child_us) + 5 * samples.calibration.resolution_us


def _clocks(samples: Samples, floor: float) -> dict[str, float]:
    return {
        "floor_us": floor,
        "child_us": median(samples.child_us),
        "judge_us": samples.wall_us,
        "hidden_us": max(0.0, samples.hidden_us),
        "overhead_us": samples.calibration.overhead_us,
        "resolution_us": samples.calibration.resolution_us,
    }


def _compare(
    samples: Samples, floor: float, median_us: float, must_bytes: int, facts: Facts
) -> None:
    if _contradicts(samples):
        raise Refuted(
            f"its own clock says {median(samples.child_us):.1f} us, and in nearly every call the "
            f"judge saw {samples.hidden_us:.1f} us more than a call of nothing takes",
            hint="compute everything before the call returns, and leave the clocks alone",
            facts=facts,
        )
    if median_us < floor:
        raise Refuted(
            f"{median_us:.1f} us is below {floor:.1f} us, the least time in which "
            f"{must_bytes} bytes can move here",
            hint="some of the inputs are not read, or some of the outputs are not written",
            facts=facts,
        )
