"""How often each way of comparing two sides says "faster", in simulated A/A and A/B comparisons.

    python benchmarks/clock_statistics.py [--trials 1000] [--seed 1]

Log times of processes in ABBA order are drawn with an effect of the process, noise within it, and a
disturbance of the machine. A column is a method; its three figures are the percentages of "faster"
(the interval of the ratio lies above 1, nominal 95%) for a true ratio of 1.00, 1.05 and 1.10. A perfect
method shows 2.5 in the first place.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from toprung.judge.clock.statistics import abba, paired_speedup

RATIOS = (1.0, 1.05, 1.1)
WITHIN = 0.02
PROCESS = 0.02
SAMPLES = 31
RESAMPLINGS = 400

Method = Callable[[np.ndarray, np.ndarray, np.random.Generator], bool]


def process_effects(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Effects with a spread of about `PROCESS`."""
    return (
        PROCESS
        * {
            "normal": lambda: rng.normal(0, 1, n),
            "skewed": lambda: rng.exponential(1, n),
            "two-valued": lambda: 2.2 * (rng.random(n) < 0.3),
            "heavy-tailed": lambda: rng.standard_t(3, n) / np.sqrt(3),
        }[kind]()
    )


def disturbance(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """What the machine does meanwhile."""
    place = np.arange(n)
    start = rng.integers(1, n)
    return {
        "none": lambda: np.zeros(n),
        "linear": lambda: 0.1 * place / n,
        "step": lambda: 0.1 * (place >= start),
        "walk": lambda: np.cumsum(rng.normal(0, PROCESS, n)),
        "pulse": lambda: 0.1 * ((place >= start) & (place < start + 3)),
    }[kind]()


def draw(
    pairs: int, effects: str, ambient: str, ratio: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Samples of both sides, (process, sample), in microseconds around 100."""
    sides = np.array(abba(pairs))
    log_time = process_effects(effects, len(sides), rng) + disturbance(ambient, len(sides), rng)
    log_time = log_time + np.where(sides == "baseline", np.log(ratio), 0)
    samples = 100 * np.exp(log_time[:, None] + rng.normal(0, WITHIN, (len(sides), SAMPLES)))
    return samples[sides == "baseline"], samples[sides == "candidate"]


def ours(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> bool:
    """`paired_speedup`."""
    return paired_speedup(a.tolist(), b.tolist()).faster


def paired_t(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> bool:
    """Student's t on differences of pairs of processes."""
    d = np.log(np.median(a, 1) / np.median(b, 1))
    return bool(d.mean() > stats.t.ppf(0.975, len(d) - 1) * d.std(ddof=1) / np.sqrt(len(d)))


def welch(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> bool:
    """Welch's t on medians of processes."""
    test: Any = stats.ttest_ind(np.log(np.median(a, 1)), np.log(np.median(b, 1)), equal_var=False)
    return bool(test.statistic > 0 and test.pvalue < 0.05)


def rank_sum(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> bool:
    """Mann and Whitney's test on medians of processes, exact."""
    _, p = stats.mannwhitneyu(
        np.median(a, 1), np.median(b, 1), alternative="greater", method="exact"
    )
    return bool(p <= 0.025)


def process_bootstrap(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> bool:
    """Means of resampled processes."""
    a, b = np.log(np.median(a, 1)), np.log(np.median(b, 1))
    picks = rng.integers(0, len(a), (2, RESAMPLINGS, len(a)))
    return bool(np.quantile(a[picks[0]].mean(1) - b[picks[1]].mean(1), 0.025) > 0)


def sample_bootstrap(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> bool:
    """Medians of resampled samples of the first process a side: what a single process would say."""
    picks = rng.integers(0, SAMPLES, (2, RESAMPLINGS, SAMPLES))
    medians = np.median(a[0][picks[0]], 1) - np.median(b[0][picks[1]], 1)
    return bool(np.quantile(medians, 0.025) > 0)


METHODS: dict[str, Method] = {
    "ours": ours,
    "paired t": paired_t,
    "Welch": welch,
    "rank sum": rank_sum,
    "bootstrap": process_bootstrap,
    "one process": sample_bootstrap,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    print(f"{'processes, effects, machine':36s}" + "".join(f"{name:>20s}" for name in METHODS))
    for pairs in (4, 6):
        for effects in ("normal", "skewed", "two-valued", "heavy-tailed"):
            for ambient in ("none", "linear", "step", "walk", "pulse"):
                shares = np.zeros((len(METHODS), len(RATIOS)))
                for _ in range(options.trials):
                    for column, ratio in enumerate(RATIOS):
                        a, b = draw(pairs, effects, ambient, ratio, rng)
                        for row, method in enumerate(METHODS.values()):
                            shares[row, column] += method(a, b, rng)
                figures = 100 * shares / options.trials
                cells = "".join(
                    f"{' '.join(f'{share:5.1f}' for share in row):>20s}" for row in figures
                )
                print(f"{f'{pairs}, {effects}, {ambient}':36s}{cells}", flush=True)


if __name__ == "__main__":
    main()
