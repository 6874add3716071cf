"""Which tensors share memory: asked alike of what the reference and of what a candidate returns."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def aliases(
    results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]
) -> list[tuple[int, int]]:
    """Pairs (result, input) that have an address in common."""
    return [
        (i, j)
        for i, result in enumerate(results)
        for j, given in enumerate(inputs)
        if meet(result, given)
    ]


def overlapping(results: Sequence[torch.Tensor]) -> list[int]:
    """Results in which two elements share one address, or which share one with an earlier result."""
    return [
        i
        for i, result in enumerate(results)
        if _within(result) or any(meet(result, other) for other in results[:i])
    ]


def meet(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have an address in common. Interleaved views of one block have none."""
    if not (_dense(one) and _dense(other) and one.numel() and other.numel()):
        return False
    (low, high), (start, end) = _span(one), _span(other)
    if low >= end or start >= high:
        return False
    if (one.data_ptr(), one.shape, one.stride()) == (other.data_ptr(), other.shape, other.stride()):
        return True
    mine, theirs = _addresses(one), _addresses(other)
    return bool(torch.isin(mine, theirs).any())


def _within(tensor: torch.Tensor) -> bool:
    return _dense(tensor) and any(
        size > 1 and step == 0 for size, step in zip(tensor.shape, tensor.stride(), strict=True)
    )


def _dense(tensor: torch.Tensor) -> bool:
    """Whether it has addresses at all."""
    return tensor.layout == torch.strided and tensor.device.type != "meta"


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    start = tensor.data_ptr()
    reach = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return start, start + (reach + 1) * tensor.element_size()


def _addresses(tensor: torch.Tensor) -> torch.Tensor:
    """The address of every element, in bytes; worked out only when spans meet."""
    at = torch.tensor([tensor.data_ptr()])
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        steps = torch.arange(size) * (stride * tensor.element_size())
        at = (at[:, None] + steps[None, :]).flatten()
    return at
