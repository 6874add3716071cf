"""Expected values of one call, and whether the reference itself can be trusted on its inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from toprung.errors import TaskError
from toprung.model.task import Tolerance
from toprung.model.tensor import Precision

from .comparison import Expected
from .execution import Plan, Runner, Tensors
from .lengths import Terms
from .randomness import Recording
from .rows import Rows, flattened
from .shaking import Shaken, raised, shake, shake_declared
from .tolerance import EPS, Rule
from .yardstick import (
    Profile,
    Yardstick,
    ambiguous,
    evidence,
    exact_expected_of,
    exact_profile,
    exact_yardstick,
    expected_of,
    measure,
)

MOST_OWN, MOST_OWN_UNITS = 2.0**-6, 4.0
"""Largest error of the reference itself, relative to rows, on which it can still judge; in units
of the output for types so coarse that this is more."""

MOST_ALLOWED = 0.5
"""Beyond this share of a row's RMS, what is allowed says nothing any more."""

MOST_FLAGGED = 0.1
NOTHING_LEFT = 0.9
"""Where this share of an output is flagged, the rest says nothing."""


@dataclass(frozen=True)
class Truth:
    """What is expected of a call, and what makes the reference unfit to judge there, if anything."""

    expected: tuple[Expected, ...]
    profiles: tuple[Profile, ...]
    unfit: str | None = None
    note: str | None = None
    exponential: bool = False
    """Whether the reference takes exponentials."""


@dataclass(frozen=True)
class Measured:
    """Rules that depend on the task alone."""

    tolerance: Tolerance
    precision: Precision

    def rule(self, dtype: torch.dtype) -> Rule | None:
        """The rule for an output of `dtype`; `None` where it must be exact."""
        if not (dtype.is_floating_point or dtype.is_complex):
            return None
        return Rule(self.tolerance, self.precision, _real(dtype))


def truth_of(
    measured: Measured, runner: Runner, plan: Plan, leaves: Tensors, seed: int, secret: int
) -> Truth:
    """Run the reference at both precisions, shake it, and measure. `secret` seeds the shaking.

    What the reference raises at its declared precision is raised. Where only the float64 run
    fails, the declared precision has to stand in for the truth, and `note` says so.
    """
    recording, precision, note = Recording(), measured.precision, None
    with Terms() as counting:
        declared = [runner.declared(plan, leaves, seed, recording)]
    if counting.attention and EPS[precision] > EPS["fp32"] and not recording.draws:
        declared.append(runner.unfused(plan, leaves, seed))
    try:
        truth = runner.exact(plan, leaves, seed, recording)
        shaken = shake(runner, plan, leaves, seed, recording, truth, precision, secret)
    except TaskError as failed:
        note = f"expected values are those of the declared precision: in float64, {failed}"
        truth = [raised(output) for output in declared[0]]
        shaken = shake_declared(runner, plan, leaves, seed, precision, secret)
    made = [
        _expected(
            measured, place, plan, [d[place] for d in declared], wanted, shaken, counting.most
        )
        for place, wanted in enumerate(truth)
    ]
    expected = tuple(one for one, _ in made)
    profiles = tuple(profile for _, profile in made)
    return Truth(expected, profiles, _unfit(expected, profiles), note, counting.exponential)


def declared_of(
    measured: Measured,
    runner: Runner,
    plan: Plan,
    leaves: Tensors,
    seed: int,
    profiles: Sequence[Profile],
) -> tuple[Expected, ...]:
    """Expected values at the declared precision only, held to what `profiles` found elsewhere."""
    outputs = runner.declared(plan, leaves, seed)
    result = []
    for spec, output, profile in zip(plan.outputs, outputs, profiles, strict=True):
        rule, flat = measured.rule(output.dtype), flattened(output)
        rows = _rows(spec.spec.shape, output)
        if rule is None:
            yardstick = exact_expected_of(profile, output.numel())
        else:
            yardstick = expected_of(rule, rows, flat, profile)
        result.append(
            Expected(spec.label, spec.spec, rule, flat, None, yardstick, rows, output.is_complex())
        )
    return tuple(result)


def decides(truths: Sequence[Truth]) -> bool:
    """Whether draws refute anything: false where zeros, or one constant, would pass on all."""
    return any(
        _decided([truth.expected[place] for truth in truths], one)
        for truth in truths[:1]
        for place, one in enumerate(truth.profiles)
    )


def _decided(draws: Sequence[Expected], profile: Profile) -> bool:
    if draws[0].rule is not None:
        return profile.flagged < NOTHING_LEFT and profile.nine_tenths < 1.0
    low, high = -math.inf, math.inf
    for one in draws:
        flags = one.yardstick.flags
        if flags is None or flags.index.numel() < NOTHING_LEFT * one.want.numel():
            return True
        want = one.want[flags.index].double()
        low = max(low, float((want - flags.slack).max()))
        high = min(high, float((want + flags.slack).min()))
    return low > high


def nonfinite_share(expected: Expected) -> float:
    """Share of an output whose truth is infinite or NaN, or too large for its type."""
    if expected.rule is None or not expected.want.numel():
        return 0.0
    most = torch.finfo(expected.rule.dtype).max
    return float((~(expected.want.abs() <= most)).double().mean())


def _expected(
    measured: Measured,
    place: int,
    plan: Plan,
    ways: list[torch.Tensor],
    truth: torch.Tensor,
    shaken: Shaken,
    terms: int,
) -> tuple[Expected, Profile]:
    spec, declared = plan.outputs[place], ways[0]
    rule = measured.rule(declared.dtype)
    rows = _rows(spec.spec.shape, declared)
    yardstick: Yardstick
    if rule is None:
        flags = ambiguous(truth, [*ways, *(run[place] for run in shaken.exact)])
        yardstick = exact_yardstick(flags)
        profile = exact_profile(flags, declared.numel())
    else:
        moved = [run[place] for run in shaken.smooth]
        seen = evidence(truth, ways, moved, shaken.times, terms)
        yardstick, profile = measure(rule, rows, seen)
    expected = Expected(
        spec.label,
        spec.spec,
        rule,
        flattened(truth),
        flattened(declared),
        yardstick,
        rows,
        declared.is_complex(),
    )
    return expected, profile


def _unfit(expected: Sequence[Expected], profiles: Sequence[Profile]) -> str | None:
    """Why the reference cannot judge here; a sentence without a subject's name."""
    for one, profile in zip(expected, profiles, strict=True):
        if profile.flagged > MOST_FLAGGED:
            return f"rounding alone decides {profile.flagged:.0%} of {one.label}"
        if one.rule is None:
            continue
        if profile.own > max(MOST_OWN, MOST_OWN_UNITS * one.rule.unit):
            return f"the reference itself is {profile.own:.1%} off its float64 truth in {one.label}"
        if profile.nine_tenths > MOST_ALLOWED:
            return f"{one.label} moves by {profile.nine_tenths:.0%} of its scale when rounded"
        if one.declared is not None and _overflows(one):
            return f"the reference overflows in {one.label} where its float64 truth does not"
    return None


def _overflows(one: Expected) -> bool:
    assert one.declared is not None and one.rule is not None
    most = torch.finfo(one.rule.dtype).max
    return bool((~one.declared.isfinite() & (one.want.abs() <= most)).any())


def _rows(shape: tuple[int, ...], output: torch.Tensor) -> Rows:
    return Rows.of((*shape, 2) if output.is_complex() else shape)


def _real(dtype: torch.dtype) -> torch.dtype:
    return dtype.to_real() if dtype.is_complex else dtype
