"""What rounding does to an output: the reference's own error, and that of inputs shaken a little."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .rows import Rows, finite, flattened
from .tolerance import OWN_MULTIPLE, PEAK, Rule

JUMP = 32.0
"""A change is a jump when it is this many times the median change of its row (and intolerable)."""


WILD = 0.1
"""A row whose allowance is this share of its RMS hangs on near ties (which key wins, say)."""


@dataclass(frozen=True)
class Flags:
    """Elements that rounding alone decides. `slack` is how far each may be off."""

    index: torch.Tensor
    slack: torch.Tensor

    @property
    def spare(self) -> int:
        """How many other elements may jump; shaking finds most, and shakes harder than rounding."""
        return -(-self.index.numel() // 4)


@dataclass(frozen=True)
class Profile:
    """What was found on one draw, relative to rows, for draws that are not held against float64."""

    terms: int
    own: float
    shaken: float
    worst: float
    """The largest allowance of a row, relative to its RMS, among rows that have a scale."""
    nine_tenths: float
    """What nine tenths of the rows stay below: their allowance relative to their RMS, at most 1."""
    unscaled: float
    """The largest allowance of a row that has none (its truth is zero, but for rounding);
    of integers the largest slack of an element."""
    flagged: float
    """Share of flagged elements."""
    wild: float = 0.0
    """Share of wild rows."""


@dataclass(frozen=True)
class Yardstick:
    """The allowances of one output. Vectors have one float64 per row."""

    rms: torch.Tensor
    """Of the expected values."""
    typical: torch.Tensor
    """Rule 1: what the reference's error and shaking allow, without the floor."""
    worst: torch.Tensor
    """Rule 2: the same, and at least what a tenth of the rows exceeds: which row is hit is luck."""
    terms: int
    added: float = 0.0
    """Of a row's RMS: the error of the expected values themselves, where they are no truth."""
    flags: Flags | None = None
    spare: int = 0
    spare_rows: int = 0
    """Rows that may be off as a whole, beside others in which near ties were seen to fall."""
    reference_rmse: float | None = None
    reach: float = math.inf
    """Integers: how far any element may be off, where flags are known by their share alone."""
    far: int = 0
    """Integers: how many elements may be further off than rounding was seen to move them."""


@dataclass(frozen=True)
class Evidence:
    """Flat tensors of one output: the truth, the declared precision, shaken truths."""

    truth: torch.Tensor
    declared: Sequence[torch.Tensor]
    """First the reference as it is, then other honest ways to compute it at that precision."""
    shaken: Sequence[torch.Tensor]
    times: Sequence[float]
    """By how many units the inputs of each shaken truth were shaken."""
    terms: int


def measure(rule: Rule, rows: Rows, seen: Evidence) -> tuple[Yardstick, Profile]:
    """Yardstick and profile of a floating output from what was seen."""
    rms, floor = rows.rms(seen.truth), rule.natural_floor(seen.terms)
    own, shaken = torch.zeros_like(rms), torch.zeros_like(rms)
    indices, slacks = [], []
    square = 0.0
    for elements, part in rows.blocks():
        truth = rows.cut(seen.truth, elements, part)
        limit = PEAK * floor * (finite(truth).abs() + rms[part, None]) + rule.tiny
        changes = [_change(rows.cut(d, elements, part).double(), truth) for d in seen.declared]
        square += float(changes[0].square().sum())
        change = torch.stack(changes).amax(0) if len(changes) > 1 else changes[0]
        moves = [_change(rows.cut(s, elements, part), truth) for s in seen.shaken]
        jumps = _jumps(change, 4 * limit)
        for move, times in zip(moves, seen.times, strict=True):
            jumps |= _jumps(move, times * limit)
        own[part] = _rms_without(change, jumps)
        shaken[part] = _sensitivity(moves, seen.times, jumps)
        if bool(jumps.any()):
            place = jumps.flatten().nonzero().flatten()
            most = torch.stack([change, *moves]).amax(0)
            indices.append(place + elements.start)
            slacks.append((4 * most + limit).flatten()[place])
    flags = Flags(torch.cat(indices), torch.cat(slacks)) if indices else None
    profile, allowed = _summary(rule, rms, own, shaken, seen.terms, flags, rows.numel)
    yardstick = Yardstick(
        rms,
        allowed,
        torch.maximum(allowed, profile.nine_tenths * rms),
        seen.terms,
        flags=flags,
        spare=flags.spare if flags else 0,
        spare_rows=math.ceil(profile.wild * rows.count / 2),
        reference_rmse=(square / max(rows.numel, 1)) ** 0.5,
    )
    return yardstick, profile


def expected_of(rule: Rule, rows: Rows, declared: torch.Tensor, profile: Profile) -> Yardstick:
    """The yardstick of a draw that only the declared precision was computed for."""
    rms = rows.rms(declared)
    relative = max(OWN_MULTIPLE * profile.own, rule.shaken_multiple(profile.terms) * profile.shaken)
    worst = rms * profile.worst
    unscaled = torch.where(rms < profile.unscaled, profile.unscaled, 0.0)
    return Yardstick(
        rms,
        torch.maximum(rms * relative, unscaled),
        torch.maximum(worst, unscaled),
        profile.terms,
        added=profile.own,
        spare=_spare_of(profile.flagged, rows.numel),
        spare_rows=math.ceil(2 * profile.wild * rows.count),
    )


