"""Holes that were found in the oracle, each with a kernel that went through it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from oracle_bench import Kernel, bench_of, source_of

from toprung.errors import TaskError

pytestmark = pytest.mark.unit


def head(x: torch.Tensor) -> torch.Tensor:
    """All of the last dimension but what does not fill a vector of 8."""
    return x[..., : x.shape[-1] // 8 * 8]


def refused(source: str, kernel: Kernel) -> str | None:
    """Why three checks in a row, as the judge makes them, refuse `kernel`."""
    checks = [bench_of(source).ask(kernel, "as_given", draw) for draw in (5, 6, 7)]
    return next((c.why for c in checks if c is not None and not c.ok), None)


LONG = 2**17 + 3

TAILS: dict[str, tuple[str, str, str, Kernel, Kernel]] = {
    "mean": (
        "return x.mean()",
        f"torch.rand({LONG})",
        "self, x",
        torch.mean,
        lambda x: head(x).sum() / x.numel(),
    ),
    "sum": (
        "return x.sum(-1)",
        f"torch.randn(2, {LONG})",
        "self, x",
        lambda x: x.sum(-1),
        lambda x: head(x).sum(-1),
    ),
    "mean square error": (
        "return F.mse_loss(x, y)",
        "torch.rand(511, 1031), torch.rand(511, 1031)",
        "self, x, y",
        F.mse_loss,
        lambda x, y: head((x - y).flatten()).square().sum() / x.numel(),
    ),
    "l2 norm": (
        "return x / x.norm(dim=-1, keepdim=True)",
        f"torch.randn(2, {LONG})",
        "self, x",
        lambda x: x / x.norm(dim=-1, keepdim=True),
        lambda x: x / head(x).norm(dim=-1, keepdim=True),
    ),
    "logsumexp": (
        "return torch.logsumexp(x, -1)",
        f"torch.randn(2, {LONG})",
        "self, x",
        lambda x: torch.logsumexp(x, -1),
        lambda x: torch.logsumexp(head(x), -1),
    ),
    "softmax denominator": (
        "return torch.softmax(x, -1)",
        f"torch.randn(2, {LONG})",
        "self, x",
        lambda x: torch.softmax(x, -1),
        lambda x: torch.exp(x - torch.logsumexp(head(x), -1, keepdim=True)),
    ),
    "layer norm statistics": (
        "return F.layer_norm(x, x.shape[1:])",
        f"torch.randn(2, {LONG})",
        "self, x",
        lambda x: F.layer_norm(x, x.shape[1:]),
        lambda x: (
            (x - head(x).mean(-1, keepdim=True))
            * torch.rsqrt(head(x).var(-1, keepdim=True, correction=0) + 1e-5)
        ),
    ),
    "sum over rows": (
        "return x.sum(0)",
        f"torch.rand({LONG}, 2)",
        "self, x",
        lambda x: x.sum(0),
        lambda x: x[: len(x) // 8 * 8].sum(0),
    ),
}


@pytest.mark.parametrize("name", TAILS)
def test_a_dropped_tail_is_seen(name: str):
    forward, inputs, args, right, wrong = TAILS[name]
    source = source_of(forward, inputs, args=args)
    assert refused(source, right) is None
    assert refused(source, wrong)


@pytest.mark.parametrize("name", TAILS)
def test_timed_calls_have_needles_that_the_reference_passes(name: str):
    forward, inputs, args, right, wrong = TAILS[name]
    bench = bench_of(source_of(forward, inputs, args=args))
    timed = [bench.ask(right, "as_given", draw, truth=False) for draw in range(8)]
    assert all(one is not None and one.ok for one in timed)
    timed = [bench.ask(wrong, "as_given", draw, truth=False) for draw in range(8)]
    assert not all(one is not None and one.ok for one in timed)


COUNT = source_of(
    "return (x * 100).round().to(torch.int32).sum()", "torch.rand(300, 1000)", args="self, x"
)


def test_a_count_that_rounding_moves_is_still_held_near_it():
    def right(x: torch.Tensor) -> torch.Tensor:
        return (x * 100).round().long().sum()

    def zero(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros((), dtype=torch.int64)

    bench = bench_of(COUNT)
    assert bench.climb(right) is None
    assert refused(COUNT, right) is None
    assert refused(COUNT, zero)
    assert refused(COUNT, lambda x: torch.tensor(round(x.numel() * 49.5)))
    timed = bench.ask(zero, "as_given", 1, truth=False)
    assert timed is not None and not timed.ok


def test_a_case_that_rounding_alone_decides_is_the_tasks_fault():
    source = source_of("return (x * 1e9).sin() > 0", "torch.randn(64, 64)", args="self, x")
    with pytest.raises(TaskError, match="rounding alone decides") as refusal:
        bench_of(source).stage("as_given")
    assert "in forward" in (refusal.value.details or "")


@pytest.mark.parametrize(
    ("inputs", "forward", "labelled"),
    [
        ("torch.linspace(-1, 1, 64)", "return x.exp()", True),
        ("torch.randn(64)", "return x.exp()", False),
        ("torch.ones(64)", "return torch.rand_like(x)", False),
    ],
)
def test_inputs_that_never_vary_are_labelled(inputs: str, forward: str, labelled: bool):
    labels = bench_of(source_of(forward, inputs, args="self, x")).case.labels
    assert ("inputs never vary: a stored answer would pass" in labels) is labelled


@pytest.mark.parametrize(
    ("forward", "overlapping", "aliases"),
    [
        ("return (x * 2).chunk(2, -1)", (), ()),
        ("y = x * 2; return y, y[:, -1]", (1,), ()),
        ("return x.mean(-1, keepdim=True).expand(-1, 64)", (0,), ()),
        ("return x[:, ::2]", (), ((0, 0),)),
        ("return x * 2, x * 3", (), ()),
    ],
)
def test_memory_that_the_reference_shares_is_told(
    forward: str, overlapping: tuple[int, ...], aliases: tuple[tuple[int, int], ...]
):
    case = bench_of(source_of(forward, "torch.randn(32, 64)", args="self, x")).case
    assert (case.overlapping, case.aliases) == (overlapping, aliases)


@pytest.mark.parametrize(
    ("forward", "fixed"),
    [
        ("return x * 2, 0.125, 7", True),
        ("return x * 2, x.sum().item()", False),
        ("return x * 2", True),
        ("return {'y': x * 2, 'n': int(x[0, 0] > 0) + torch.randint(9999, ()).item()}", False),
    ],
)
def test_plain_values_are_told_and_whether_they_are_fixed(forward: str, fixed: bool):
    bench = bench_of(source_of(forward, "torch.randn(32, 64)", args="self, x"))
    assert bench.case.plain_fixed is fixed
    assert bench.stage("as_given")[0].skipped is None
    if "0.125" in forward:
        assert bench.case.returned.layout == {"tuple": [{"t": 0}, {"v": 0.125}, {"v": 7}]}


RAISING = """
class Odd(Exception):
    def __str__(self):
        raise ValueError("no words")
    __repr__ = __str__
