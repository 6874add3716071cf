"""What is said of samples: intervals, speed-ups, drift, stalls, and how many samples there are."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprung.errors import HarnessError
from toprung.judge.clock.statistics import (
    FEWEST_SAMPLES,
    MOST_SAMPLES,
    SAMPLING_US,
    abba,
    drift,
    geomean,
    median_interval,
    paired_speedup,
    sample_count,
    stalls,
)

pytestmark = pytest.mark.unit

times = st.floats(min_value=0.01, max_value=1e7)


# --- the median and its interval


@given(st.lists(times, min_size=1, max_size=80), st.floats(min_value=0, max_value=10))
def test_the_interval_holds_the_median_and_the_resolution(samples, resolution) -> None:
    median, low, high = median_interval(samples, resolution)
    assert median == statistics.median(samples)
    assert 0 <= low <= max(median - resolution, 0) and high >= median + resolution


@pytest.mark.parametrize(
    # The ranks of David and Nagaraja, table 7.1 and its rule: smallest 2 P(B < k) <= 0.05.
    ("n", "rank"),
    [(5, 1), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (31, 10), (61, 23)],
)
def test_the_interval_lies_between_the_right_order_statistics(n: int, rank: int) -> None:
    assert median_interval(list(range(1, n + 1)))[1:] == (rank, n + 1 - rank)


@pytest.mark.parametrize("n", [11, 30, 61])
def test_the_interval_covers_the_true_median_of_a_skewed_distribution(n: int) -> None:
    rng = np.random.default_rng(3)
    draws = rng.exponential(1, (2000, n))
    intervals = (median_interval(draw.tolist()) for draw in draws)
    covered = sum(low <= math.log(2) <= high for _, low, high in intervals)
    assert 0.94 < covered / 2000 < 0.985


def test_more_confidence_is_wider() -> None:
    samples = list(range(1, 32))
    _, low, high = median_interval(samples, confidence=0.99)
    assert low < median_interval(samples)[1] and high > median_interval(samples)[2]


def test_no_samples_have_no_median() -> None:
    with pytest.raises(HarnessError, match="no samples"):
        median_interval([])


# --- speed-ups


def processes(
    rng: np.random.Generator,
    pairs: int,
    *,
    ratio: float = 1.0,
    effect: float = 0.02,
    trend: float = 0.0,
) -> tuple[list[list[float]], list[list[float]]]:
    """Samples of both sides in ABBA order: process effects as large as the noise within (2%)."""
    sides: dict[str, list[list[float]]] = {"baseline": [], "candidate": []}
    for position, side in enumerate(abba(pairs)):
        log_time = rng.normal(0, effect) + trend * position / (2 * pairs)
        log_time += math.log(ratio) if side == "baseline" else 0.0
        sides[side].append((100 * np.exp(log_time + rng.normal(0, 0.02, 21))).tolist())
    return sides["baseline"], sides["candidate"]


def share_faster(pairs: int, trials: int, **how: float) -> float:
    rng = np.random.default_rng(5)
    verdicts = [paired_speedup(*processes(rng, pairs, **how)).faster for _ in range(trials)]
    return sum(verdicts) / trials


@pytest.mark.parametrize("pairs", [4, 6])
@pytest.mark.parametrize("trend", [0.0, 0.2])
def test_equal_things_are_seldom_called_faster(pairs: int, trend: float) -> None:
    assert share_faster(pairs, 800, trend=trend) <= 0.05


def test_one_process_s_samples_would_deceive() -> None:
    # Why processes are the unit: the same interval over pooled samples of one process a side.
    rng = np.random.default_rng(6)
    deceived = 0
    for _ in range(300):
        before, after = processes(rng, 2)
        deceived += median_interval(before[0])[1] > median_interval(after[0])[2]
    assert deceived / 300 > 0.1


@pytest.mark.parametrize(
    ("pairs", "ratio", "at_least"),
    [(4, 1.05, 0.65), (4, 1.1, 0.97), (6, 1.05, 0.88), (6, 1.1, 0.99)],
)
def test_real_differences_are_found(pairs: int, ratio: float, at_least: float) -> None:
    assert share_faster(pairs, 300, ratio=ratio) >= at_least


def test_a_slowing_machine_favours_neither_side() -> None:
    before, after = processes(np.random.default_rng(0), 4, effect=0.0, trend=0.5)
    speedup = paired_speedup(before, after)
    assert speedup.ci[0] < 1 < speedup.ci[1] and abs(speedup.ratio - 1) < 0.02


def pairs_together(
    rng: np.random.Generator, pairs: int, ratio: float = 1.0
) -> tuple[list[list[float]], list[list[float]]]:
    """Both processes of a pair share what the machine does (5%), beside effects of their own (2%)."""
    shared = rng.normal(0, 0.05, (pairs, 1))
    sides = (
        100
        * factor
        * np.exp(shared + rng.normal(0, 0.02, (pairs, 1)) + rng.normal(0, 0.02, (pairs, 9)))
        for factor in (ratio, 1.0)
    )
    before, after = (side.tolist() for side in sides)
    return before, after


def test_pairs_that_ran_together_are_compared_within_pairs() -> None:
    rng = np.random.default_rng(11)
    equal = [pairs_together(rng, 6) for _ in range(800)]
    assert sum(paired_speedup(*p, together=True).faster for p in equal) / 800 <= 0.05
    faster = [pairs_together(rng, 6, 1.05) for _ in range(300)]
    found = {
        t: sum(paired_speedup(*p, together=t).faster for p in faster) / 300 for t in (True, False)
    }
    assert found[True] > 0.8 and found[False] < 0.5


def test_the_interval_covers_the_true_ratio() -> None:
    rng = np.random.default_rng(7)
    speedups = [paired_speedup(*processes(rng, 5, ratio=2.0)) for _ in range(500)]
    covered = sum(s.ci[0] <= 2.0 <= s.ci[1] for s in speedups)
    assert 0.92 < covered / 500 < 0.98


def test_the_ratio_of_exact_times_is_exact() -> None:
    speedup = paired_speedup([[30.0] * 3] * 4, [[10.0] * 3] * 4)
    assert speedup.ratio == pytest.approx(3.0) and speedup.ci == pytest.approx((3.0, 3.0))


def test_differences_below_the_resolution_are_not_faster() -> None:
    baseline, candidate = [[1.05, 1.05]] * 4, [[1.0, 1.0]] * 4
    assert paired_speedup(baseline, candidate).faster
    speedup = paired_speedup(baseline, candidate, resolution_us=0.1)
    assert not speedup.faster and speedup.ci[0] < 1 < speedup.ci[1]


def test_times_below_the_resolution_are_taken_as_the_resolution() -> None:
    assert paired_speedup([[10.0]] * 2, [[0.0]] * 2, resolution_us=1.0).ratio == pytest.approx(10.0)


@given(st.sampled_from([2, 4, 6]), st.floats(0.2, 5.0), st.integers(0, 1000))
def test_swapping_sides_inverts_the_ratio(pairs: int, ratio: float, seed: int) -> None:
    before, after = processes(np.random.default_rng(seed), pairs, ratio=ratio)
    there, back = paired_speedup(before, after, 0.1), paired_speedup(after, before, 0.1)
    # Over whole rounds of A B B A, neither side is later than the other.
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.ci[0] <= there.ratio <= there.ci[1]


@pytest.mark.parametrize(
    ("baseline", "candidate", "message"),
    [
        ([[1.0]], [[1.0]], "two processes"),
        ([[1.0], [1.0]], [[1.0]], "two processes"),
        ([[1.0], []], [[1.0], [1.0]], "without samples"),
        ([[0.0], [0.0]], [[1.0], [1.0]], "no time at all"),
    ],
)
def test_what_cannot_be_compared_is_refused(baseline, candidate, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        paired_speedup(baseline, candidate)


def test_processes_take_turns() -> None:
    assert "".join(side[0] for side in abba(4)) == "bccbbccb"


# --- how many samples


@given(times, times)
def test_slower_references_get_no_more_samples(a: float, b: float) -> None:
    fast, slow = sorted((a, b))
    assert sample_count(fast) >= sample_count(slow)


@given(times)
def test_sample_counts_are_odd_and_bounded(reference: float) -> None:
    count = sample_count(reference)
    assert count % 2 == 1 and FEWEST_SAMPLES <= count <= MOST_SAMPLES
    assert count == FEWEST_SAMPLES or (count - 1) * reference <= SAMPLING_US


def test_the_rule_of_sample_counts() -> None:
    assert [sample_count(t) for t in (1.0, 2_400, 5_000, 14_000, 1e6)] == [31, 31, 31, 11, 11]
    assert sample_count(0.0) == MOST_SAMPLES


# --- drift and stalls


def test_a_trend_is_measured() -> None:
    rng = np.random.default_rng(8)
    slowing = [100 * (1 + 0.1 * i / 30) + rng.normal(0, 0.5) for i in range(31)]
    assert drift(slowing) == pytest.approx(0.1, abs=0.02)
    assert drift(slowing[::-1]) == pytest.approx(-0.1, abs=0.02)


def test_noise_is_seldom_a_trend() -> None:
    rng = np.random.default_rng(9)
    found = sum(drift(rng.normal(100, 5, 31).tolist()) is not None for _ in range(500))
    assert found <= 12  # 1% nominal


def test_one_outlier_is_no_trend_and_few_samples_show_none() -> None:
    assert drift([100.0] * 30 + [900.0]) is None
    assert drift([100.0] * 31) is None
    assert drift([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]) is None
    assert drift([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]) == pytest.approx(7 / 4.5)


def test_stalls_are_found_and_ordinary_noise_is_none() -> None:
    rng = np.random.default_rng(10)
    samples = rng.normal(100, 3, 41).tolist()
    assert stalls(samples) == ()
    samples[7], samples[30] = 400.0, 180.0
    assert stalls(samples) == (7, 30)
    assert stalls([10.0] * 9 + [14.0]) == ()  # far out, but not half as long again
    assert stalls([]) == ()


# --- means


def test_geometric_means() -> None:
    assert geomean([1.0, 4.0]) == pytest.approx(2.0)
    assert geomean([7.0]) == pytest.approx(7.0)
    for bad in ([], [1.0, 0.0], [-1.0]):
        with pytest.raises(HarnessError, match="no geometric mean"):
            geomean(bad)
