"""Secret values for parameters and buffers that were initialised to one constant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import torch

from .randomness import generator

Boldness = Literal["signed", "positive", "none"]
BOLDNESS: tuple[Boldness, ...] = ("signed", "positive", "none")
"""How zeros are replaced: by either sign; by positive values where the reference takes roots or
logarithms of them; not at all. Other constants keep their sign in all but the last."""

SPREAD = 0.25


def tensors_of(model: torch.nn.Module) -> Iterable[tuple[str, torch.Tensor]]:
    """Parameters, then buffers, by name."""
    yield from model.named_parameters()
    yield from model.named_buffers()


@torch.no_grad()
def make_secret(model: torch.nn.Module, seed: int, boldness: Boldness) -> None:
    """Replace constant floating parameters and buffers in place, each by its own kind.

    Parameters of a constant c become c times 0.75 to 1.25, buffers (running variances) c times
    2^-6 to 2^2, so that an epsilon beside them counts; zeros become normal values of spread 1/4.
    Anything else was drawn or computed and stays.
    """
    if boldness == "none":
        return
    for name, tensor in tensors_of(model):
        if not tensor.is_floating_point() or not tensor.numel() or tensor.dtype.itemsize == 1:
            continue
        constant = float(tensor.flatten()[0])
        if not bool((tensor == constant).all()):
            continue
        rng = generator(seed, "parameter", name)
        uniform = torch.rand(tensor.shape, generator=rng)
        if constant and isinstance(tensor, torch.nn.Parameter):
            tensor.copy_(constant * (1 + SPREAD * (2 * uniform - 1)))
        elif constant:
            tensor.copy_(constant * torch.exp2(8 * uniform - 6))
        else:
            drawn = SPREAD * torch.randn(tensor.shape, generator=rng)
            tensor.copy_(drawn.abs() if boldness == "positive" else drawn)
