"""How many terms an operator adds up for one element of its result: rounding grows with its root."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .randomness import operator

_INNER_OF_FIRST = frozenset({"mm", "bmm", "mv", "dot", "vdot", "_int_mm", "_scaled_mm"})
_INNER_OF_SECOND = frozenset({"addmm", "baddbmm", "addbmm", "addmv", "_addmm_activation"})
_ALONG_A_DIMENSION = frozenset(
    ["_softmax", "_log_softmax", "_safe_softmax", "cumsum", "cumprod", "logcumsumexp"]
)
_EXPONENTIAL = frozenset(
    ["exp", "exp2", "logsumexp", "_softmax", "_log_softmax", "_safe_softmax", "logcumsumexp"]
)
_SELECTING = frozenset(
    [
        "index",
        "select",
        "slice",
        "gather",
        "index_select",
        "take",
        "embedding",
        "narrow",
        "max",
        "min",
        "amax",
        "amin",
        "aminmax",
        "argmax",
        "argmin",
        "topk",
        "sort",
        "median",
        "kthvalue",
        "mode",
        "max_pool2d_with_indices",
        "max_pool3d_with_indices",
        "adaptive_max_pool2d",
        "adaptive_max_pool3d",
        "masked_select",
        "unsafe_split",
        "split",
        "_local_scalar_dense",
        "nonzero",
        "any",
        "all",
        "equal",
        "is_nonzero",
        "_unsafe_index",
        "constant_pad_nd",
        "view_as_real",
    ]
)


class Terms(TorchDispatchMode):
    """Looks on while something is computed: the longest sum, whether there is attention or exp."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 1
        self.attention = False
        self.exponential = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.most = max(self.most, terms_of(func, args, result))
        self.attention |= operator(func).startswith("_scaled_dot_product")
        self.exponential |= self.attention or operator(func) in _EXPONENTIAL
        return result


def terms_of(func: Any, args: Any, result: Any) -> int:
    """Terms per element of `result`; 1 where nothing is added up. Arguments as aten has them."""
    name = operator(func)
    if name in _INNER_OF_FIRST:
        return args[0].shape[-1]
    if name in _INNER_OF_SECOND:
        return args[1].shape[-1]
    if name in _ALONG_A_DIMENSION:
        return args[0].shape[args[1]] if args[0].dim() else 1
    if name == "convolution":
        return _window(args[1], transposed=args[6], groups=args[8])
    if "layer_norm" in name or name == "_fused_rms_norm":
        return math.prod(args[1])
    if name == "native_group_norm":
        return args[4] * args[5] * args[6] // (args[3] * args[7])
    if "batch_norm" in name:
        training = args[5] if len(args) > 5 and isinstance(args[5], bool) else True
        return args[0].numel() // max(args[0].shape[1], 1) if training else 1
    if name.startswith("_scaled_dot_product"):
        return args[0].shape[-1] + args[1].shape[-2]
    return 1 if name in _SELECTING else _shrinkage(args, result)


def _window(weight: torch.Tensor, transposed: bool, groups: int) -> int:
    if not transposed:
        return weight[0].numel()
    return weight.shape[0] // groups * weight[0, 0].numel()


def _shrinkage(args: Any, result: Any) -> int:
    """Elements in over elements out: sums, means, norms, losses, pooling."""
    if isinstance(result, tuple | list):
        result = result[0] if result else None
    if not isinstance(result, torch.Tensor) or not result.is_floating_point():
        return 1
    sizes = [a.numel() for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
    return max([*sizes, 1]) // max(result.numel(), 1) or 1
