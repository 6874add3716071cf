"""Attention counted as one operator, before torch takes it apart or chooses a fused kernel.

Which way torch goes depends on the device, and the parts no longer show that a mask is causal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .flops.call import tensors_in
from .flops.products import attention, attention_backward
from .trace import Trace

NAME = "scaled_dot_product_attention"


class WholeAttention(TorchFunctionMode):
    """Records each call of torch's public attention function in `trace` as one operator."""

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
        """Let everything pass but attention."""
        kwargs = dict(kwargs or {})
        if func is not torch.nn.functional.scaled_dot_product_attention:
            return func(*args, **kwargs)
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        named = {**dict(zip(names, args, strict=False)), **kwargs}
        q, k, v, mask = named["query"], named["key"], named["value"], named.get("attn_mask")
        is_causal = bool(named.get("is_causal", False))
        if self._trace.on_meta:
            return _OnMeta.apply(q, k, v, _Kind(mask, is_causal, self._trace))
        with self._trace.paused():
            out = func(*args, **kwargs)
        flops = attention(q, k, v, is_causal=is_causal, has_mask=mask is not None)
        self._trace.add(NAME, flops, tensors_in([q, k, v, mask]), [out])
        return out


@dataclass(frozen=True)
class _Kind:
    """What is not differentiated."""

    mask: torch.Tensor | None
    is_causal: bool
    trace: Trace


class _OnMeta(torch.autograd.Function):
    """Shapes and flops of attention and of its gradient, on tensors without data."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, kind: _Kind) -> Any:
        """An output of the right shape; the work is recorded."""
        ctx.save_for_backward(q, k, v)
        ctx.kind = kind
        mask, is_causal, trace = kind.mask, kind.is_causal, kind.trace
        with trace.paused():
            out = q.new_empty((*q.shape[:-1], v.shape[-1]))
        flops = attention(q, k, v, is_causal=is_causal, has_mask=mask is not None)
        trace.add(NAME, flops, tensors_in([q, k, v, mask]), [out], _mixed(q, k, mask, is_causal))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Gradients of the right shapes; the work is recorded."""
        q, k, v = ctx.saved_tensors
        trace = ctx.kind.trace
        with trace.paused():
            gradients = [torch.empty_like(t) for t in (q, k, v)]
        flops = attention_backward(q, k, v, is_causal=ctx.kind.is_causal)
        trace.add(f"{NAME}_backward", flops, [*grads, q, k, v], gradients)
        return (*gradients, None)


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
