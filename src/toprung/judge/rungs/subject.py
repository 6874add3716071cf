"""Subject: one candidate on its way up, and what the rungs have learnt so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from toprung.errors import DeviceError, Refuted
from toprung.judge.oracle.values import CaseSpec
from toprung.judge.sandbox.exchange import Exchange
from toprung.judge.sandbox.session import Session
from toprung.judge.timing.calibration import Calibration
from toprung.judge.timing.samples import Samples
from toprung.model.candidate import Candidate
from toprung.model.climb import ClimbOptions
from toprung.model.device import Ceilings
from toprung.model.measurement import Measurement
from toprung.model.roofline import Roofline
from toprung.model.task import Task

SHARE = 0.75
"""Of the whole climb's time: more than this spent waiting for the candidate is its own fault."""


@dataclass
class CaseFigures:
    """What was measured on one case."""

    calibration: Calibration
    samples: Samples
    measurement: Measurement
    roofline: Roofline | None = None


@dataclass
class Services:
    """What the judge does for rungs; each may take long, and is asked only when needed."""

    exchange: Callable[[], Exchange]
    """The oracle's side, open for this task; waits for it. Raises `TaskError`."""
    start: Callable[[Candidate, str], Session]
    """A fresh process for a candidate in a DSL, nothing loaded yet."""
    ceilings: Callable[[], Ceilings]
    recall: Callable[[str], object | None]
    """A figure that an earlier climb remembered under a key."""
    remember: Callable[[str, object], None]
    device: str
    cores: int


@dataclass
class Subject:
    """Passed to every rung; lower rungs fill in what higher ones read."""

    task: Task
    candidate: Candidate
    options: ClimbOptions
    services: Services
    dsl: str = ""
    labels: list[str] = field(default_factory=list)
    session: Session | None = None
    figures: dict[str, CaseFigures] = field(default_factory=dict)
    """By case name; open cases only."""
    passed_cases: set[str] = field(default_factory=set)
    failed_case: str | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def exchange(self) -> Exchange:
        """The traffic of calls for this task."""
        return self.services.exchange()

    @property
    def live(self) -> Session:
        """The candidate's process."""
        assert self.session is not None, "the rung `compile` starts the process"
        return self.session

    @property
    def cases(self) -> list[tuple[int, CaseSpec]]:
        """Every case of this target, held-out ones included, with its index."""
        return list(enumerate(self.exchange.opened.cases))

    @property
    def open_cases(self) -> list[tuple[int, CaseSpec]]:
        """Cases whose figures may be shown."""
        return [(index, case) for index, case in self.cases if not case.held_out]

    @property
    def timed_cases(self) -> list[tuple[int, CaseSpec]]:
        """Open cases that are timed; those that are only checked left out."""
        timed = {case.name for case in self.task.cases if case.timed}
        return [(index, case) for index, case in self.open_cases if case.name in timed]

    def remaining(self) -> float:
        """Seconds left of the whole climb; raises when none are, and blames who used them up."""
        left = self.options.timeout_s - (time.monotonic() - self.started)
        if self.session is not None and self.session.seconds > SHARE * self.options.timeout_s:
            raise Refuted(
                f"its own part of the climb took {self.session.seconds:.0f} s",
                hint="make it faster, or give it more with --timeout",
            )
        if left <= 0:
            raise DeviceError(
                f"the climb did not end within {self.options.timeout_s:.0f} s",
                hint="give it more with --timeout, or choose smaller cases",
            )
        return left

    @contextmanager
    def on(self, case: CaseSpec) -> Iterator[None]:
        """Around all that is asked on `case`: a refutation names it. Of a held-out case it says
        nothing more, since text, tracebacks and facts could tell shapes and values."""
        try:
            yield
        except Refuted as wrong:
            self.failed_case = case.name
            if case.held_out:
                raise Refuted(
                    "it fails on a held-out case",
                    hint="it must hold for other shapes and values than those that are shown",
                ) from None
            if len(self.cases) > 1:
                wrong.message = f"case {case.name!r}: {wrong.message}"
            raise

    def close(self) -> None:
        """End the candidate's process."""
        if self.session is not None:
            self.session.close()
            self.session = None
