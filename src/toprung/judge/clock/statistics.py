"""What samples of time can and cannot say.

Samples of one process are correlated, and processes differ from one another by as much as samples
do: memory is laid out elsewhere, another core is used, a neighbour wakes. So a process is one
observation, its median, and two things are compared over several processes a side, run in ABBA order
(`abba`) so that a machine that grows slower favours neither.

`paired_speedup` fits log time = side + a straight drift over the order of the processes by least
squares and takes Student's interval for the side, with 2n - 3 degrees of freedom for n processes a
side. It was chosen by simulation (`benchmarks/clock_statistics.py`) among paired t, pooled t, Welch,
rank sums and bootstraps over processes. With 4 to 6 processes a side, effects of the process as
large as the noise within it (normal, skewed, two-valued, heavy-tailed) and a machine that is quiet,
drifts, steps, wanders or is disturbed for a while, it says "faster" of equal things in at most 4% of
comparisons at a nominal 95% (bootstraps of means over processes: up to 10%; within one process: 10
to 40%), and it finds differences of 5% and 10% at least as often as the tests that keep their level,
except in short disturbances, where pairs do better.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from toprung.errors import HarnessError
from toprung.model.measurement import Speedup

Side = Literal["baseline", "candidate"]

MOST_SAMPLES = 31
FEWEST_SAMPLES = 11
SAMPLING_US = 150_000.0
"""Time of the reference that one process's samples may take together."""


def sample_count(reference_us: float) -> int:
    """How many timed calls a process makes: as many as fit `SAMPLING_US` at the reference's time.

    Odd, so that the median is a sample, and between 11 and 31: 31 up to 4.8 ms a call, 11 from 14 ms.
    Nothing that the candidate does can change it.
    """
    if not reference_us > 0:
        return MOST_SAMPLES
    fitting = int(min(SAMPLING_US / reference_us, MOST_SAMPLES))
    return min(max(fitting | 1, FEWEST_SAMPLES), MOST_SAMPLES)


def abba(pairs: int) -> list[Side]:
    """The order in which processes of two sides take turns: A B B A A B B A ...; `2 * pairs` long."""
    there: list[Side] = ["baseline", "candidate"]
    return [side for i in range(pairs) for side in (there if i % 2 == 0 else there[::-1])]


def median_interval(
    samples_us: Sequence[float], resolution_us: float = 0.0, confidence: float = 0.95
) -> tuple[float, float, float]:
    """The median and an interval for it, in microseconds: (median, low, high).

    The interval lies between order statistics, so no distribution is assumed (David and Nagaraja,
    Order Statistics, section 7.1): its coverage is at least `confidence`, or as near as the fewer
    than six samples of the whole range allow. It is widened by the clock's resolution on both sides.
    """
    if not samples_us:
        raise HarnessError("no samples to take a median of")
    ordered = sorted(samples_us)
    n = len(ordered)
    outside, below = 0.0, 0
    # The k-th smallest and k-th largest leave out 2 P(B < k) for B binomial(n, 1/2).
    while below < (n - 1) // 2:
        outside += math.comb(n, below) / 2**n
        if 2 * outside > 1 - confidence:
            break
        below += 1
    k = max(below - 1, 0)
    low, high = ordered[k] - resolution_us, ordered[n - 1 - k] + resolution_us
    return statistics.median(ordered), max(low, 0.0), high


def paired_speedup(
    baseline: Sequence[Sequence[float]],
    candidate: Sequence[Sequence[float]],
    resolution_us: float = 0.0,
    confidence: float = 0.95,
    *,
    together: bool = False,
) -> Speedup:
    """Baseline time over candidate time, from samples (us) of several processes a side.

    `baseline[i]` and `candidate[i]` are the samples of the i-th process of each side. They ran one
    after the other in the order of `abba`; or `together`, both alive and their calls taking turns, so
    that they share whatever the machine did meanwhile. Then Student's interval is taken over the
    differences within pairs, with n - 1 degrees of freedom. The interval is widened by what the
    clock's resolution may hide on both sides. Raises `HarnessError` for fewer than two processes a
    side, or unequally many.
    """
    pairs = len(baseline)
    if pairs != len(candidate) or pairs < 2:
        raise HarnessError(
            f"a speed-up needs at least two processes a side, as many on both: "
            f"{pairs} and {len(candidate)} given"
        )
    before = [_median_of(samples, resolution_us) for samples in baseline]
    after = [_median_of(samples, resolution_us) for samples in candidate]
    effect, error = (_mean_difference if together else _side_effect)(before, after)
    reach = _student(confidence, pairs - 1 if together else 2 * pairs - 3) * error
    hidden = 1 + resolution_us / statistics.median(before)
    hidden *= 1 + resolution_us / statistics.median(after)
    return Speedup(
        ratio=math.exp(effect),
        ci=(math.exp(effect - reach) / hidden, math.exp(effect + reach) * hidden),
    )


