"""One call as the judge sees it: stage content in private, publish it, time, take outputs, check.

Every call, whether it checks or times, goes this way and no other, so that a candidate cannot tell
one phase from another. Its process is frozen except while the judge's clock runs: content appears
while it stands still, and it stands still again before its outputs are taken. Work before the call
or behind it has no time to happen in.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Literal

from toprung.judge.oracle.session import Oracle
from toprung.judge.oracle.values import CaseSpec, Checked, Opened, Staged
from toprung.judge.wire.arena import Arena, aligned
from toprung.judge.wire.protocol import Called, StateSpec
from toprung.model.task import Family
from toprung.model.tensor import TensorSpec

from .cache import Cache
from .session import Places, Session, footprint, pack

MIN_CALL_S = 10.0
FIRST_CALL_S = 60.0
POISONS = (0xFF, 0x7F, 0xCD, 0x3C)
"""Bytes that make NaN, huge, odd and ordinary values; a third of the calls get no poison."""


@dataclass(frozen=True)
class Content:
    """Fresh inputs of one case, staged in the private arena."""

    case: CaseSpec
    staged: Staged
    family: Family


@dataclass(frozen=True)
class Outcome:
    """One call: what the child said, and what the judge saw."""

    content: Content
    places: Places
    called: Called
    judge_us: float
    """From the thaw to the freeze, on the judge's clock."""

    @property
    def child_us(self) -> float:
        """The child's own reading."""
        return self.called.elapsed_ns / 1e3


