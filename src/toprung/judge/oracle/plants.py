"""A few adversarial elements in every draw of the task's own inputs, timed ones included.

They keep a candidate from telling a check from a timed call by its data, and from betting on what
a uniform or a normal distribution nearly always gives. Structure stays: values are multiplied (so
that zeros, signs and triangles stay), integers take values that were observed.
"""

from __future__ import annotations

from typing import Literal

import torch

from .structure import Structure

Level = Literal["strong", "mild", "none"]
LEVELS: tuple[Level, ...] = ("strong", "mild", "none")
"""`strong` leaves the observed range up to 8-fold, `mild` stays inside it."""

MOST = 6
"""Elements per tensor; at most one in sixteen."""


def plant(value: torch.Tensor, structure: Structure, level: Level, rng: torch.Generator) -> None:
    """Change a few elements of `value` in place."""
    count = min(MOST, value.numel() // 16)
    if level == "none" or not count or structure.fixed or structure.sorted:
        return
    if structure.kind == "integer" and not (structure.one_hot or structure.distinct):
        _plant_integers(value, structure, rng)
    elif structure.kind == "float" and structure.rigid is None:
        _plant_floats(value, structure, level, count, rng)


def _plant_integers(value: torch.Tensor, structure: Structure, rng: torch.Generator) -> None:
    places = _places(value, 2, rng)
    extremes = torch.tensor([int(structure.low), int(structure.high)]).to(value.dtype)
    value[places] = extremes


def _plant_floats(
    value: torch.Tensor, structure: Structure, level: Level, count: int, rng: torch.Generator
) -> None:
    factors = [8.0, 1 / 64, 4.0] if level == "strong" else [1 / 64, 1 / 2]
    if not (structure.zero_free or structure.symmetric or structure.triangular):
        factors.append(0.0)
    if structure.sign == "any":
        factors += [-factors[0], -1.0]
    patterned = structure.sparse or structure.triangular
    places = _nonzero(value, count, rng) if patterned else _places(value, count, rng)
    if structure.symmetric:  # above the diagonal, so that no two mirror each other
        low, high = torch.minimum(*places[-2:]), torch.maximum(*places[-2:])
        places = (*places[:-2], low, high)
    count = places[0].numel()
    chosen = torch.tensor(factors)[torch.randint(len(factors), (count,), generator=rng)]
    chosen[:1] = factors[0]  # the one that is surely in the last column is large
    planted = (value[places].float() * chosen).to(value.dtype)
    if value.dtype == torch.float64:
        planted = value[places] * chosen.double()
    value[places] = planted
    if structure.symmetric:
        value[(*places[:-2], places[-1], places[-2])] = value[places]


def _places(value: torch.Tensor, count: int, rng: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Random positions, every second one on the last index of some dimension: tails get lost."""
    flat = torch.randint(value.numel(), (count,), generator=rng)
    places = torch.unravel_index(flat, value.shape)
    for number in range(0, count, 2):
        dimension = int(torch.randint(value.dim(), (), generator=rng)) if number else -1
        places[dimension][number] = value.shape[dimension] - 1
    return places


def _nonzero(value: torch.Tensor, count: int, rng: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Random positions among those that are not zero, the last of them included."""
    flat = value.flatten().nonzero().flatten()
    chosen = torch.randint(max(flat.numel(), 1), (min(count, flat.numel()),), generator=rng)
    if chosen.numel():
        chosen[0] = flat.numel() - 1
    return torch.unravel_index(flat[chosen], value.shape)
