"""Size expressions and axes: what they mean, what they refuse."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprung.proposers.templates.axes import Axes, Misfit
from toprung.proposers.templates.sizes import Unreadable, cpp, evaluate, product, python

pytestmark = pytest.mark.unit

SIZES = st.integers(2, 10_000)


@given(SIZES, SIZES)
def test_what_torch_prints_is_understood(a: int, b: int) -> None:
    sizes = {"s0": a, "s1": b}
    assert evaluate("s0*s1", sizes) == a * b
    assert evaluate("(s0//8)", sizes) == a // 8
    assert evaluate("Mod(8*s0, 16)", sizes) == (8 * a) % 16
    assert evaluate("Max(0, (s0)-1)", sizes) == a - 1
    assert evaluate("FloatTrueDiv(3.0, FloatPow(ToFloat(s0), 0.5))", sizes) == 3.0 / math.sqrt(a)
    assert evaluate("Eq(8*s0, 16*((s0//2)))", sizes) is (a % 2 == 0)
    assert evaluate("s0 > 3", sizes) is (a > 3)


def test_cpp_divides_in_double_where_python_does() -> None:
    assert cpp("s0//8") == "(s0 / 8)"
    assert cpp("IntTrueDiv(s0, s1)") == "(double(s0) / double(s1))"
    assert cpp("s0**2") == "(s0 * s0)"
    assert python("s0**2") == "(s0 ** 2)"


@pytest.mark.parametrize(
    "text", ["__import__('os')", "s0.real", "s0[0]", "lambda: 1", "f(s0)", "s0 +", "True", "'a'"]
)
def test_nothing_else_is_read(text: str) -> None:
    with pytest.raises(Unreadable):
        python(text)
    with pytest.raises(Unreadable):
        cpp(text)


def test_products() -> None:
    assert product(()) == "1"
    assert product(("4", "5")) == "20"
    assert evaluate(product(("s0", "(s1)//2", "1")), {"s0": 3, "s1": 8}) == 12


def axes() -> Axes:
    return Axes({"s0": 6, "s1": 8})


def test_broadcasting_unites() -> None:
    found = axes()
    x = (found.new("s0", 6), found.new("s1", 8))
    bias = (found.new("s1", 8),)
    dims = found.broadcast([x, bias])
    assert dims == found.dims(x)
    assert found.resolve(bias[0]) == found.resolve(x[1])
    assert found.resolve(x[0]) != found.resolve(x[1])


def test_a_size_of_one_broadcasts() -> None:
    found = axes()
    assert found.new("1", 1) == ()
    column = (found.new("s0", 6), ())
    row = ((), found.new("s1", 8))
    assert [found.hint(label) for label in found.broadcast([column, row])] == [6, 8]


def test_a_reshape_splits_and_joins() -> None:
    found = axes()
    x = (found.new("s0", 6), found.new("s1", 8))
    flat = found.view(x, [("s0*s1", 48)])
    assert flat == ((x[0] + x[1]),)
    apart = found.view(x, [("s0", 6), ("2", 2), ("(s1//2)", 4)])
    assert found.resolve(x[1]) == apart[1] + apart[2]
    back = found.view(apart, [("s0", 6), ("s1", 8)])
    assert found.dims(back) == found.dims(x)


def test_sizes_that_agree_by_chance_do_not_unite() -> None:
    found = Axes({"s0": 8, "s1": 8})
    x, y = found.new("s0", 8), found.new("s1", 8)
    with pytest.raises(Misfit, match="by chance"):
        found.unite(x, y)
    with pytest.raises(Misfit):
        found.view((x, y), [("s1", 8), ("s0", 8)])


def test_a_reshape_that_mixes_dimensions_is_refused() -> None:
    found = axes()
    x = (found.new("s0", 6), found.new("s1", 8))
    with pytest.raises(Misfit):
        found.view(x, [("s1", 8), ("s0", 6)])
