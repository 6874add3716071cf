"""What a reference does, operator by operator: flops, reads and writes, in the order of execution.

A `Trace` is a dispatch mode. Each storage gets a number when it is first seen or made; views and
in-place results keep the number of what they alias, so that uses of an input are found through any
chain of views. With real tensors nothing is kept alive: a reused storage gets a new number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from .flops import Call, Flops, flops_of
from .flops.call import tensors_in, words
from .whole import Whole, whole_of

Region = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Offset, sizes and strides of a view, without the dimensions that repeat elements."""


@dataclass(frozen=True)
class Access:
    """A view of a numbered storage, as an operator touches it."""

    storage: int
    region: Region
    nbytes: int
    """Of the distinct elements in the view."""
    is_whole: bool
    """Whether the view covers every element of its storage."""


@dataclass(frozen=True)
class Step:
    """One operator: what it costs, reads and writes. Views are no steps."""

    name: str
    flops: Flops | None
    """`None` where nobody has taught us to count."""
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    gathered_bytes: int | None = None
    """Where an operator picks elements of its first input: how many bytes at most it picks."""
    call: Call | None = None
    """Kept only for tensors without data, where keeping it costs nothing."""
    mixed: tuple[int, ...] = ()
    """Without `call`: positions of reads of which every element leaves a mark on the result."""


# Operators that pick some elements of their first tensor, by the values of another.
GATHERS = words("""
    _embedding_bag _embedding_bag_forward_only _unsafe_index embedding gather index index_select
    masked_select nll_loss2d_forward nll_loss_forward take take_along_dim
    """)

# Operators that take no more than the shape of their first tensor, or replace it unread.
UNREAD = words("""
    bernoulli cauchy copy empty_like exponential fill full_like geometric log_normal new_empty
    new_empty_strided new_full new_ones new_zeros normal ones_like rand_like randint_like
    randn_like random uniform zero zeros_like
    """)

LITERAL = ("aten.lift_fresh", "aten.detach_.")
"""How operators begin that `torch.tensor` applies to what it has made unseen."""


def access_of(tensor: torch.Tensor, storage: int) -> Access:
    """How `tensor` lies in its storage, which has the number `storage`."""
    dims = [(n, s) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if s != 0 and n != 1]
    elements = math.prod(n for n, _ in dims) if tensor.numel() else 0
    span = 1 + sum((n - 1) * s for n, s in dims) if tensor.numel() else 0
    # Windows that overlap share their elements.
    nbytes = min(elements, span) * tensor.element_size()
    region = (int(tensor.storage_offset()), tuple(n for n, _ in dims), tuple(s for _, s in dims))
    return Access(storage, region, nbytes, is_whole=nbytes >= tensor.untyped_storage().nbytes())


