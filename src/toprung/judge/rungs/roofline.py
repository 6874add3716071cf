"""How near is the top?"""

from __future__ import annotations

from toprung.judge.clock.roofline import roofline

from .base import Facts
from .subject import Subject

QUESTION = "How near is the top?"
REFUTES = "never: slow is knowledge, not an error"
FACTS = "bound, attained fraction, limiter, the ceilings used"


def check(subject: Subject) -> Facts:
    """Bound and attained fraction of every open case, against this device's measured ceilings."""
    ceilings = subject.services.ceilings()
    precision = subject.exchange.opened.precision
    facts: Facts = {
        "precision": precision,
        "copy_bytes_per_s": ceilings.memory.copy_bytes_per_s,
        "matrix_flops_per_s": ceilings.matrix_rate(precision),
        "vector_flops_per_s": ceilings.vector_rate(precision),
    }
    for _, case in subject.timed_cases:
        figures = subject.figures[case.name]
        measured = figures.measurement
        roof = roofline(case.work, ceilings, precision, measured.median_us, cache=measured.cache)
        figures.roofline = roof
        prefix = "" if len(subject.timed_cases) == 1 else f"{case.name}/"
        facts |= {f"{prefix}{name}": value for name, value in roof.to_dict().items()}
        if case.work.uncounted:
            facts[f"{prefix}uncounted"] = list(case.work.uncounted)
    return facts
