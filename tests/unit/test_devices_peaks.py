"""The table of data-sheet peaks: complete, dense, consistent with itself, and its reader."""

from __future__ import annotations

import pytest

from toprung.devices.peaks import peaks, peaks_of, read_peaks
from toprung.errors import HarnessError
from toprung.model.device import Peaks

pytestmark = pytest.mark.unit

EACH = pytest.mark.parametrize("entry", peaks(), ids=lambda entry: entry.product)

# Operations per clock and unit (multiply-add is two): vector from the number of lanes.
LANES = {
    "cuda:sm_80": 64,
    "cuda:sm_89": 128,
    "cuda:sm_90a": 128,
    "cuda:sm_100a": 128,
    "cuda:sm_120a": 128,
    "hip:gfx942": 128,
}


def test_the_devices_that_must_be_there_are_there() -> None:
    products = " / ".join(entry.product for entry in peaks())
    for name in (
        "A100 SXM4",
        "A100 PCIe",
        "H100 SXM5",
        "H100 PCIe",
        "H200",
        "B200",
        "L40S",
        "RTX 4090",
        "RTX 5090",
        "MI300X",
    ):
        assert name in products


@EACH
def test_every_entry_names_its_document(entry: Peaks) -> None:
    assert "data sheet" in entry.source or "white paper" in entry.source


@EACH
def test_fp32_is_what_the_units_can_do_at_boost_clock(entry: Peaks) -> None:
    # Catches a wrong clock, a wrong number of units and a rate with a slipped digit.
    lanes = LANES[entry.target]
    expected = entry.units * lanes * 2 * entry.boost_clock_mhz * 1e6
    assert entry.vector_flops_per_s["fp32"] == pytest.approx(expected, rel=0.01)


@EACH
def test_rates_double_as_types_halve_and_none_is_sparse(entry: Peaks) -> None:
    rates = entry.matrix_flops_per_s
    assert rates["fp16"] == rates["bf16"]
    assert rates["fp16"] / rates["tf32"] == pytest.approx(2, rel=0.03)
    if "fp8" in rates:
        assert rates["fp8"] / rates["fp16"] == pytest.approx(2, rel=0.03)
    # 4:2 sparsity doubles; the fastest dense type is eight-bit, at most four times tf32 twice over.
    assert max(rates.values()) <= 8.1 * rates["tf32"]
    assert rates["tf32"] <= 16 * entry.vector_flops_per_s["fp32"]


@EACH
def test_balance_of_arithmetic_and_memory_is_of_this_world(entry: Peaks) -> None:
    assert 0.5e12 < entry.memory_bytes_per_s < 10e12
    assert 20e9 < entry.memory_bytes < 300e9
    balance = entry.matrix_flops_per_s["fp16"] / entry.memory_bytes_per_s
    assert 100 < balance < 500
    if entry.l2_bytes:
        assert 30 << 20 <= entry.l2_bytes <= 130 << 20


def test_one_rate_per_precision() -> None:
    h100 = peaks_of("NVIDIA H100 80GB HBM3")
    assert h100 is not None
    assert h100.flops_per_s("fp32") == 66.9e12
    assert h100.flops_per_s("fp64") == 66.9e12  # the tensor cores' rate
    assert h100.flops_per_s("fp8_e4m3") == h100.flops_per_s("fp8_e5m2") == 1978.9e12
    a100 = peaks_of("NVIDIA A100-SXM4-80GB")
    assert a100 is not None and a100.flops_per_s("fp8_e4m3") is None


def test_names_must_agree_in_full() -> None:
    assert peaks_of("nvidia h200 ") is not None
    assert peaks_of("NVIDIA H200 NVL") is None
    assert peaks_of("H100") is None


ENTRY = """
[[device]]
product = "X"
names = ["x"]
target = "cuda:sm_90a"
source = "a data sheet"
vector_flops_per_s = { fp32 = 1e12 }
matrix_flops_per_s = { fp16 = 2e12 }
memory_bytes_per_s = 1e12
memory_bytes = 1_000_000
units = 10
boost_clock_mhz = 1000
"""


def test_a_well_formed_entry_is_read() -> None:
    assert read_peaks(ENTRY)[0].product == "X"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("source = ", "sauce = ", "malformed"),
        ('source = "a data sheet"', 'source = ""', "malformed"),
        ("fp16 = 2e12", "fp17 = 2e12", "malformed"),
        ("memory_bytes_per_s = 1e12", "memory_bytes_per_s = -1", "malformed"),
        ("units = 10", 'units = "many"', "malformed"),
        ("[[device]]", "[[device", "malformed"),
    ],
)
def test_a_malformed_table_is_refused(old: str, new: str, complaint: str) -> None:
    with pytest.raises(HarnessError, match=complaint):
        read_peaks(ENTRY.replace(old, new))


def test_a_name_claimed_twice_is_refused() -> None:
    with pytest.raises(HarnessError, match="named x"):
        read_peaks(ENTRY + ENTRY.replace('"x"', '"X"'))
