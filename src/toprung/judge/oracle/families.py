"""Input families: the task's own fresh values, mapped so that their structure stays.

Each map is odd and monotone in a value (so that signs, zeros, order, ties and triangles stay), or
scales rows and columns alike (so that symmetry stays), and is applied to every input that has
room for it. `strength` 1, 1/2, 1/4 tames a map on which the reference itself loses its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from toprung.model.task import Family

from .structure import Structure

STRENGTHS = (1.0, 0.5, 0.25)


@dataclass(frozen=True)
class Dose:
    """How much of a family: its strength, and whether one input alone is bent, or each."""

    strength: float
    alone: bool = False


def doses(family: Family) -> tuple[Dose, ...]:
    """What is tried, in order, until the reference itself is well-conditioned."""
    usual = tuple(Dose(strength) for strength in STRENGTHS)
    if family != "large_offset":
        return usual
    # Products of two offsets may leave no digits; differences of two are what cancels best.
    return (usual[0], *(Dose(strength, alone=True) for strength in STRENGTHS))


GOLDEN = 0.6180339887498949
"""Multiples of this modulo 1 fill the unit interval evenly, with neighbours far apart."""

Map = Callable[[torch.Tensor, Structure, float, torch.Generator], torch.Tensor]


def bend(
    family: Family, value: torch.Tensor, structure: Structure, strength: float, rng: torch.Generator
) -> torch.Tensor | str:
    """`value` as a member of `family`, or why it cannot be one and keep its structure."""
    if structure.rigid:
        return structure.rigid
    if structure.sorted and family in ("position_coded", "special_values"):
        return "sorted"
    if not float(value.abs().max()):
        return "all zero"
    wide = value if value.dtype == torch.float64 else value.float()
    if family == "special_values":
        return _special_values(wide, structure, strength, rng).to(value.dtype)
    info = torch.finfo(value.dtype)
    if info.bits == 16:
        # What an epsilon does must be seen in a type this coarse; and products of two large
        # elements must not decide everything.
        strength *= {"mixed_scales": 4 / 3, "heavy_tails": 5 / 6}.get(family, 1.0)
    if family == "large_offset":
        bent = _large_offset(wide, structure, -math.log2(info.eps) / 2 * strength, rng)
    else:
        bent = MAPS[family](wide, structure, strength, rng)
    return bent.clamp(-info.max / 64, info.max / 64).to(value.dtype)


def _heavy_tails(
    x: torch.Tensor, structure: Structure, strength: float, rng: torch.Generator
) -> torch.Tensor:
    """x / (1 - (1 - 1/h) |x| / top): the body stays, the largest grows h-fold (h = 64).

    `top` is the largest of all, and in a quarter of the rows the largest of the row.
    """
    height = 2 ** (6 * strength)
    top = x.abs().max()
    if x.dim() > 1 and not structure.symmetric:
        own = torch.rand((*x.shape[:-1], 1), generator=rng) < 0.25
        highest = x.abs().amax(-1, keepdim=True)
        top = torch.where(own & (highest > 0), highest, top)
    return x / (1 - (1 - 1 / height) * x.abs() / top)


def _mixed_scales(
    x: torch.Tensor, structure: Structure, strength: float, rng: torch.Generator
) -> torch.Tensor:
    """Rows of the first two dimensions, some columns whole, scaled by 2^-6 to 2^3."""
    if x.dim() < 2:
        return x * _powers(x.shape, strength, rng) if not structure.sorted else x.clone()
    if structure.symmetric:
        scale = _powers((x.shape[-1],), strength / 2, rng)
        return x * scale * scale[:, None]
    rows = _powers(x.shape[:1], strength, rng).reshape(-1, *[1] * (x.dim() - 1))
    if structure.sorted and x.dim() == 2:
        return x * rows
    columns = _powers(x.shape[1:2], strength, rng).reshape(-1, *[1] * (x.dim() - 2))
    if x.dim() == 2:  # most columns keep the scale of their row, so that whole rows are small
        chosen = torch.rand(columns.shape, generator=rng) < 0.06
        return x * rows * torch.where(chosen, columns.clamp_max(1.0), 1.0)
    pairs = _powers((*x.shape[:2], *[1] * (x.dim() - 2)), strength, rng)
    by_row = torch.rand(rows.shape, generator=rng) < 0.25
    by_column = torch.rand(columns.shape, generator=rng) < 0.25
    return x * torch.where(by_row, rows, torch.where(by_column, columns, pairs))


def _large_offset(
    x: torch.Tensor, structure: Structure, digits: float, rng: torch.Generator
) -> torch.Tensor:
    """A mean 2^digits times the spread (half of what the type holds); zeros of a pattern stay.

    The offset is a power of two and what is added to it has no mean of its own: then one
    accumulator for a whole row loses what it loses at random, as elsewhere, instead of drifting.
    """
    spread = x.std() if x.numel() > 1 else x.abs().max()
    spread = spread if float(spread) else x.abs().max()
    offset = torch.exp2((spread.log2() + digits).round())
    if structure.sign == "nonpositive" or (
        structure.sign == "any" and bool(torch.rand((), generator=rng) < 0.5)
    ):
        offset = -offset
    moved = (x - x.mean()) + offset
    pattern = structure.triangular or structure.sparse
    return torch.where(x == 0, 0.0, moved) if pattern else moved


def _position_coded(
    x: torch.Tensor, structure: Structure, strength: float, rng: torch.Generator
) -> torch.Tensor:
    """Magnitudes that no two positions share; the signs are the task's own."""
    if structure.symmetric:
        index = torch.arange(x.shape[-1])
        low, high = torch.minimum(index, index[:, None]), torch.maximum(index, index[:, None])
        place = (high * x.shape[-1] + low).double().expand(x.shape)
    else:
        place = torch.arange(x.numel(), dtype=torch.float64).reshape(x.shape)
    magnitude = 0.5 + (place + 1).mul(GOLDEN).frac()
    return x.sign() * (x.square().mean().sqrt() * magnitude).to(x.dtype)


