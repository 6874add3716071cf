"""Holes that were found in the oracle, each with a kernel that went through it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from oracle_bench import Kernel, bench_of, source_of

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
