"""The rules themselves: what is allowed, what the presets say, what counts as equal."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_arithmetic import bf16, tf32
from oracle_bench import Bench, Kernel, source_of

from toprung.judge.oracle.comparison import position
from toprung.judge.oracle.metrics import Tally
from toprung.judge.oracle.rows import Rows
from toprung.judge.oracle.tolerance import EPS, Rule
from toprung.model.task import Task, Tolerance
from toprung.model.tensor import Precision

pytestmark = pytest.mark.unit

SCALE = source_of("return x * 3", "torch.randn(40, 60)", args="self, x")
MATMUL = source_of("return a @ b", "torch.randn(40, 200), torch.randn(200, 30)", args="self, a, b")


def bench(source: str, tolerance: Tolerance, precision: Precision | None = None) -> Bench:
    return Bench(Task(name="t", reference=source, tolerance=tolerance, precision=precision))


def test_the_floor_is_as_written_down() -> None:
    rule = Rule(Tolerance(), "fp32", torch.float32)
    unit = 2.0**-23
    assert rule.floor(1) == pytest.approx((1.5 + 16 + 0.5) * unit)
    assert rule.floor(10_000) == pytest.approx((1.5 + 16 + 50) * unit)
    assert rule.floor(10**12) == pytest.approx((1.5 + 16 + 512) * unit)
    assert rule.elementwise(1) == (5 * rule.floor(1), 5 * rule.floor(1))
    half = Rule(Tolerance(), "bf16", torch.bfloat16)
    assert half.floor(1) == pytest.approx(1.5 * 2**-7 + 16.5 * unit)
    double = Rule(Tolerance(), "fp64", torch.float64)
    assert double.floor(1) == pytest.approx(18 * 2.0**-52)


def test_a_coarser_precision_than_the_type_sets_the_unit() -> None:
    assert Rule(Tolerance(), "tf32", torch.float32).unit == EPS["tf32"]
    assert Rule(Tolerance(), "fp32", torch.bfloat16).unit == 2.0**-7
    assert Rule(Tolerance(), "bf16", torch.float32).unit == 2.0**-7


@pytest.mark.parametrize(("precision", "passes"), [("fp32", False), ("tf32", True)])
def test_tf32_arithmetic_is_refused_unless_the_task_allows_it(
    precision: Precision, passes: bool
) -> None:
    asked = bench(MATMUL, Tolerance(), precision)
    assert asked.opened.precision == precision
    assert (asked.climb(lambda a, b: tf32(a) @ tf32(b)) is None) is passes
    assert asked.climb(lambda a, b: bf16(a) @ bf16(b)) is not None


@pytest.mark.parametrize(
    ("tolerance", "factor", "passes"),
    [
        (Tolerance(), 1 + 1e-6, True),
        (Tolerance(), 1 + 1e-4, False),
        (Tolerance(rtol=1e-3), 1 + 1e-4, True),
        (Tolerance(rtol=1e-3, atol_scale=0.0), 1 + 9e-4, True),
        (Tolerance(rtol=1e-3, atol_scale=0.0), 1 + 2e-3, False),
        (Tolerance(atol_scale=1e-2), 1 + 1e-3, True),
        (Tolerance(rtol=1e-7, atol_scale=1e-7), 1 + 1e-6, False),
        (Tolerance(min_psnr=200.0), 1 + 1e-6, False),
        (Tolerance(rtol=1.0, min_psnr=60.0), 1 + 1e-2, False),
        (Tolerance(rtol=1.0, min_psnr=20.0), 1 + 1e-2, True),
    ],
)
def test_a_tasks_own_numbers(tolerance: Tolerance, factor: float, passes: bool) -> None:
    refusal = bench(SCALE, tolerance).climb(lambda x: x * 3 * factor, ("as_given",))
    assert (refusal is None) is passes, refusal


def test_a_cosine_below_the_minimum() -> None:
    asked = bench(SCALE, Tolerance(rtol=10.0, atol_scale=10.0, min_cosine=0.9))
    assert asked.climb(lambda x: x * 2, ("as_given",)) is None
    assert "cosine" in (asked.climb(lambda x: x.flip(0), ("as_given",)) or "")


@given(
    error=st.floats(1e-6, 1e-1),
    where=st.sampled_from(["relative", "absolute"]),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
)
@settings(max_examples=60, deadline=None)
def test_the_kernelbench_preset_is_allclose(error: float, where: str, dtype: torch.dtype) -> None:
    tolerance = 1e-4 if dtype == torch.float32 else 1e-2
    asked = kernelbench(str(dtype))
    inputs = asked.stage("as_given")[1]
    want = inputs[0] * 3
    got = (want * (1 + error) if where == "relative" else want + error).to(dtype)
    close = torch.allclose(want, got, atol=tolerance, rtol=tolerance)
    checked = asked.ask(lambda x: got, "as_given")
    assert checked is not None
    assert checked.ok is close
    assert (checked.metrics["kernelbench"] or 0.0) == pytest.approx(
        float(
            (
                (want.double() - got.double()).abs() / (tolerance + tolerance * got.double().abs())
            ).max()
        )
    )


BENCHES: dict[str, Bench] = {}


def kernelbench(dtype: str) -> Bench:
    if dtype not in BENCHES:
        source = source_of("return x * 3", f"torch.randn(40, 60).to({dtype})", args="self, x")
        BENCHES[dtype] = bench(source, Tolerance(preset="kernelbench"))
    return BENCHES[dtype]


def test_the_kernelbench_preset_asks_for_the_tasks_own_inputs_only() -> None:
    asked = kernelbench("torch.float32").asked()
    assert asked.pop("as_given") is None
    assert all("kernelbench" in (why or "") for why in asked.values())


def test_a_strict_verdict_says_what_kernelbench_would() -> None:
    checked = bench(MATMUL, Tolerance()).ask(lambda a, b: tf32(a) @ tf32(b), "as_given")
    assert checked is not None
    assert not checked.ok
    assert (checked.metrics["strict"] or 0) > 1
    assert (checked.metrics["kernelbench"] or 0) > 0


NONFINITE = source_of(
    "return 1 / (x.abs() - x.abs().amax(-1, keepdim=True)), x.log(), x * 1e38 * 5",
    "torch.randn(40, 60)",
    args="self, x",
)


def nonfinite(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return 1 / (x.abs() - x.abs().amax(-1, keepdim=True)), x.log(), x * 1e38 * 5


def replaced(index: int, change: Kernel) -> Kernel:
    def kernel(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = list(nonfinite(x))
        outputs[index] = change(outputs[index])
        return tuple(outputs)

    return kernel


def test_infinities_and_nan_are_equal_where_the_truth_has_the_same() -> None:
    asked = Bench(NONFINITE)
    assert asked.climb(nonfinite) is None


@pytest.mark.parametrize(
    "kernel",
    [
        replaced(0, lambda y: y.nan_to_num()),
        replaced(0, lambda y: torch.where(y.isinf(), math.nan, y)),
        replaced(0, lambda y: torch.where(y.isinf(), -y, y)),
        replaced(1, lambda y: y.nan_to_num(0.0)),
        replaced(1, lambda y: torch.full_like(y, math.nan)),
        replaced(2, lambda y: torch.where(y.isinf(), math.nan, y)),
    ],
)
def test_other_infinities_and_nan_are_refused(kernel: Kernel) -> None:
    checked = Bench(NONFINITE).ask(kernel, "as_given")
    assert checked is not None
    assert not checked.ok
    assert checked.nonfinite
    assert "finite" in (checked.why or "")


def test_the_largest_number_stands_for_no_infinity() -> None:
    checked = Bench(NONFINITE).ask(replaced(2, lambda y: y.clamp(-3.4e38, 3.4e38)), "as_given")
    assert checked is not None
    assert not checked.ok


def test_subnormal_results_may_be_flushed_to_zero() -> None:
    source = source_of("return x * 1e-41", "torch.randn(40, 60)", args="self, x")
    assert Bench(source).climb(torch.zeros_like, ("as_given",)) is None
    tiny = source_of("return x * 1e-30", "torch.randn(40, 60)", args="self, x")
    assert Bench(tiny).climb(torch.zeros_like) is not None


def test_booleans_are_true_whatever_byte_says_so() -> None:
    source = source_of("return x > 0", "torch.randn(40, 60)", args="self, x")
    asked = Bench(source)

    def odd(x: torch.Tensor) -> torch.Tensor:
        return ((x > 0).to(torch.uint8) * 2).view(torch.bool)

    assert asked.climb(odd) is None
    assert "booleans must be exact" in (asked.climb(lambda x: x > -1) or "")


def test_the_reason_says_where_how_far_and_what_is_allowed() -> None:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        out = x * 3
        out[7, 11] = 99.0
        return out

    checked = Bench(SCALE).ask(kernel, "as_given")
    assert checked is not None
    why = checked.why or ""
    for part in ("output 0", "1 elements", "[7, 11]", "got 99", "want ", "allowed"):
        assert part in why
    assert checked.mismatched == 1
    assert checked.total == 2400


def test_rows_are_runs_of_at_least_32_elements() -> None:
    assert Rows.of((5, 100)) == Rows(500, 100)
    assert Rows.of((5, 6, 7, 3)) == Rows(630, 126)
    assert Rows.of((1 << 20,)).length == 65536
    assert Rows.of(()) == Rows(1, 1)
    assert Rows.of((3,)) == Rows(3, 3)


@given(st.integers(0, 400_000), st.integers(1, 70_000))
def test_blocks_cover_every_element_and_row_once(numel: int, length: int) -> None:
    rows = Rows(numel, length)
    elements = [e for e, _ in rows.blocks()]
    parts = [p for _, p in rows.blocks()]
    assert sum(e.stop - e.start for e in elements) == numel
    assert [p for s in parts for p in range(s.start, s.stop)] == list(range(rows.count))
    assert all(a.stop == b.start for a, b in itertools.pairwise(elements))


def test_metrics_are_those_of_the_textbook() -> None:
    torch.manual_seed(0)
    want = torch.randn(500, dtype=torch.float64)
    got = want + 0.01 * torch.randn(500, dtype=torch.float64)
    tally = Tally()
    for part in (slice(0, 123), slice(123, 500)):
        tally.add(want[part], got[part], (got - want)[part].abs(), small=1e-12)
    metrics = tally.metrics(0.02)
    error = got - want
    expected = {
        "max_abs": error.abs().max(),
        "max_rel": (error / want).abs().max(),
        "mae": error.abs().mean(),
        "mse": error.square().mean(),
        "rmse": error.square().mean().sqrt(),
        "psnr": 20 * torch.log10(want.abs().max() / error.square().mean().sqrt()),
        "cosine": torch.nn.functional.cosine_similarity(want, got, dim=0),
        "reference_error": torch.tensor(0.02),
        "error_ratio": error.square().mean().sqrt() / 0.02,
    }
    assert metrics.keys() == expected.keys()
    for name, value in expected.items():
        assert metrics[name] == pytest.approx(float(value)), name


def test_figures_that_do_not_exist_are_none() -> None:
    tally = Tally()
    zero = torch.zeros(4, dtype=torch.float64)
    tally.add(zero, zero, zero, small=1e-12)
    metrics = tally.metrics(None)
    assert metrics["psnr"] is None
    assert metrics["error_ratio"] is None
    assert metrics["cosine"] == 1.0


def test_positions_are_indices() -> None:
    assert position(0, ()) == "[]"
    assert position(3 * 20 + 2 * 5 + 1, (4, 4, 5)) == "[3, 2, 1]"
