"""Geometric means over the open cases of a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from toprung.judge.clock.statistics import geomean
from toprung.model.measurement import Measurement, Speedup, Timing
from toprung.model.roofline import Limiter, Roofline


def mean_measurement(each: Sequence[Measurement]) -> Measurement | None:
    """One measurement for several; of one case, that case's own with its samples."""
    if len(each) < 2:
        return each[0] if each else None
    first = each[0]
    shared = set(first.baselines).intersection(*(m.baselines for m in each))
    compared = shared.intersection(*(m.speedup for m in each))
    speedup = {name: _speedup([m.speedup[name] for m in each]) for name in sorted(compared)}
    return Measurement(
        **_timing(each).model_dump(),
        busy_us=_mean([m.busy_us for m in each]),
        wall_us=_mean([m.wall_us for m in each]),
        resolution_us=max(m.resolution_us for m in each),
        clock=first.clock,
        cache=first.cache,
        confirmed=any(s.confirmed for s in speedup.values()),
        peak_bytes=max(m.peak_bytes for m in each),
        baselines={name: _timing([m.baselines[name] for m in each]) for name in sorted(shared)},
        speedup=speedup,
    )


def mean_roofline(each: Sequence[Roofline]) -> Roofline | None:
    """Bound and attained fraction as geometric means; work summed; the commonest limiter."""
    if len(each) < 2:
        return each[0] if each else None
    limiters: list[Limiter] = [roof.limiter for roof in each]
    return Roofline(
        flops=sum(roof.flops for roof in each),
        min_bytes=sum(roof.min_bytes for roof in each),
        bound_us=_mean([roof.bound_us for roof in each]),
        attained=_mean([roof.attained for roof in each]),
        limiter=Counter(limiters).most_common(1)[0][0],
    )


def _mean(values: Sequence[float]) -> float:
    """A zero anywhere makes the geometric mean zero."""
    return geomean(list(values)) if all(value > 0 for value in values) else 0.0


def _timing(each: Sequence[Timing]) -> Timing:
    return Timing(
        median_us=_mean([t.median_us for t in each]),
        ci_us=(_mean([t.ci_us[0] for t in each]), _mean([t.ci_us[1] for t in each])),
    )


def _speedup(each: Sequence[Speedup]) -> Speedup:
    return Speedup(
        ratio=_mean([s.ratio for s in each]),
        ci=(_mean([s.ci[0] for s in each]), _mean([s.ci[1] for s in each])),
        confirmed=all(s.confirmed for s in each),
    )