def _spare_of(share: float, numel: int) -> int:
    """How many elements may jump when the share that may is known from another draw."""
    return int(2 * share * numel) + 4 if share > 0 else 0


def ambiguous(truth: torch.Tensor, others: Sequence[torch.Tensor]) -> Flags | None:
    """Elements of an integer or boolean output that shaking or rounding changes.

    Each may be off by twice the range that was seen.
    """
    low = high = truth
    for other in others:
        low, high = torch.minimum(low, other), torch.maximum(high, other)
    index = flattened(low != high).nonzero().flatten()
    if not index.numel():
        return None
    reach = flattened(high)[index].double() - flattened(low)[index].double()
    return Flags(index, 2 * reach)


def exact_yardstick(flags: Flags | None) -> Yardstick:
    """The yardstick of an integer or boolean output."""
    nothing = torch.zeros(0, dtype=torch.float64)
    spare = flags.spare if flags else 0
    far = flags.index.numel() // 4 if flags else 0
    return Yardstick(nothing, nothing, nothing, 1, flags=flags, spare=spare, far=far)


def exact_expected_of(profile: Profile, numel: int) -> Yardstick:
    """The same for a draw that only the declared precision was computed for."""
    nothing = torch.zeros(0, dtype=torch.float64)
    spare = _spare_of(profile.flagged, numel)
    far = int(profile.flagged * numel) // 4
    return Yardstick(nothing, nothing, nothing, 1, spare=spare, reach=profile.unscaled, far=far)


def exact_profile(flags: Flags | None, numel: int) -> Profile:
    """The profile of an integer or boolean output."""
    share = flags.index.numel() / max(numel, 1) if flags else 0.0
    reach = float(flags.slack.max()) if flags else 0.0
    return Profile(1, 0.0, 0.0, 0.0, 0.0, reach, share)


def evidence(
    truth: torch.Tensor,
    declared: Sequence[torch.Tensor],
    shaken: Sequence[torch.Tensor],
    times: Sequence[float],
    terms: int,
) -> Evidence:
    """The same output of several runs, flattened."""
    own, moved = [flattened(one) for one in declared], [flattened(one) for one in shaken]
    return Evidence(flattened(truth), own, moved, times, terms)


def _change(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return finite(one - other).abs()


def _jumps(change: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
    beyond = change > limit
    if bool(beyond.any()):
        beyond &= change > JUMP * change.median(1, keepdim=True).values
    return beyond


def _sensitivity(
    moves: Sequence[torch.Tensor], times: Sequence[float], jumps: torch.Tensor
) -> torch.Tensor:
    """RMS change of each row for one unit: of runs shaken alike their RMS, of others the largest."""
    result = torch.zeros(jumps.shape[0], dtype=torch.float64)
    for strength in set(times):
        alike = [m for m, t in zip(moves, times, strict=True) if t == strength]
        squares = [_rms_without(move, jumps).square() for move in alike]
        result = torch.maximum(result, torch.stack(squares).mean(0).sqrt() / strength)
    return result


def _rms_without(change: torch.Tensor, excluded: torch.Tensor) -> torch.Tensor:
    return torch.where(excluded, 0.0, change).square().mean(1).sqrt()


def _summary(
    rule: Rule,
    rms: torch.Tensor,
    own: torch.Tensor,
    shaken: torch.Tensor,
    terms: int,
    flags: Flags | None,
    numel: int,
) -> tuple[Profile, torch.Tensor]:
    """The profile, and what each row is allowed beside the floor."""
    factor = rule.shaken_multiple(terms)
    each = torch.maximum(OWN_MULTIPLE * own, factor * shaken)
    scaled = rms > each
    share = flags.index.numel() / max(numel, 1) if flags else 0.0
    unscaled = float(each[~scaled].max()) if bool((~scaled).any()) else 0.0
    if not bool(scaled.any()):
        nine_tenths = 1.0 if unscaled and bool((rms > 0).any()) else 0.0
        return Profile(terms, 0.0, 0.0, 0.0, nine_tenths, unscaled, share), each
    own_ratio, shaken_ratio = own[scaled] / rms[scaled], shaken[scaled] / rms[scaled]
    ratio = (each / rms)[rms > 0].clamp_max(1.0).sort().values
    profile = Profile(
        terms,
        float(own_ratio.square().mean().sqrt()),
        float(shaken_ratio.square().mean().sqrt()),
        float((each[scaled] / rms[scaled]).max()),
        float(ratio[ratio.numel() * 9 // 10]),
        unscaled,
        share,
        float((ratio > WILD).double().mean()),
    )
    common = max(OWN_MULTIPLE * float(own_ratio.median()), factor * float(shaken_ratio.median()))
    return profile, torch.maximum(each, common * rms)
