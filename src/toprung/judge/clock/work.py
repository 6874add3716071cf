"""The work a task asks for: flops and bytes, counted from its reference.

The reference runs once on meta tensors, which have shapes and no data, under a recording mode; where
it cannot (its control flow looks at values, or an operator has no meta form), it runs on copies of
the real ones. Operators whose results reach no output are left out. Conventions of flops are in
`toprung.judge.clock.flops`.
"""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.utils._pytree import tree_map

from toprung.errors import TaskError
from toprung.model.roofline import Work

from .flops import Flops
from .flops.call import tensors_in
from .provable import has_free_values, wholly_read
from .trace import Access, Step, Trace
from .whole import WholeAttention

Kind = Literal["input", "parameter", "buffer", "constant"]

# Operators whose result leaves torch and steers the reference.
STEERING = frozenset(("_local_scalar_dense", "equal", "is_nonzero"))


@dataclass(frozen=True)
class Source:
    """A tensor that was there before the call."""

    kind: Kind
    access: Access
    is_free: bool
    """Whether its values show no structure; parameters get secret ones."""


def count_work(model: torch.nn.Module, inputs: Sequence[Any]) -> Work:
    """Count the work of `model(*inputs)`; neither is changed.

    `flops` and `product_flops` are by the conventions of `toprung.judge.clock.flops`. `min_bytes` is
    each used input, parameter, buffer and constant read once and each output and mutated tensor
    written once (`written_bytes`); of a tensor that is only sliced or gathered from, the part that is
    used; nothing for an output that is an input unchanged. `must_bytes` is what is written and the
    inputs that `provable` says cannot be avoided. `uncounted` names operators without a formula.

    A module may compute gradients in its `forward` under `torch.enable_grad()`; they are counted.
    Raises `TaskError` when the reference itself fails.
    """
    failures: list[Exception] = []
    for on_meta, with_autograd in ((True, False), (True, True), (False, False), (False, True)):
        try:
            return _count(model, inputs, on_meta=on_meta, with_autograd=with_autograd)
        except Exception as failed:
            failures.append(failed)
    last = failures[-1]
    raise TaskError(
        f"the reference fails on its own inputs: {type(last).__name__}: {last}",
        hint="call Model(*get_init_inputs())(*get_inputs()) in Python and mend what it says",
        details=f"on tensors without data: {type(failures[0]).__name__}: {failures[0]}",
    ) from last


def _count(
    model: torch.nn.Module, inputs: Sequence[Any], *, on_meta: bool, with_autograd: bool = False
) -> Work:
    """One try. Without autograd, torch's composite operators reach the trace whole."""
    twins = _Twins(on_meta)
    twin_model, twin_inputs = twins.model(model), twins.values(list(inputs))
    trace = Trace(on_meta=on_meta)
    sources = dict(_sources(trace, twin_model, twin_inputs, inputs))
    device = torch.device("meta") if on_meta else _device_of(inputs)
    with ExitStack() as scope:
        scope.enter_context(torch.random.fork_rng(devices=_gpus(inputs)))
        scope.enter_context(torch.no_grad() if with_autograd else torch.inference_mode())
        if not on_meta:
            scope.enter_context(_taken_apart())
        if with_autograd:
            scope.enter_context(WholeAttention(trace))
        scope.enter_context(device)
        scope.enter_context(trace)
        result = twin_model(*twin_inputs)
    for number, constant in trace.constants.items():
        sources[number] = Source("constant", trace.access(constant), is_free=False)
    return _work(trace.steps, sources, [trace.access(t) for t in tensors_in(result)])


@contextmanager
def _taken_apart() -> Iterator[None]:
    """Recurrent and encoder layers run operator by operator, not as one opaque vendor call."""
    fast = torch.backends.mha.get_fastpath_enabled()
    with warnings.catch_warnings(), ExitStack() as flags:
        warnings.simplefilter("ignore")  # about TF32 on devices that are not here
        flags.enter_context(torch.backends.cudnn.flags(enabled=False))
        flags.enter_context(torch.backends.mkldnn.flags(enabled=False))
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)


