"""Trees of tensors and plain values, to and from their description. Imports torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from toprung.model.tensor import TensorSpec, Tree

from .arena import Arena

MOST_TENSORS = 1000


class Undescribable(TypeError):
    """A value that has no place in a tree; the message says where and what."""


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """Type, shape and strides; overlapping or gapped layouts become row-major."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if _dense(tensor):
        return TensorSpec(dtype=dtype, shape=tuple(tensor.shape), strides=tuple(tensor.stride()))
    return TensorSpec.contiguous(dtype, tuple(tensor.shape))


def _dense(tensor: torch.Tensor) -> bool:
    step = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size == 1:
            continue
        if stride != step:
            return False
        step *= size
    return True


def tensor_at(arena: Arena, offset: int, spec: TensorSpec) -> torch.Tensor:
    """A tensor that lives in `arena`, `offset` bytes from its start; no copy."""
    dtype = getattr(torch, spec.dtype)
    if spec.numel == 0:
        return torch.empty_strided(spec.shape, spec.strides, dtype=dtype)
    raw = torch.frombuffer(arena.view, dtype=torch.uint8, count=spec.nbytes, offset=offset)
    return raw.view(dtype).as_strided(spec.shape, spec.strides)


def describe(value: Any) -> tuple[Tree, list[torch.Tensor]]:
    """The tree of `value` and its tensors in order; raises `Undescribable`."""
    tensors: list[torch.Tensor] = []
    try:
        layout = _layout(value, tensors, "")
    except RecursionError:
        raise Undescribable("the value is nested without end") from None
    return Tree(layout=layout, specs=tuple(spec_of(t) for t in tensors)), tensors


def _layout(value: Any, tensors: list[torch.Tensor], where: str) -> dict[str, Any]:
    if isinstance(value, torch.Tensor):
        if len(tensors) == MOST_TENSORS:
            raise Undescribable(f"the value holds more than {MOST_TENSORS} tensors")
        tensors.append(value)
        return {"t": len(tensors) - 1}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return {"v": value}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, Mapping):
        return {"dict": _entries(value, tensors, where)}
    if isinstance(value, Sequence):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_layout(v, tensors, f"{where}[{i}]") for i, v in enumerate(value)]}
    kind = type(value)
    raise Undescribable(f"{where or 'the value'} is a {kind.__module__}.{kind.__qualname__}")


def _entries(value: Mapping[Any, Any], tensors: list[torch.Tensor], where: str) -> list[Any]:
    """Entries in the order of their keys, so that two dicts with the same keys are alike."""
    for key in value:
        if type(key) not in (str, int, float, bool):
            raise Undescribable(f"{where or 'the value'} has a {type(key).__name__} for a key")
    keys = sorted(value, key=lambda key: (type(key).__name__, key))
    return [[key, _layout(value[key], tensors, f"{where}[{key!r}]")] for key in keys]


def rebuild(layout: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """The value that `layout` describes, with `tensors` as its leaves; inverse of `describe`."""
    ((kind, content),) = layout.items()
    if kind == "t":
        return tensors[content]
    if kind == "v":
        return content
    if kind == "float":
        return float(content)
    if kind == "dtype":
        return getattr(torch, content)
    if kind == "dict":
        return {key: rebuild(node, tensors) for key, node in content}
    items = [rebuild(node, tensors) for node in content]
    return tuple(items) if kind == "tuple" else items