def _median_of(samples: Sequence[float], resolution_us: float) -> float:
    if not samples:
        raise HarnessError("a process without samples cannot be compared")
    median = max(statistics.median(samples), resolution_us)
    if median <= 0:
        raise HarnessError("a process took no time at all by a clock without resolution")
    return median


def _side_effect(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Difference of the logarithms of both sides, and its standard error, drift taken out.

    Least squares of y = mean + effect * side + drift * position, with side = 1/2 and -1/2 and
    position counted from the middle, so that both are orthogonal to the mean.
    """
    sides = abba(len(before))
    turns = {"baseline": iter(before), "candidate": iter(after)}
    y = [math.log(next(turns[side])) for side in sides]
    n = len(y)
    side = [0.5 if s == "baseline" else -0.5 for s in sides]
    position = [i - (n - 1) / 2 for i in range(n)]
    mean = sum(y) / n
    ss, sp, pp = _dot(side, side), _dot(side, position), _dot(position, position)
    sy, py = _dot(side, y), _dot(position, y)
    determinant = ss * pp - sp * sp
    effect = (pp * sy - sp * py) / determinant
    drift = (ss * py - sp * sy) / determinant
    left = [v - mean - effect * s - drift * p for v, s, p in zip(y, side, position, strict=True)]
    variance = _dot(left, left) / (n - 3)
    return effect, math.sqrt(variance * pp / determinant)


def _mean_difference(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Mean difference of the logarithms within pairs, and its standard error."""
    differences = [math.log(b / a) for b, a in zip(before, after, strict=True)]
    return statistics.fmean(differences), statistics.stdev(differences) / math.sqrt(
        len(differences)
    )


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _student(confidence: float, freedom: int) -> float:
    """The two-sided quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + confidence / 2))


def geomean(values: Sequence[float]) -> float:
    """Geometric mean of positive numbers; raises `HarnessError` on none, or on one that is not."""
    if not values or min(values) <= 0:
        raise HarnessError(f"no geometric mean of {list(values)}")
    return math.exp(sum(map(math.log, values)) / len(values))


def drift(samples_us: Sequence[float], significance: float = 0.01) -> float | None:
    """How much slower the last call is than the first, as a share of the median; `None` if not.

    The trend must be significant by Mann and Kendall's test; its size is Sen's median slope times
    the number of steps. Negative: the calls grow faster. Fewer than eight samples show nothing.
    """
    n = len(samples_us)
    if n < 8:
        return None
    rises = [(samples_us[j] - samples_us[i], j - i) for i in range(n) for j in range(i + 1, n)]
    score = sum((rise > 0) - (rise < 0) for rise, _ in rises)
    ties = [samples_us.count(v) for v in set(samples_us)]
    variance = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    if variance <= 0:
        return None
    z = (abs(score) - 1) / math.sqrt(variance)
    if z < statistics.NormalDist().inv_cdf(1 - significance / 2):
        return None
    slope = statistics.median(rise / steps for rise, steps in rises)
    median = statistics.median(samples_us)
    return slope * (n - 1) / median if median > 0 else None


def stalls(samples_us: Sequence[float]) -> tuple[int, ...]:
    """Positions of samples that something interrupted: far out, and half as long again as usual.

    Far out is beyond eight standard deviations, estimated from the median absolute deviation, which
    half the samples cannot move.
    """
    if not samples_us:
        return ()
    median = statistics.median(samples_us)
    spread = 1.4826 * statistics.median(abs(s - median) for s in samples_us)
    limit = max(1.5 * median, median + 8 * spread)
    return tuple(i for i, sample in enumerate(samples_us) if sample > limit)
