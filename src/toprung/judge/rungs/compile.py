"""Does every kernel compile for the target?"""

from __future__ import annotations

import time

from .base import Facts
from .subject import Subject

QUESTION = "Does every kernel compile for the target?"
REFUTES = "a compiler error, whose text is the feedback; an exception on import"
FACTS = "seconds, entry, what the DSL tells of its build"


def check(subject: Subject) -> Facts:
    """Start the candidate's process, compile and load there."""
    subject.session = subject.services.start(subject.candidate, subject.dsl)
    start = time.monotonic()
    loaded = subject.session.load(
        subject.candidate, subject.dsl, subject.options.target, subject.remaining()
    )
    return {
        "build_seconds": round(time.monotonic() - start, 3),
        "entry": loaded.entry,
        **loaded.facts,
    }
