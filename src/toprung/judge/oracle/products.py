"""float16 matrix products on the CPU: taken in float32, where the CPU's own crawl."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from .randomness import operator

PRODUCTS = frozenset(
    {
        *("mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addbmm", "addmv", "_addmm_activation"),
        *("convolution", "_scaled_dot_product_flash_attention_for_cpu"),
    }
)

SLOW = torch.float16
"""A 512^3 product takes 105 ms in float16 and 0.7 ms in bfloat16 (2 cores with AVX-512)."""


class Products(TorchDispatchMode):
    """Products of float16 accumulate in float32 and round once, which is what matrix units do."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        slow = isinstance(args[0] if args else None, torch.Tensor) and args[0].dtype == SLOW
        if not slow or operator(func) not in PRODUCTS:
            return func(*args, **kwargs)
        return tree_map(_halved, func(*tree_map(_widened, args), **tree_map(_widened, kwargs)))


def _widened(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.dtype == SLOW else value


def _halved(value: Any) -> Any:
    return (
        value.to(SLOW) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
    )