class Exchange:
    """The private arena between judge and oracle, and the traffic of calls through it."""

    def __init__(self, oracle: Oracle, opened: Opened, cache: Cache, rng: random.Random):
        self.opened = opened
        self._oracle = oracle
        self._rng = rng
        self._draws = 0
        self.mode: Literal["copied", "seeded"] | None = None
        state = pack([entry.spec for entry in opened.state])
        init = pack(list(opened.init.specs))
        self._private = Arena.create(max([state, init, *map(footprint, opened.cases)]))
        oracle.lend(self._private)
        self._cache = cache

    def bring_up(self, session: Session, train: bool, timeout: float) -> None:
        """Lend memory, build the candidate and settle whose parameters count.

        The first session decides, as the contract says: where all its parameters match the
        reference's by name and shape they are copied from there (`copied`); a module with others
        keeps its own, and the shared seed alone makes both alike (`seeded`). Later sessions follow.
        """
        state = self.opened.state
        lent = session.lend(self._private.size)
        init = self.opened.init.specs
        offsets = _row([spec.nbytes for spec in init])
        if init:
            self._oracle.write_init(list(offsets))
            self._publish(init, offsets, lent, offsets)
        session.construct(self.opened, offsets, train, timeout)
        assert session.loaded is not None
        function = not session.loaded.is_module
        if self.mode is None:
            self.mode = "copied" if function or _matches(session.state, state) else "seeded"
        if self.mode == "seeded":
            self._oracle.write_state("seeded", [])
            session.adopt((), (), timeout)
        else:
            offsets = _row([entry.spec.nbytes for entry in state])
            self._oracle.write_state("copied", list(offsets))
            own = {entry.name for entry in session.state}
            kept = [
                (e, at) for e, at in zip(state, offsets, strict=True) if function or e.name in own
            ]
            places = tuple(at for _, at in kept)
            self._publish(tuple(entry.spec for entry, _ in kept), places, lent, places)
            session.adopt(tuple(entry for entry, _ in kept), places, timeout)
        session.process.freeze()
        session.process.settle()

    def linger(self, session: Session, outcome: Outcome, seconds: float) -> int | None:
        """Let the candidate idle; the first output that has changed since it was taken, if any."""
        session.process.thaw()
        time.sleep(seconds)
        session.process.freeze()
        session.process.settle()
        assert session.arena is not None
        for index, (size, offset, taken) in enumerate(
            self._outputs(outcome.content.case, outcome.places)
        ):
            if not session.arena.equals(offset, self._private, taken, size):
                return index
        return None

    def fingerprint(self, outcome: Outcome) -> tuple[bytes, ...]:
        """Digests of the outputs that were just taken."""
        outputs = self._outputs(outcome.content.case, outcome.places)
        return tuple(self._private.digest(taken, size) for size, _, taken in outputs)

    def recalled(self, session: Session, case: CaseSpec) -> tuple[bytes, ...] | None:
        """Digests of the kept call's outputs as the candidate's process holds them now.

        Buffers and inputs that a call changes hold other values by now and are left out; `None`
        when the result does not fit any more.
        """
        assert session.arena is not None
        places = session.place(case)
        session.process.thaw()
        held = session.recall(case, places, MIN_CALL_S)
        session.process.freeze()
        session.process.settle()
        if not held:
            return None
        return tuple(
            session.arena.digest(offset, out.spec.nbytes) if out.source == "return" else b""
            for out, offset in zip(case.outputs, places.outputs, strict=True)
        )

    def stage(self, case: int, family: Family = "as_given", *, truth: bool = False) -> Content:
        """Content never seen before; `staged.skipped` says why a family has none."""
        self._draws += 1
        spec = self.opened.cases[case]
        offsets = _row([tensor.nbytes for tensor in spec.inputs.specs])
        staged = self._oracle.stage(case, family, self._draws, list(offsets), truth)
        return Content(spec, staged, family)

    def call(self, session: Session, content: Content, *, keep: bool = False) -> Outcome:
        """Poison, publish, flush, call, take the outputs; raises `Refuted` for what the child does."""
        case = content.case
        lent = session.arena
        assert lent is not None
        places = session.place(case)
        self._poison(lent, case, places)
        staged = _row([tensor.nbytes for tensor in case.inputs.specs])
        self._publish(case.inputs.specs, staged, lent, places.inputs)
        sizes = [tensor.nbytes for tensor in case.inputs.specs]
        self._cache.flush(lent, zip(places.inputs, sizes, strict=True))
        limit = call_limit(case, first=case.name not in session.called)
        called, judge_us = session.call(case, places, content.staged.call_seed, limit, keep=keep)
        for size, offset, taken in self._outputs(case, places):
            lent.copy_to(offset, self._private, taken, size)
        return Outcome(content, places, called, judge_us)

    def check(self, outcome: Outcome) -> Checked:
        """Compare the outputs that were taken with what they should be."""
        taken = [at for _, _, at in self._outputs(outcome.content.case, outcome.places)]
        return self._oracle.check(outcome.content.staged.id, taken)

    def forget(self, content: Content) -> None:
        """The oracle may drop what it holds for this content."""
        self._oracle.forget(content.staged.id)

    def changed_input(self, session: Session, outcome: Outcome) -> int | None:
        """An input that differs from what was published though the reference leaves it alone."""
        case = outcome.content.case
        assert session.arena is not None
        own = {out.index for out in case.outputs if out.source == "input"}
        staged = _row([tensor.nbytes for tensor in case.inputs.specs])
        places = outcome.places.inputs
        for i, (spec, at, there) in enumerate(zip(case.inputs.specs, staged, places, strict=True)):
            if i not in own and not self._private.equals(at, session.arena, there, spec.nbytes):
                return i
        return None

    def close(self) -> None:
        """Give the private memory back."""
        self._private.close()

    def _publish(
        self,
        specs: tuple[TensorSpec, ...],
        sources: tuple[int, ...],
        lent: Arena,
        targets: tuple[int, ...],
    ) -> None:
        for spec, source, target in zip(specs, sources, targets, strict=True):
            self._private.copy_to(source, lent, target, spec.nbytes)

    def _poison(self, lent: Arena, case: CaseSpec, places: Places) -> None:
        if self._rng.random() < 1 / 3:
            return
        for out, offset in zip(case.outputs, places.outputs, strict=True):
            lent.fill(offset, out.spec.nbytes, self._rng.choice(POISONS))

    def _outputs(self, case: CaseSpec, places: Places) -> list[tuple[int, int, int]]:
        """(bytes, offset in the lent arena, offset in the private arena) of every output.

        Outputs lie behind the staged inputs in the private arena, so content can be used again by
        another process while its outputs are compared.
        """
        base = pack(list(case.inputs.specs))
        at = _row([out.spec.nbytes for out in case.outputs])
        return [
            (
                out.spec.nbytes,
                places.inputs[out.index]
                if out.source == "input" and out.index is not None
                else slot,
                base + taken,
            )
            for out, slot, taken in zip(case.outputs, places.outputs, at, strict=True)
        ]


def call_limit(case: CaseSpec, *, first: bool) -> float:
    """Seconds that one call may take: far beyond the reference, so that a hang is found early.

    The first call of a process may compile or tune.
    """
    return max(FIRST_CALL_S if first else MIN_CALL_S, 50 * case.reference_us / 1e6)


def _row(sizes: list[int]) -> tuple[int, ...]:
    """Offsets of blocks that lie one behind the other."""
    offsets, used = [], 0
    for size in sizes:
        offsets.append(used)
        used += aligned(size)
    return tuple(offsets)


def _matches(own: tuple[StateSpec, ...], reference: tuple[StateSpec, ...]) -> bool:
    """Whether each of the candidate's parameters is one of the reference's, by name and shape."""
    known = {(entry.name, entry.spec.shape): entry.spec.dtype for entry in reference}
    return all(known.get((entry.name, entry.spec.shape)) == entry.spec.dtype for entry in own)