raise Odd()
"""
FAULTS = {
    "meta inputs": ("return x * 2", "torch.randn(8, device='meta')", "get_inputs"),
    "meta output": ("return x.to('meta')", "torch.randn(8)", "forward"),
    "an exception without words": (RAISING, "torch.randn(8)", "raise Odd()"),
    "a tuple as key": ("return {(0, 1): x}", "torch.randn(8)", "forward"),
    "no tensor": ("return object()", "torch.randn(8)", "forward"),
    "a number": ("return 5", "torch.randn(8)", "forward"),
    "random shapes": ("return x", "torch.randn(int(torch.randint(1, 99999, ())))", "get_inputs"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_tasks_fault_is_told_as_such_with_its_line(name: str):
    forward, inputs, line = FAULTS[name]
    with pytest.raises(TaskError) as refusal:
        bench_of(source_of(forward, inputs, args="self, x"))
    details = refusal.value.details or ""
    assert line in details
    assert "toprung/judge" not in details


def test_nothing_finite_is_told_with_the_line_of_forward():
    source = source_of("return x * math.nan", "torch.randn(64)", args="self, x")
    with pytest.raises(TaskError, match="nothing finite") as refusal:
        bench_of(source).stage("as_given")
    assert "in forward" in (refusal.value.details or "")
