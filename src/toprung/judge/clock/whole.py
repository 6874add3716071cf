"""Attention and recurrent layers counted as one operator each, before torch takes them apart.

Which way torch goes depends on the device; the parts of attention no longer show that its mask is
causal, and those of a recurrent layer are tens of thousands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from .flops import Call, Flops
from .flops.call import tensors_in
from .flops.products import attention, attention_backward
from .flops.recurrent import CELLS, Recurrent

if TYPE_CHECKING:
    from .trace import Trace


@dataclass(frozen=True)
class Whole:
    """What one such operator costs, reads and makes."""

    name: str
    flops: Flops
    reads: list[torch.Tensor]
    shapes: list[tuple[int, ...]]
    """Of the results, which have the type of the first input."""
    mixed: tuple[int, ...] = ()
    """Positions of `reads` of which every element leaves a mark on the result."""

    @property
    def made(self) -> tuple[torch.Tensor, ...]:
        """Results without data."""
        return tuple(self.reads[0].new_empty(shape) for shape in self.shapes)


def whole_of(call: Call) -> Whole | None:
    """The operator of `call` as a whole, if it is one of those; packed sequences are taken apart."""
    if call.namespace != "aten":
        return None
    if call.name == "scaled_dot_product_attention":
        return _attention(call.named)
    if call.name in CELLS and call.overload == "input":
        return _recurrent(call)
    return None


def _attention(named: Mapping[str, Any]) -> Whole:
    q, k, v, mask = named["query"], named["key"], named["value"], named.get("attn_mask")
    is_causal = bool(named.get("is_causal", False))
    return Whole(
        "scaled_dot_product_attention",
        attention(q, k, v, is_causal=is_causal, has_mask=mask is not None),
        tensors_in([q, k, v, mask]),
        [(*q.shape[:-1], v.shape[-1])],
        _mixed(q, k, mask, is_causal),
    )


def _mixed(
    q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor | None, is_causal: bool
) -> tuple[int, ...]:
    """Which of q, k and v are needed whole. The first query under a causal mask has no choice."""
    queries, keys = q.shape[-2], k.shape[-2]
    if mask is not None or keys < 2:
        return ()
    if is_causal:
        return (1, 2) if queries == keys else ()
    return (0, 1, 2)


def _recurrent(call: Call) -> Whole:
    states = tensors_in(call.get("hx"))
    layer = Recurrent(
        call.name,
        call.tensor("input"),
        tuple(states),
        call.get("params"),
        has_biases=call.get("has_biases"),
        layers=call.get("num_layers"),
        directions=1 + bool(call.get("bidirectional")),
        dropout=call.get("dropout") if call.get("train") else 0.0,
    )
    return Whole(layer.cell, layer.flops, [layer.x, *states, *layer.weights], layer.shapes)


class WholeAttention(TorchFunctionMode):
    """The same for attention that is to be differentiated; autograd takes it apart before dispatch.

    It sees calls from a reference's own source, not those from within torch's Python functions.
    """

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Let everything else pass."""
        kwargs = dict(kwargs or {})
        if func is not torch.nn.functional.scaled_dot_product_attention or not self._trace.on_meta:
            return func(*args, **kwargs)
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        named = {**dict(zip(names, args, strict=False)), **kwargs}
        tensors = (named["query"], named["key"], named["value"])
        return _Differentiable.apply(*tensors, _Rest(_attention(named), named, self._trace))


@dataclass(frozen=True)
class _Rest:
    """What is not differentiated."""

    whole: Whole
    named: Mapping[str, Any]
    trace: Trace


class _Differentiable(torch.autograd.Function):
    """Shapes and flops of attention and of its gradient, on tensors without data."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rest: _Rest) -> Any:
        """An output of the right shape; the work is recorded."""
        ctx.save_for_backward(q, k, v)
        ctx.rest = rest
        with rest.trace.paused():
            (out,) = rest.whole.made
        rest.trace.add(rest.whole, [out])
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Gradients of the right shapes; the work is recorded."""
        q, k, v = ctx.saved_tensors
        trace, is_causal = ctx.rest.trace, bool(ctx.rest.named.get("is_causal", False))
        with trace.paused():
            gradients = [torch.empty_like(t) for t in (q, k, v)]
        flops = attention_backward(q, k, v, is_causal=is_causal)
        trace.add(Whole(f"{ctx.rest.whole.name}_backward", flops, [*grads, q, k, v], []), gradients)
        return (*gradients, None)
