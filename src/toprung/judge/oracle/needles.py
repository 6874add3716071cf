"""Needles: elements that outweigh all others together, so that a reduction that skips one is seen.

One ordinary element of a sum of 2^20 is less than the sum may be off by rounding; a kernel that
drops the last few would pass. Here the rest of the tensor is scaled down until all of it adds up
to no more than the needles do; sums, means, norms and squared differences then hang on each of
them. Under an exponential the rest stays as it is: its sums hang on needles that stand
high enough, and terms that are nearly alike would make one accumulator drift.

Where one ordinary element weighs more than rounding does, there is no need of them.
"""

from __future__ import annotations

import torch

from .structure import Structure

HEIGHTS = (8.0, 2.0, 1.0)
"""Needles reach up to this many times the observed range; the first that the reference bears."""

FEWEST = 64
"""Elements; in a smaller tensor every ordinary element is seen."""

TAIL = 64
"""Elements at the end of a dimension among which a tail is looked for."""

ANYWHERE = 4

EVERY_CHECK, EVERY_TIMED = 3, 8
"""One in so many draws has needles: of any three checks one, and enough timed calls that needles
do not tell a check from them."""


ORDINARY = 8.0
"""An element is seen when its share of a sum is this many times what the sum may be off."""


def are_needed(terms: int, floor: float) -> bool:
    """Whether one of `terms` elements can hide below `floor`, both of an output's longest sum."""
    return terms * floor * ORDINARY > 1


def has_needles(seed: int, draw: int, truth: bool) -> bool:
    """Whether a draw is one of those with needles; `seed` is secret."""
    every = EVERY_CHECK if truth else EVERY_TIMED
    return draw % every == seed % every


def stick(
    value: torch.Tensor,
    structure: Structure,
    height: float,
    shrink: bool,
    first: bool,
    rng: torch.Generator,
) -> torch.Tensor | None:
    """`value` with needles, scaled down if `shrink`; `None` where its structure has no room.

    Needles are nearly alike, lest one hide another under an exponential. They have the sign that
    occurs; where both do, positive in the `first` input and of a random sign in others, which
    then do not cancel in a difference.
    """
    mirrored = structure.symmetric or structure.sorted
    if structure.kind != "float" or structure.rigid or mirrored or value.numel() < FEWEST:
        return None
    wide = value.double()
    places = torch.unique(_places(value.shape, rng))
    if structure.sparse or structure.triangular:
        places = places[wide.flatten()[places] != 0]
    top, total = float(wide.abs().max()), float(wide.abs().sum())
    if not top or not places.numel():
        return None
    negative = structure.sign == "nonpositive"
    if structure.sign == "any" and not first:
        negative = bool(torch.rand((), generator=rng) < 0.5)
    info = torch.finfo(value.dtype)
    peak = min(height * top, info.max / 64)
    spread = 0.1 if structure.sign == "any" else 0.5
    sizes = peak * (1 - spread * torch.rand(places.numel(), generator=rng, dtype=torch.float64))
    shrunk = min(1.0, float(sizes.sum()) / total) if shrink else 1.0
    if info.bits == 16:  # squares of what is left must not fall below what the type holds
        shrunk = max(shrunk, 2.0**-6)
    flat = wide.flatten() * shrunk
    flat[places] = -sizes if negative else sizes
    return flat.reshape(value.shape).to(value.dtype)


def _places(shape: torch.Size, rng: torch.Generator) -> torch.Tensor:
    """Flat indices: the last, the last and one near it in every dimension, and some anywhere."""
    sizes = torch.tensor(shape)
    count = 2 * len(shape) + ANYWHERE
    index = (torch.rand(count, len(shape), generator=rng, dtype=torch.float64) * sizes).long()
    for dimension, size in enumerate(shape):
        back = int(torch.randint(min(TAIL, size), (), generator=rng))
        index[2 * dimension, dimension] = size - 1
        index[2 * dimension + 1, dimension] = size - 1 - back
    steps = torch.tensor([int(sizes[i + 1 :].prod()) for i in range(len(shape))])
    return torch.cat([(index * steps).sum(1), sizes.prod()[None] - 1])
