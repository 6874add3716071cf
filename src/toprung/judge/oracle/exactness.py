"""The float64 run: everything below this mode is computed in float64, casts that narrow still round."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from .randomness import Recording, Replay, draws, operator

WIDE = {torch.complex64: torch.complex128, torch.complex32: torch.complex128}


class Exact(TorchDispatchMode):
    """Lifts operators to float64.

    Casts are part of what a task asks for, as far as they change values: to a type that holds
    less than the task's own (`narrowest`), values are rounded, and carried on in float64; to its
    own type or a wider one (`.float()` in a bf16 or fp32 task), nothing is lost in the declared
    run either, or only what rounding loses, and the truth must not lose it. Draws are those of
    `recording`.
    """

    def __init__(self, narrowest: torch.dtype | None, recording: Recording):
        super().__init__()
        self._narrowest = narrowest
        self._replay = Replay(recording)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if draws(func):
            return self._replay(func, args)
        name, written, aliasing = operator(func), *_effects(func)
        if name == "_to_copy":
            return self._cast(func, args, kwargs)
        if name in ("lift_fresh", "lift_fresh_copy"):
            return self._lifted(func(*args, **kwargs))
        if func is torch.ops.aten.view.dtype:
            return self._reinterpreted(args[0], args[1])
        if aliasing:  # a view must go on sharing its memory
            return func(*args, **kwargs)
        if written:
            kept = args[0].dtype if isinstance(args[0], torch.Tensor) else torch.float64
            others = tree_map(functools.partial(_raise, floating=kept), (args[1:], kwargs))
            return func(args[0], *others[0], **others[1])
        return self._computed(func, args, kwargs)

    def _computed(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        asked = kwargs.get("dtype")
        raised, keywords = tree_map(_raise, (args, kwargs))
        if asked is None or not (asked.is_floating_point or asked.is_complex):
            return func(*raised, **keywords)
        factory = not any(isinstance(arg, torch.Tensor) for arg in args)
        if factory and not self._holds_all(asked):
            return func(*raised, **keywords)  # storage of a narrow type: what is put in is rounded
        keywords["dtype"] = WIDE.get(asked, torch.float64)
        return self._rounded(func(*raised, **keywords), asked)

    def _cast(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        asked = kwargs.get("dtype")
        if asked is None or not (asked.is_floating_point or asked.is_complex):
            return func(*args, **kwargs)
        kwargs["dtype"] = WIDE.get(asked, torch.float64)
        return self._rounded(func(*args, **kwargs), asked)

    def _rounded(self, value: torch.Tensor, asked: torch.dtype) -> torch.Tensor:
        return value if self._holds_all(asked) else value.to(asked).to(value.dtype)

    def _holds_all(self, dtype: torch.dtype) -> bool:
        """Whether `dtype` holds every value of the task's own type."""
        if self._narrowest is None or dtype.is_complex:
            return True
        own, other = torch.finfo(self._narrowest), torch.finfo(dtype)
        return other.eps <= own.eps and other.max >= own.max

    def _lifted(self, value: torch.Tensor) -> torch.Tensor:
        if value.is_floating_point() and self._holds_all(value.dtype):
            return value.double()
        return value

    def _reinterpreted(self, value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Bits are those of the declared type, not of the float64 that carries the value."""
        if value.dtype == torch.float64 and self._narrowest is not None:
            value = value.to(self._narrowest)
        return _raise(value.view(dtype).clone())


def _raise(value: Any, floating: torch.dtype = torch.float64) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_complex():
        return value.to(WIDE.get(value.dtype, value.dtype))
    return value.to(floating) if value.is_floating_point() and floating.is_floating_point else value


@functools.cache
def _effects(func: Any) -> tuple[bool, bool]:
    """(whether it writes into an argument, whether its result shares memory with one)."""
    written = any(
        a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments
    )
    aliasing = any(r.alias_info is not None for r in func._schema.returns)
    return written, aliasing and not written