def _zeros_and_ties(
    x: torch.Tensor, structure: Structure, strength: float, rng: torch.Generator
) -> torch.Tensor:
    """Rounded so that values recur, each row's largest twice; rows of zeros, rows of one value.

    No value recurs often in a row: sums of few distinct values drift, and one accumulator for a
    whole row would then look like a cheat. The steps are powers of two.
    """
    scale = x.square().mean().sqrt()
    step = torch.exp2((scale * 8 / min(max(x.numel(), 64), 2**16)).log2().round())
    tied = (x / step).round() * step
    if structure.zero_free:
        tied = torch.where(tied == 0, x.sign() * step, tied)
    if strength == STRENGTHS[-1] or x.dim() < 2 or structure.triangular:
        return tied
    fate = torch.rand(x.shape[:-1], generator=rng)
    if structure.symmetric:
        kept = (fate >= 0.08).to(x.dtype)
        may_vanish = strength == 1 and not structure.zero_free
        return tied * kept[..., None] * kept[..., None, :] if may_vanish else tied
    if not structure.sorted:
        place = torch.randint(x.shape[-1], (*x.shape[:-1], 1), generator=rng)
        tied = tied.scatter(-1, place, tied.amax(-1, keepdim=True))
    level = (tied[..., :1] / scale * 2).round().clamp(-4, 4) * torch.exp2(scale.log2().round() - 1)
    level = torch.where(level == 0, tied[..., :1], level)
    constant = fate >= fate.flatten().sort().values[-max(min(fate.numel() // 16, 2), 1)]
    tied = torch.where(constant[..., None], level, tied)
    if strength < 1 or structure.zero_free:
        return tied
    return torch.where((fate < 0.08)[..., None], 0.0, tied)


def _special_values(
    x: torch.Tensor, structure: Structure, strength: float, rng: torch.Generator
) -> torch.Tensor:
    """A few elements infinite or NaN, of the sign that occurs; some rows stay finite."""
    specials = {
        "any": [float("inf"), float("-inf"), float("nan")],
        "nonnegative": [float("inf"), float("nan")],
        "nonpositive": [float("-inf"), float("nan")],
    }[structure.sign]
    result = x.clone()
    flat = result.view(-1)
    for number, value in enumerate(specials * 2):
        place = int(torch.randint(x.numel(), (), generator=rng))
        if structure.triangular and float(flat[place]) == 0:
            continue
        flat[place] = value
        if structure.symmetric:
            result = torch.where(result.mT.isfinite(), result, result.mT).contiguous()
            flat = result.view(-1)
        if number + 1 >= max(x.numel() // 8, 1):
            break
    return result


def _powers(
    shape: tuple[int, ...] | torch.Size, strength: float, rng: torch.Generator
) -> torch.Tensor:
    exponents = torch.rand(tuple(shape), generator=rng) * 9 - 6
    return torch.exp2(exponents.mul(strength).round())


MAPS: dict[str, Map] = {
    "heavy_tails": _heavy_tails,
    "mixed_scales": _mixed_scales,
    "position_coded": _position_coded,
    "zeros_and_ties": _zeros_and_ties,
}