class _Twins:
    """Copies of tensors, each once: without data on the meta device, or real ones."""

    def __init__(self, on_meta: bool) -> None:
        self._on_meta = on_meta
        self._memo: dict[int, Any] = {}

    def tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        """The twin of `tensor`: type, sizes, strides and `requires_grad` are kept."""
        if id(tensor) not in self._memo:
            twin = tensor.detach()
            if self._on_meta:
                twin = torch.empty_strided(
                    tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"
                )
            else:
                # Repeated elements stay repeated.
                repeats = [step == 0 for step in tensor.stride()]
                twin = twin[tuple(slice(0, 1) if repeated else slice(None) for repeated in repeats)]
                twin = twin.clone().expand(tensor.shape)
            if isinstance(tensor, torch.nn.Parameter):
                twin = torch.nn.Parameter(twin, requires_grad=tensor.requires_grad)
            self._memo[id(tensor)] = twin.requires_grad_(tensor.requires_grad)
        return self._memo[id(tensor)]

    def values(self, tree: Any) -> Any:
        """The same nest of values with twins for tensors."""
        return tree_map(
            lambda leaf: self.tensor(leaf) if isinstance(leaf, torch.Tensor) else leaf, tree
        )

    def model(self, model: torch.nn.Module) -> torch.nn.Module:
        """A deep copy whose parameters, buffers and plain tensor attributes are twins."""
        for tensor in tensors_of(model):
            self.tensor(tensor)
        return copy.deepcopy(model, self._memo)


def tensors_of(model: torch.nn.Module) -> list[torch.Tensor]:
    """Parameters, buffers, and tensors among the attributes of the module and its parts."""
    found: list[torch.Tensor] = []
    for module in model.modules():
        found += tensors_in([vars(module)["_parameters"], vars(module)["_buffers"]])
        plain = {k: v for k, v in vars(module).items() if not k.startswith("_") and k != "training"}
        found += tensors_in(plain)
    return found


def _sources(
    trace: Trace, model: torch.nn.Module, twins: Sequence[Any], inputs: Sequence[Any]
) -> Iterator[tuple[int, Source]]:
    parameters = {id(p) for p in model.parameters()}
    for tensor in tensors_of(model):
        kind: Kind = "parameter" if id(tensor) in parameters else "buffer"
        access = trace.access(tensor)
        yield access.storage, Source(kind, access, is_free=kind == "parameter")
    for twin, given in zip(tensors_in(twins), tensors_in(inputs), strict=True):
        access = trace.access(twin)
        is_free = trace.on_meta and has_free_values(given)
        yield access.storage, Source("input", access, is_free)


def _device_of(inputs: Sequence[Any]) -> torch.device:
    return next((t.device for t in tensors_in(list(inputs))), torch.device("cpu"))


def _gpus(inputs: Sequence[Any]) -> list[torch.device]:
    device = _device_of(inputs)
    return [device] if device.type == "cuda" else []


# --- from steps to work


def _work(steps: Sequence[Step], sources: dict[int, Source], results: list[Access]) -> Work:
    changed = {w.storage for step in steps for w in step.writes} & set(sources)
    outputs = [r for r in results if r.storage not in sources]
    needed = {r.storage for r in results} | changed
    used = _live(steps, needed)
    flops = sum((step.flops or Flops() for step in used), Flops())
    written = _written(used, sources, changed, outputs)
    read = _read(used, sources)
    ends = [*outputs, *(sources[number].access for number in changed)]
    whole = wholly_read(used, {n: s.is_free for n, s in sources.items()}, ends)
    must = sum(s.access.nbytes for n, s in sources.items() if n in whole and s.kind == "input")
    return Work(
        flops=flops.total,
        product_flops=flops.product,
        min_bytes=read + written,
        written_bytes=written,
        must_bytes=min(must + written, read + written),
        uncounted=tuple(sorted({step.name for step in used if step.flops is None})),
    )


def _live(steps: Sequence[Step], needed: set[int]) -> list[Step]:
    """The steps on whose results `needed` storages, or the reference's own decisions, depend."""
    needed = set(needed)
    live: list[Step] = []
    for step in reversed(steps):
        if step.name in STEERING or any(w.storage in needed for w in step.writes):
            needed |= {r.storage for r in step.reads}
            live.append(step)
    return live[::-1]


def _read(steps: Iterable[Step], sources: dict[int, Source]) -> int:
    """Bytes of the sources, the parts that are used, each once."""
    parts: dict[int, dict[Any, int]] = defaultdict(dict)
    for step in steps:
        for position, read in enumerate(step.reads):
            if read.storage in sources:
                picks = step.gathered_bytes is not None and position == 0
                nbytes = min(read.nbytes, step.gathered_bytes or 0) if picks else read.nbytes
                parts[read.storage][read.region, picks] = nbytes
    return sum(min(sources[n].access.nbytes, sum(p.values())) for n, p in parts.items())


def _written(
    steps: Iterable[Step], sources: dict[int, Source], changed: set[int], outputs: list[Access]
) -> int:
    """Bytes of fresh outputs and of the parts of sources that change, each once."""
    parts: dict[int, dict[Any, int]] = defaultdict(dict)
    for output in outputs:
        parts[output.storage][output.region] = output.nbytes
    for step in steps:
        for write in step.writes:
            if write.storage in changed:
                parts[write.storage][write.region] = write.nbytes
    limits = {n: sources[n].access.nbytes for n in changed}
    return sum(min(limits.get(n, sum(p.values())), sum(p.values())) for n, p in parts.items())
