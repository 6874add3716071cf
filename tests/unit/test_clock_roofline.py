"""The roofline's bound and limiter, the floor of what is possible, and ceilings as values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from toprung.devices.peaks import peaks_of
from toprung.judge.clock.roofline import FLOOR, floor_us, memory_us, roofline
from toprung.model.device import Ceilings, MemoryLevel
from toprung.model.roofline import Work

pytestmark = pytest.mark.unit

GIGA = 1e9


def level(name: str, capacity: int | None, *rates: float) -> MemoryLevel:
    read, write, copy, triad = (rate * GIGA for rate in rates)
    return MemoryLevel(
        name=name,
        capacity_bytes=capacity,
        read_bytes_per_s=read,
        write_bytes_per_s=write,
        copy_bytes_per_s=copy,
        triad_bytes_per_s=triad,
    )


CEILINGS = Ceilings(
    target="cpu:native",
    device="d",
    name="example",
    software="torch 0",
    levels=(
        level("L2", 2 << 20, 200, 200, 200, 200),
        level("LLC", 32 << 20, 100, 80, 90, 95),
        level("memory", None, 40, 20, 25, 30),
    ),
    cache_bytes=34 << 20,
    matrix_flops_per_s={"fp64": 100 * GIGA, "fp32": 200 * GIGA, "bf16": 800 * GIGA},
    vector_flops_per_s={"fp64": 50 * GIGA, "fp32": 100 * GIGA},
    launch_us=2.0,
)


def work(
    *, read: int = 0, written: int = 0, products: int = 0, others: int = 0, must: int = 0
) -> Work:
    return Work(
        flops=products + others,
        product_flops=products,
        min_bytes=read + written,
        written_bytes=written,
        must_bytes=must,
    )


# --- the bound


def test_streaming_is_bound_by_memory_at_the_measured_mix() -> None:
    found = roofline(work(read=10**9, written=10**9), CEILINGS, "fp32", 160_000)
    assert found.bound_us == pytest.approx(2e9 / 25e9 * 1e6)  # the copy's rate
    assert (found.limiter, found.attained) == ("memory", pytest.approx(0.5))


@pytest.mark.parametrize(
    ("read", "written", "rate"), [(3, 0, 40), (0, 3, 20), (3, 3, 25), (2, 1, 30), (1, 3, None)]
)
def test_rates_follow_the_share_that_is_written(
    read: int, written: int, rate: float | None
) -> None:
    total = (read + written) * 10**9
    seconds = CEILINGS.memory.seconds(read * 1e9, written * 1e9)
    if rate is None:  # share 3/4: halfway between the copy's and the write's time per byte
        rate = 2 / (1 / 25 + 1 / 20)
    assert seconds == pytest.approx(total / (rate * GIGA))


def test_products_are_bound_by_the_matrix_rate_and_the_rest_by_the_vector_rate() -> None:
    product = roofline(work(read=8, products=2 * 10**9), CEILINGS, "fp32", 20_000)
    assert (product.bound_us, product.limiter) == (pytest.approx(10_000), "compute")
    assert product.attained == pytest.approx(0.5)
    other = roofline(work(read=8, others=2 * 10**9), CEILINGS, "fp32", 20_000)
    assert other.bound_us == pytest.approx(20_000)
    # They may overlap: the longer one counts.
    both = work(read=8, products=2 * 10**9, others=10**9)
    assert roofline(both, CEILINGS, "fp32", 1).bound_us == pytest.approx(10_000)


def test_a_narrow_type_may_be_computed_in_a_wider_one_and_not_the_reverse() -> None:
    rates = {
        p: CEILINGS.matrix_rate(p) for p in ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8_e4m3")
    }
    assert rates == {
        "fp64": 100 * GIGA,
        "fp32": 200 * GIGA,
        "tf32": 200 * GIGA,
        "bf16": 800 * GIGA,
        "fp16": 200 * GIGA,
        "fp8_e4m3": 800 * GIGA,
    }
    assert CEILINGS.vector_rate("bf16") == 100 * GIGA


def test_without_a_vector_rate_the_product_s_stands_in() -> None:
    bare = CEILINGS.model_copy(update={"vector_flops_per_s": {}})
    assert bare.vector_rate("fp32") == 200 * GIGA


def test_a_tiny_task_is_bound_by_the_call() -> None:
    found = roofline(work(read=64, written=64, others=10), CEILINGS, "fp32", 4.0)
    assert (found.bound_us, found.limiter, found.attained) == (2.0, "latency", 0.5)


@pytest.mark.parametrize(
    ("nbytes", "rate"),
    [(1 << 20, 200), ((1 << 20) + 1, 100), (16 << 20, 100), ((16 << 20) + 1, 40)],
)
def test_a_warm_working_set_runs_from_the_cache_it_half_fills(nbytes: int, rate: float) -> None:
    assert memory_us(work(read=nbytes), CEILINGS) == pytest.approx(1e6 * nbytes / (rate * GIGA))
    assert memory_us(work(read=nbytes), CEILINGS, "cold") == pytest.approx(1e6 * nbytes / 40e9)


def test_no_time_attains_nothing() -> None:
    assert roofline(work(read=64), CEILINGS, "fp32", 0.0).attained == 0.0


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**15), st.floats(0.1, 1e9))
def test_more_work_never_lowers_the_bound(read, written, flops, measured) -> None:
    small = roofline(work(read=read, written=written, products=flops), CEILINGS, "fp32", measured)
    more = work(read=2 * read, written=2 * written, products=2 * flops)
    large = roofline(more, CEILINGS, "fp32", measured)
    assert large.bound_us >= small.bound_us >= CEILINGS.launch_us


# --- the floor


def test_the_floor_leaves_out_what_caches_may_hold() -> None:
    caches = 2 * CEILINGS.cache_bytes
    assert floor_us(work(read=caches, must=caches), CEILINGS) == 0.0
    must = caches + 10**9
    # Twice 40 GB/s is less than the 100 GB/s of the cache before the memory.
    expected = FLOOR * 1e6 * 10**9 / 100e9
    assert floor_us(work(read=must, must=must), CEILINGS) == pytest.approx(expected)


def test_the_floor_knows_no_flops_and_no_bytes_that_may_be_saved() -> None:
    assert floor_us(work(read=10**12, products=10**15), CEILINGS) == 0.0


def test_a_data_sheet_sets_the_rate_where_there_is_one() -> None:
    h200 = peaks_of("NVIDIA H200")
    must = 2 * CEILINGS.cache_bytes + 48 * 10**9
    expected = FLOOR * 48e9 / 4.8e12 * 1e6
    assert floor_us(work(read=must, must=must), CEILINGS, h200) == pytest.approx(expected)


def test_ceilings_from_a_busy_machine_refute_nothing() -> None:
    busy = CEILINGS.model_copy(update={"load": 3.0})
    assert floor_us(work(read=10**12, must=10**12), busy) == 0.0


@given(st.integers(0, 10**13), st.integers(0, 10**13))
def test_the_floor_is_far_below_the_bound(read: int, written: int) -> None:
    task = work(read=read, written=written, must=read + written)
    assert floor_us(task, CEILINGS) <= 0.9 * roofline(task, CEILINGS, "fp32", 1.0).bound_us


# --- ceilings as values


def test_taken_together_two_measurements_give_the_better_of_each() -> None:
    other = CEILINGS.model_copy(
        update={
            "levels": (*CEILINGS.levels[:2], level("memory", None, 10, 60, 10, 10)),
            "matrix_flops_per_s": {"fp32": 900 * GIGA},
            "launch_us": 1.5,
            "load": 4.0,
        }
    )
    for best in (CEILINGS.raised_by(other), other.raised_by(CEILINGS)):
        assert best.memory == level("memory", None, 40, 60, 25, 30)
        assert best.matrix_flops_per_s == {
            "fp64": 100 * GIGA,
            "fp32": 900 * GIGA,
            "bf16": 800 * GIGA,
        }
        assert (best.launch_us, best.load, best.was_quiet) == (1.5, 0.0, True)


def test_measurements_of_two_devices_do_not_mix() -> None:
    with pytest.raises(ValueError, match="different devices"):
        CEILINGS.raised_by(CEILINGS.model_copy(update={"device": "other"}))


@pytest.mark.parametrize(
    "levels",
    [
        (),
        (level("L2", 1, 1, 1, 1, 1),),
        (level("memory", None, 1, 1, 1, 1), level("L2", 1, 1, 1, 1, 1)),
        (
            level("LLC", 9, 1, 1, 1, 1),
            level("L2", 1, 1, 1, 1, 1),
            level("memory", None, 1, 1, 1, 1),
        ),
    ],
)
def test_levels_out_of_order_are_refused(levels: tuple) -> None:
    with pytest.raises(ValidationError):
        Ceilings.model_validate({**dict(CEILINGS), "levels": levels})


def test_ceilings_survive_json() -> None:
    assert Ceilings.from_json(CEILINGS.to_json()) == CEILINGS
    assert '"schema":"toprung.ceilings/1"' in CEILINGS.to_json()


@pytest.mark.parametrize(
    "parts",
    [
        {"flops": 1, "product_flops": 2, "min_bytes": 0},
        {"flops": 0, "min_bytes": 1, "must_bytes": 2},
        {"flops": 0, "min_bytes": 1, "written_bytes": 2},
    ],
)
def test_parts_of_work_lie_within_their_wholes(parts: dict) -> None:
    with pytest.raises(ValidationError):
        Work(**parts)
