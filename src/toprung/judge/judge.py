"""The judge: keeps a nursery warm and an oracle open for the present task, and runs climbs."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from toprung import __version__
from toprung.devices.detect import detect
from toprung.errors import ChildFault, TaskError, UsageError
from toprung.model.candidate import Candidate
from toprung.model.climb import ClimbOptions
from toprung.model.device import Ceilings
from toprung.model.environment import Environment, Walls
from toprung.model.task import Task
from toprung.model.value import Json, digest_of
from toprung.model.verdict import Verdict

from .clock.ceilings import ceilings
from .ladder import Progress, check_upto, climb
from .oracle.session import Oracle
from .rungs.base import Rung
from .rungs.subject import Services, Subject
from .sandbox.cache import Cache
from .sandbox.exchange import Exchange
from .sandbox.limits import Limits
from .sandbox.process import Nursery, Process
from .sandbox.session import Session, footprint

ORACLE = "toprung.judge.oracle.worker:serve"
ORACLE_S = 120.0
"""Seconds that the reference may take for one answer of the oracle."""

TARGET = "cpu:native"


def check_target(target: str) -> None:
    """Raise for a target that this version cannot judge on."""
    if target != TARGET:
        raise UsageError(
            f"this version judges on {TARGET}, not on {target}",
            hint=f"leave --target out, or say --target {TARGET}",
        )


class OpenTask:
    """A task whose oracle is up: its process, its exchange, and the options it was opened with."""

    def __init__(self, nursery: Nursery, cache: Cache, task: Task, options: ClimbOptions):
        seed = options.seed
        self.key = (task.digest, options.target, seed)
        self._process: Process = nursery.spawn(
            ORACLE, walled=False, limits=Limits.for_footprint(8 << 30)
        )
        rng = random.Random(seed) if seed is not None else random.SystemRandom()
        try:
            patience = min(ORACLE_S, options.timeout_s)
            self._oracle = Oracle(self._process.channel, patience)
            opened = self._oracle.open(task, rng.getrandbits(62), options.target)
            self.exchange = Exchange(self._oracle, opened, cache, rng)
        except ChildFault as died:
            raise TaskError(f"the reference's process failed: {died}") from died
        except BaseException:
            self._process.close()
            raise

    def close(self) -> None:
        """End the oracle."""
        self.exchange.close()
        self._process.close()


class Judge:
    """One per process; `climb` may be called again and again. `close` ends everything it started.

    `recall` and `remember` keep figures (baseline timings) from climb to climb; `builds` is the
    folder under which each candidate has a build cache of its own.
    """

    def __init__(
        self,
        recall: Callable[[str], Json],
        remember: Callable[[str, Json], None],
        builds: Path,
    ):
        self._recall = recall
        self._remember = remember
        self._builds = builds
        self._nursery = Nursery()
        self._cache = Cache(builds)
        self._opened: OpenTask | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="oracle")
        self._lock = threading.Lock()

    def climb(
        self,
        task: Task,
        candidate: Candidate,
        options: ClimbOptions,
        rungs: Sequence[Rung] = (),
        progress: Progress | None = None,
    ) -> Verdict:
        """Climb once. The oracle opens while the candidate compiles."""
        check_target(options.target)
        check_upto(options.upto, options.extra, rungs)
        with self._lock:
            opening = self._pool.submit(self._open, task, options)
            subject = Subject(task, candidate, options, self._services(opening))
            return climb(subject, self._environment, rungs, progress)

    def close(self) -> None:
        """End the oracle, the nursery and whatever they started."""
        self._pool.shutdown(wait=True)
        self._drop()
        self._nursery.close()

    def _services(self, opening: Future[OpenTask]) -> Services:
        device, *_ = detect()
        return Services(
            exchange=lambda: opening.result().exchange,
            start=lambda candidate, dsl: self._start(candidate, opening),
            ceilings=self._ceilings,
            recall=self._recall,
            remember=self._remember,
            device=digest_of([device.to_dict(), self._nursery.torch, __version__]),
            cores=len(os.sched_getaffinity(0)),
        )

    def _open(self, task: Task, options: ClimbOptions) -> OpenTask:
        key = (task.digest, options.target, options.seed)
        if self._opened is None or self._opened.key != key or options.seed is not None:
            self._drop()
            self._opened = OpenTask(self._nursery, self._cache, task, options)
        self._opened.exchange.mode = None
        return self._opened

    def _drop(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _start(self, candidate: Candidate, opening: Future[OpenTask]) -> Session:
        held = 0
        if opening.done() and not opening.exception():
            held = max(map(footprint, opening.result().exchange.opened.cases))
        return Session(
            self._nursery,
            self._builds / candidate.digest[:16],
            Limits.for_footprint(held),
            random.SystemRandom(),
        )

    def _ceilings(self) -> Ceilings:
        return ceilings(TARGET)

    def _environment(self, subject: Subject) -> Environment:
        device, *_ = detect()
        return Environment(
            device=device.name,
            toprung=__version__,
            torch=self._nursery.torch,
            walls=subject.session.process.walls if subject.session else Walls(),
        )
