"""A candidate that has been loaded: construct it, give it parameters, call it, hand out results."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy
import torch

from toprung.dsls import table
from toprung.errors import Refuted
from toprung.judge.clock.stopwatch import stopwatch
from toprung.judge.wire.arena import Arena
from toprung.judge.wire.memory import aliases, overlapping
from toprung.judge.wire.protocol import (
    Adopt,
    Call,
    Called,
    Construct,
    Constructed,
    Load,
    Loaded,
    OutputSlot,
    Recall,
    Recalled,
    StateSpec,
)
from toprung.judge.wire.trees import Undescribable, describe, rebuild, spec_of, tensor_at
from toprung.model.candidate import Candidate
from toprung.model.tensor import Tree


class Program:
    """One candidate in one process. Requests come in order: load, construct, adopt, call…"""

    def __init__(self) -> None:
        self._lap = stopwatch()
        self._copy = torch.Tensor.copy_
        self.arena: Arena | None = None
        self._loaded: Any = None
        self._entry: Any = None
        self._module: torch.nn.Module | None = None
        self._params: dict[str, torch.Tensor] = {}
        self._restore: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._last: list[torch.Tensor] = []
        self._kept: list[torch.Tensor] = []

    def load(self, request: Load) -> Loaded:
        """Compile and import what lies in the folder."""
        folder = Path(request.folder)
        files = {
            str(path.relative_to(folder)): path.read_text(encoding="utf-8")
            for path in folder.rglob("*")
            if path.is_file()
        }
        candidate = Candidate(files=files, main=request.main, dsl=request.dsl, entry=request.entry)
        self._loaded = table.get(request.dsl).load(candidate, folder, request.target)
        return Loaded(
            entry=self._loaded.entry, is_module=self._loaded.is_module, facts=self._loaded.facts
        )

    def construct(self, request: Construct) -> Constructed:
        """Build from the task's constructor arguments, seeded as the reference was."""
        arguments = rebuild(request.init.layout, self._leaves(request.init, request.init_offsets))
        _seed(request.seed)
        self._entry = self._loaded.build(*arguments)
        if not self._loaded.is_module:
            return Constructed()
        if not isinstance(self._entry, torch.nn.Module):
            raise Refuted(f"{self._loaded.entry} is not a torch.nn.Module")
        self._module = self._entry.train(request.train)
        return Constructed(state=tuple(_state_of(self._module)))

    def adopt(self, request: Adopt) -> None:
        """Copy parameters in, or take them as keywords; then `prepare` and remember the buffers."""
        given = {
            entry.name: tensor_at(self._lent, offset, entry.spec)
            for entry, offset in zip(request.state, request.offsets, strict=True)
        }
        if self._module is None:
            self._params = {name.replace(".", "_"): t.clone() for name, t in given.items()}
            changing = list(self._params.values())
        else:
            own = dict(_tensors_of(self._module))
            for name, tensor in given.items():
                self._copy(own[name].data, tensor)
            prepare = getattr(self._module, "prepare", None)
            if callable(prepare):
                prepare()
            changing = list(self._module.buffers())
        self._restore = [(tensor, tensor.clone()) for tensor in changing]

    def call(self, request: Call) -> Called:
        """Restore buffers, call once under the clock, copy the outputs into their slots."""
        for tensor, saved in self._restore:
            self._copy(tensor, saved)
        leaves = self._leaves(request.inputs, request.offsets)
        inputs = rebuild(request.inputs.layout, leaves)
        keywords: dict[str, Any] = dict(self._params)
        if getattr(self._entry, "wants_like", False):
            returned = [slot.spec for slot in request.outputs if slot.leaf is not None]
            keywords["like"] = [_empty(spec) for spec in returned]
        _seed(request.seed)
        lap = self._lap(self._entry, tuple(inputs), keywords)
        try:
            tree, results = describe(lap.result)
        except Undescribable as strange:
            raise Refuted(
                f"the call returned something that is neither tensors nor numbers: {strange}"
            ) from None
        strange = _strange(results)
        self._last = results
        if request.keep:
            self._kept = results
        return Called(
            returned=tree,
            elapsed_ns=lap.elapsed_ns,
            cpu_ns=lap.cpu_ns,
            filled=strange is None and self._fill(request.outputs, results),
            strange=strange,
            aliases=tuple(aliases(results, leaves)),
            overlapping=tuple(overlapping(results)),
        )

    def recall(self, request: Recall) -> Recalled:
        """Copy the kept result, which its owner still holds, to its slots once more."""
        return Recalled(filled=bool(self._kept) and self._fill(request.outputs, self._kept))

    @property
    def _lent(self) -> Arena:
        assert self.arena is not None, "the judge lends an arena before it refers to it"
        return self.arena

    def _leaves(self, tree: Tree, offsets: Iterable[int]) -> list[torch.Tensor]:
        places = zip(tree.specs, offsets, strict=True)
        return [tensor_at(self._lent, offset, spec) for spec, offset in places]

    def _fill(self, slots: tuple[OutputSlot, ...], results: list[torch.Tensor]) -> bool:
        buffers = self._params if self._module is None else dict(_tensors_of(self._module))
        pairs = []
        for slot in slots:
            if slot.leaf is not None:
                source = results[slot.leaf] if slot.leaf < len(results) else None
            else:
                name = slot.buffer or ""
                source = buffers.get(name.replace(".", "_") if self._module is None else name)
            if source is None or not _fits(source, slot):
                return False
            pairs.append((tensor_at(self._lent, slot.offset, slot.spec), source.detach()))
        for target, source in pairs:
            self._copy(target, source)
        return True


def _seed(seed: int) -> None:
    """Seed what a module may draw from, as the oracle seeds it for the reference."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed % 2**32)


def _fits(tensor: torch.Tensor, slot: OutputSlot) -> bool:
    own = spec_of(tensor)
    return (own.dtype, own.shape) == (slot.spec.dtype, slot.spec.shape)


def _empty(spec: Any) -> torch.Tensor:
    return torch.empty_strided(spec.shape, spec.strides, dtype=getattr(torch, spec.dtype))


def _tensors_of(module: torch.nn.Module) -> Iterable[tuple[str, torch.Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def _state_of(module: torch.nn.Module) -> Iterable[StateSpec]:
    for name, tensor in module.named_parameters():
        yield StateSpec(name=name, spec=spec_of(tensor), kind="parameter")
    for name, tensor in module.named_buffers():
        yield StateSpec(name=name, spec=spec_of(tensor), kind="buffer")


def _strange(results: list[torch.Tensor]) -> str | None:
    """Lazy subclasses compute when they are looked at, after the clock has stopped."""
    for index, tensor in enumerate(results):
        kind = type(tensor)
        if kind not in (torch.Tensor, torch.nn.Parameter):
            return f"output {index} is a {kind.__module__}.{kind.__qualname__}, not a torch.Tensor"
        if getattr(tensor, "__dict__", None):
            return f"output {index} carries attributes of its own: {', '.join(tensor.__dict__)}"
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            return f"output {index} is a {tensor.layout} tensor on {tensor.device}"
    return None
