"""The elementwise functions of the prelude, over all magnitudes of floats."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import toprung
from toprung.proposers.templates.choices import Choices
from toprung.proposers.templates.prelude import text_of

pytestmark = pytest.mark.cpu

# Name -> the same in float64, and the largest error in units in the last place.
FUNCTIONS: dict[str, tuple[Any, float]] = {
    "exponential": (torch.exp, 1.03),
    "exponential2": (torch.exp2, 1.1),
    "exponential_m1": (torch.expm1, 1.6),
    "logarithm": (torch.log, 0.9),
    "logarithm2": (torch.log2, 0.9),
    "logarithm10": (torch.log10, 0.9),
    "logarithm_1p": (torch.log1p, 1.5),
    "hyperbolic_tangent": (torch.tanh, 2.5),
    "sigmoid": (torch.sigmoid, 2.5),
    "error_function": (torch.erf, 1.1),
    "square_root": (torch.sqrt, 0.51),
}
ONE_PLUS_ERF = "one_plus_error_function"


@pytest.fixture(scope="module")
def functions() -> Any:
    """Each function as a loop over a tensor, vectorised as kernels are."""
    names = [*FUNCTIONS, ONE_PLUS_ERF]
    loops = "\n".join(
        f"void loop_{name}(TensorView x, TensorView y) {{\n"
        "  const float* in = data<const float>(x);\n"
        "  float* out = data<float>(y);\n"
        "#pragma omp simd\n"
        f"  for (int64_t i = 0; i < x.numel(); ++i) out[i] = {name}(in[i]);\n}}"
        for name in names
    )
    source = text_of(["data", *names]) + "\n" + loops
    return toprung.inline(source, [f"loop_{n}" for n in names], flags=Choices().flags())


def called(functions: Any, name: str, x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    getattr(functions, f"loop_{name}")(x, y)
    return y


@pytest.fixture(scope="module")
def samples() -> torch.Tensor:
    """Floats of every magnitude and both signs, and those around which reductions turn."""
    bits = torch.arange(-(2**31), 2**31, 1009, dtype=torch.int64).to(torch.int32)
    near = torch.linspace(-110, 110, 400_001)
    close = torch.linspace(-5, 5, 400_001)
    return torch.cat([bits.view(torch.float32), near, close])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_right_to_the_last_place(
    name: str, functions: Any, samples: torch.Tensor
) -> None:
    exact, most = FUNCTIONS[name]
    got, want = called(functions, name, samples), exact(samples.double())
    assert torch.equal(got.isnan(), want.isnan())
    rounded = want.float()
    infinite = rounded.isinf() | got.isinf()
    assert torch.equal(got[infinite], rounded[infinite])
    usual = rounded.isfinite() & (rounded.abs() >= torch.finfo(torch.float32).tiny)
    ulp = torch.exp2((torch.frexp(want[usual])[1] - 24).double())
    assert float(((got[usual].double() - want[usual]) / ulp).abs().max()) <= most
    tiny = rounded.isfinite() & ~usual
    if tiny.any():
        assert float((got[tiny].double() - want[tiny]).abs().max()) <= 2 * 2.0**-149


def test_one_plus_erf_keeps_its_lower_tail(functions: Any) -> None:
    x = torch.linspace(-4, 6, 100_001)
    got, want = called(functions, ONE_PLUS_ERF, x), torch.erfc(-x.double())
    relative = ((got.double() - want) / want).abs()
    assert float(relative.max()) < 3e-5
    assert float((got.double() - want).abs().max()) < 1.8e-7
    far = torch.tensor([-5.0, -30.0, -1e30, -math.inf, math.inf, math.nan])
    got = called(functions, ONE_PLUS_ERF, far)
    assert 0 <= float(got[0]) < 1e-11
    assert got[1:4].tolist() == [0.0, 0.0, 0.0]
    assert float(got[4]) == 2.0
    assert bool(got[5].isnan())
