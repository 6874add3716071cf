"""One candidate in one process: load it, build it, give it parameters, call it on lent memory."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import NamedTuple, TypeVar

from toprung.errors import ChildFault, CompileError, Refuted, WireError
from toprung.judge.oracle.values import CaseSpec, Opened
from toprung.judge.wire.arena import Arena, aligned
from toprung.judge.wire.channel import Message
from toprung.judge.wire.protocol import (
    Adopt,
    Call,
    Called,
    Construct,
    Constructed,
    Done,
    Failure,
    Lend,
    Load,
    Loaded,
    OutputSlot,
    Recall,
    Recalled,
    StateSpec,
    parse,
)
from toprung.model.candidate import Candidate
from toprung.model.tensor import TensorSpec
from toprung.model.value import Value

from .limits import Limits
from .process import Nursery, Process

SERVE = "toprung.judge.child.main:serve"
SLACK = 1 << 20
"""Bytes beside the tensors, so that addresses can differ from call to call."""

Reply = TypeVar("Reply", bound=Value)


class Places(NamedTuple):
    """Where the tensors of one call lie in the lent arena, in bytes from its start."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def pack(specs: list[TensorSpec]) -> int:
    """Bytes that `specs` take when they lie one behind the other."""
    return sum(aligned(spec.nbytes) for spec in specs)


def footprint(case: CaseSpec) -> int:
    """Bytes of inputs and outputs of one call."""
    return pack(list(case.inputs.specs)) + pack([out.spec for out in case.outputs])


class Session:
    """Requests to the candidate's process; whatever goes wrong there is raised as `Refuted`."""

    def __init__(self, nursery: Nursery, cache: Path | None, limits: Limits, rng: random.Random):
        env = {}
        if cache is not None:
            cache.mkdir(parents=True, exist_ok=True)
            env = {
                "TOPRUNG_BUILD_DIR": str(cache),
                "TORCH_EXTENSIONS_DIR": str(cache / "torch_extensions"),
                "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
            }
        self.process: Process = nursery.spawn(SERVE, limits=limits, env=env)
        self.arena: Arena | None = None
        self._rng = rng
        self.state: tuple[StateSpec, ...] = ()
        self.loaded: Loaded | None = None
        self._places: dict[str, list[Places]] = {}
        self.called: set[str] = set()
        """Cases that this process has been called on: a first call may compile or tune."""
        self.seconds = 0.0
        """How long the judge has waited for this process, all told."""

    def load(self, candidate: Candidate, dsl: str, target: str, timeout: float) -> Loaded:
        """Compile and import; raises `CompileError` with the compiler's text."""
        folder = self.process.scratch / "candidate"
        for name, text in candidate.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        request = Load(
            dsl=dsl,
            folder=str(folder),
            main=candidate.main,
            entry=candidate.entry,
            target=target,
        )
        self.loaded = self._ask(request, Loaded, timeout)
        return self.loaded

    def lend(self, nbytes: int) -> Arena:
        """Lend memory for at least `nbytes` of tensors; replaces what was lent before."""
        self.arena = Arena.create(nbytes + SLACK)
        request = Lend(arena_bytes=self.arena.size)
        self.process.allow_shared(self.arena.size)
        self._ask(request, Done, 30, fds=(self.arena.fd,))
        return self.arena

    def construct(
        self, opened: Opened, offsets: tuple[int, ...], train: bool, timeout: float
    ) -> None:
        """Build the module with the constructor arguments and the seed of the reference.

        `offsets`: where the tensors among the arguments lie in the lent arena.
        """
        request = Construct(
            init=opened.init, init_offsets=offsets, seed=opened.param_seed, train=train
        )
        self.state = self._ask(request, Constructed, timeout).state

    def adopt(self, state: tuple[StateSpec, ...], offsets: tuple[int, ...], timeout: float) -> None:
        """Copy `state` from the lent arena (nothing: the shared seed made both alike), prepare."""
        self._ask(Adopt(state=state, offsets=offsets), Done, timeout)

    def place(self, case: CaseSpec) -> Places:
        """Positions for the tensors of a call: aligned, in secret order, secretly spaced.

        Half of the calls take positions that an earlier call on this case had, so that a result
        kept by address is found there again beside other content.
        """
        assert self.arena is not None
        earlier = self._places.setdefault(case.name, [])
        if earlier and self._rng.random() < 1 / 2:
            return self._rng.choice(earlier)
        inputs = list(case.inputs.specs)
        specs = [*inputs, *(out.spec for out in case.outputs)]
        order = list(range(len(specs)))
        self._rng.shuffle(order)
        spare = (self.arena.size - pack(specs)) // aligned(1)
        cuts = sorted(self._rng.randint(0, spare) for _ in order)
        offsets = [0] * len(specs)
        used = 0
        for index, cut in zip(order, cuts, strict=True):
            offsets[index] = used + cut * aligned(1)
            used += aligned(specs[index].nbytes)
        earlier.append(Places(tuple(offsets[: len(inputs)]), tuple(offsets[len(inputs) :])))
        return earlier[-1]

    def call(
        self, case: CaseSpec, places: Places, seed: int, timeout: float, *, keep: bool = False
    ) -> tuple[Called, float]:
        """Call once on what lies in the lent arena, from frozen to frozen.

        Returns the child's reply, and the microseconds in between on the judge's clock. The request
        is posted before the thaw, so that only the call itself lies between.
        """
        slots = _slots(case, places)
        request = Call(
            inputs=case.inputs, offsets=places.inputs, outputs=slots, seed=seed, keep=keep
        )
        self.process.post(request.to_dict())
        start = time.perf_counter_ns()
        self.process.thaw()
        message = self.process.hear(timeout)
        self.process.freeze()
        judge_us = (time.perf_counter_ns() - start) / 1e3
        self.process.settle()
        self.seconds += judge_us / 1e6
        self.called.add(case.name)
        return self._parsed(Called, message), judge_us

    def recall(self, case: CaseSpec, places: Places, timeout: float) -> bool:
        """Have the result that was kept copied to `places` once more; false when it does not fit."""
        request = Recall(outputs=_slots(case, places, buffers=False))
        return self._ask(request, Recalled, timeout).filled

    def close(self) -> None:
        """End the process and take the memory back."""
        self.process.close()
        if self.arena is not None:
            self.arena.close()
            self.arena = None

    def _ask(
        self, request: Value, kind: type[Reply], timeout: float, fds: tuple[int, ...] = ()
    ) -> Reply:
        start = time.monotonic()
        try:
            message = self.process.ask(request.to_dict(), max(timeout, 0.1), fds)
        finally:
            self.seconds += time.monotonic() - start
        return self._parsed(kind, message)

    def _parsed(self, kind: type[Reply], message: Message) -> Reply:
        try:
            reply = parse(kind, message)
        except WireError as nonsense:
            raise ChildFault(f"its process sent nonsense: {nonsense}") from None
        if isinstance(reply, Failure):
            error = CompileError if reply.kind == "compile" else Refuted
            raise error(reply.message, hint=reply.hint, details=reply.traceback)
        return reply


def _slots(case: CaseSpec, places: Places, *, buffers: bool = True) -> tuple[OutputSlot, ...]:
    """Where the outputs of a call go that do not lie in an input."""
    return tuple(
        OutputSlot(
            spec=out.spec,
            offset=offset,
            leaf=out.index if out.source == "return" else None,
            buffer=out.name if out.source == "buffer" else None,
        )
        for out, offset in zip(case.outputs, places.outputs, strict=True)
        if out.source == "return" or (buffers and out.source == "buffer")
    )