class Trace(TorchDispatchMode):
    """Records `steps` while it is entered; `on_meta` sends every tensor to the meta device."""

    supports_higher_order_operators = True

    def __init__(self, *, on_meta: bool) -> None:
        super().__init__()
        self.on_meta = on_meta
        self.steps: list[Step] = []
        self.constants: dict[int, torch.Tensor] = {}
        """Tensors that nobody announced, by number: constants of the module's source."""
        self._numbers: dict[int, int] = {}
        self._count = 0
        self._kept: list[torch.Tensor] = []
        self._twins: dict[int, torch.Tensor] = {}
        self._is_paused = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here; the default would import the compiler (over a second)."""
        return False

    def number(self, tensor: torch.Tensor) -> int:
        """The number of `tensor`'s storage, a new one if it was never seen."""
        key = tensor.untyped_storage()._cdata
        if key not in self._numbers:
            self._count += 1
            self._numbers[key] = self._count
        return self._numbers[key]

    def access(self, tensor: torch.Tensor) -> Access:
        """How `tensor` lies in its numbered storage."""
        return access_of(tensor, self.number(tensor))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Operators run unrecorded."""
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def add(self, whole: Whole, made: Iterable[torch.Tensor]) -> None:
        """Record an operator that ran unseen, with its fresh results."""
        reads = tuple(self.access(t) for t in whole.reads)
        writes = tuple(self._fresh(t) for t in made)
        self.steps.append(Step(whole.name, whole.flops, reads, writes, mixed=whole.mixed))

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one operator and record it."""
        kwargs = dict(kwargs or {})
        if self._is_paused:
            return func(*args, **kwargs)
        if self.on_meta:
            args, kwargs = self._to_meta(args, kwargs)
        if torch.is_inference_mode_enabled() and isinstance(func, torch._ops.OpOverload):
            # Only there do composite operators arrive whole.
            out = self._composite(func, args, kwargs)
            if out is not NotImplemented:
                return out
        inputs = {t.untyped_storage()._cdata: t for t in tensors_in((args, kwargs))}
        self._announce(func, inputs)
        out = func(*args, **kwargs)
        self._record(Call(func, args, kwargs, out), inputs)
        return out

    def _composite(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an operator that is made of others: recorded as a whole, or part by part."""
        call = Call(func, args, kwargs, None)
        if "upsample" in call.name:  # torch's decomposition writes out the arithmetic differently
            return NotImplemented
        whole = whole_of(call)
        if whole is None:
            with self:
                return func.decompose(*args, **kwargs)
        self._announce(func, {t.untyped_storage()._cdata: t for t in whole.reads})
        if self.on_meta:
            made = whole.made
            out = made[0] if len(whole.shapes) == 1 else made
        else:
            out = func(*args, **kwargs)
        self.add(whole, tensors_in(out))
        return out

    def _to_meta(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("meta")
        if not any(t.is_meta for t in tensors_in((args, kwargs))):
            return args, kwargs
        return tree_map(self._twin, (args, kwargs))

    def _twin(self, leaf: Any) -> Any:
        """Constants of the source that meet meta tensors are made meta, each once."""
        if not isinstance(leaf, torch.Tensor) or leaf.is_meta:
            return leaf
        if id(leaf) not in self._twins:
            self._twins[id(leaf)] = leaf.detach().to("meta")
            self._kept.append(leaf)
        return self._twins[id(leaf)]

    def _announce(self, func: Any, inputs: Mapping[int, torch.Tensor]) -> None:
        """Whatever is used before anything made it is a constant of the source, or a literal."""
        is_literal = str(func).startswith(LITERAL)
        for key, tensor in inputs.items():
            if key not in self._numbers:
                number = self.number(tensor)
                if not is_literal:
                    self.constants[number] = tensor

    def _fresh(self, tensor: torch.Tensor) -> Access:
        self._numbers.pop(tensor.untyped_storage()._cdata, None)
        if self.on_meta:
            self._kept.append(tensor)
        return self.access(tensor)

    def _record(self, call: Call, inputs: Mapping[int, torch.Tensor]) -> None:
        fresh = [t for t in call.outputs if t.untyped_storage()._cdata not in inputs]
        written = [*_written(call)]
        if call.name == "detach" or (call.outputs and not fresh and not written):
            return  # a view
        unread = {id(t) for t in _out_arguments(call)}
        if call.name in UNREAD:
            unread.add(id(call.inputs[0]) if call.inputs else 0)
        reads = tuple(self.access(t) for t in call.inputs if id(t) not in unread)
        writes = (*map(self._fresh, fresh), *map(self.access, written))
        kept = call if self.on_meta else None
        self.steps.append(
            Step(call.label, flops_of(call), reads, writes, _gathered_bytes(call), kept)
        )


def _written(call: Call) -> Iterator[torch.Tensor]:
    """Arguments that the operator changes: by its schema, or running statistics in training."""
    schema = getattr(call.func, "_schema", None)
    for argument in getattr(schema, "arguments", ()):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from tensors_in(call.named.get(argument.name))
    if call.name.endswith("batch_norm") and call.get("training", False):
        yield from tensors_in([call.named.get("running_mean"), call.named.get("running_var")])


def _out_arguments(call: Call) -> list[torch.Tensor]:
    """Results that the caller provided: written, never read."""
    schema = getattr(call.func, "_schema", None)
    names = [a.name for a in getattr(schema, "arguments", ()) if getattr(a, "is_out", False)]
    return tensors_in([call.named.get(name) for name in names])


def _gathered_bytes(call: Call) -> int | None:
    if call.name not in GATHERS:
        return None
    source = call.first
    if call.name.startswith("_embedding_bag"):
        picked = call.tensor("indices").numel() * source.shape[-1]
    elif call.name.startswith("nll_loss"):
        picked = call.tensor("target").numel()
    else:
        picked = call.numel
    return picked * source.element_size()
