"""Flops of single operators against values worked out by hand.

Every expected value is written as the arithmetic that gives it: products (2 per multiply-add) first,
everything else second.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from toprung.judge.clock import work
from toprung.judge.clock.work import count_work

pytestmark = pytest.mark.unit


class Reference(nn.Module):
    """A module of one function, with its parts as parameters."""

    def __init__(self, function: Callable, *parts: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.parts = nn.ModuleList(parts)

    def forward(self, *inputs):
        return self.function(*self.parts, *inputs)


def r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


N = 8 * 16  # elements of `r(8, 16)`, the usual input below

CASES: dict[str, tuple[Callable, list, int, int]] = {
    # --- products
    "mm": (torch.mm, [r(8, 16), r(16, 4)], 2 * 8 * 16 * 4, 0),
    "matmul_batched_by_one": (
        torch.matmul,
        [r(2, 3, 8, 16), r(16, 4)],
        2 * (2 * 3 * 8) * 16 * 4,
        0,
    ),
    "bmm": (torch.bmm, [r(3, 8, 16), r(3, 16, 4)], 2 * 3 * 8 * 16 * 4, 0),
    "mv": (torch.mv, [r(8, 16), r(16)], 2 * 8 * 16, 0),
    "dot": (torch.dot, [r(16), r(16)], 2 * 16, 0),
    "outer": (torch.outer, [r(8), r(16)], 0, 8 * 16),
    "addmm": (torch.addmm, [r(4), r(8, 16), r(16, 4)], 2 * 8 * 16 * 4, 8 * 4),
    "addmm_scaled": (
        lambda c, a, b: torch.addmm(c, a, b, alpha=2.0, beta=0.5),
        [r(8, 4), r(8, 16), r(16, 4)],
        2 * 8 * 16 * 4,
        3 * 8 * 4,
    ),
    "baddbmm_without_addend": (
        lambda c, a, b: torch.baddbmm(c, a, b, beta=0),
        [r(3, 8, 4), r(3, 8, 16), r(3, 16, 4)],
        2 * 3 * 8 * 16 * 4,
        0,
    ),
    "linear": (F.linear, [r(2, 8, 16), r(4, 16), r(4)], 2 * 2 * 8 * 16 * 4, 2 * 8 * 4),
    "einsum": (
        lambda a, b: torch.einsum("bij,bkj->bik", a, b),
        [r(3, 8, 16), r(3, 4, 16)],
        2 * 3 * 8 * 16 * 4,
        0,
    ),
    "bilinear": (F.bilinear, [r(2, 4), r(2, 5), r(6, 4, 5)], 2 * 2 * 6 * 5 * (4 + 1), 0),
    "int_mm": (
        torch._int_mm,
        [torch.ones(32, 16, dtype=torch.int8), torch.ones(16, 8, dtype=torch.int8)],
        2 * 32 * 16 * 8,
        0,
    ),
    "complex_mm": (
        torch.mm,
        [torch.randn(8, 16, dtype=torch.complex64), torch.randn(16, 4, dtype=torch.complex64)],
        4 * 2 * 8 * 16 * 4,
        0,
    ),
    # --- convolutions: 2 x places x channels that meet x kernel elements
    "conv1d_dilated": (
        lambda x, w: F.conv1d(x, w, dilation=3),
        [r(2, 4, 32), r(6, 4, 5)],
        2 * (2 * 6 * (32 - 3 * 4)) * 4 * 5,
        0,
    ),
    "conv2d_bias_stride": (
        lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1),
        [r(2, 3, 32, 32), r(8, 3, 3, 3), r(8)],
        2 * (2 * 8 * 16 * 16) * 3 * 9,
        2 * 8 * 16 * 16,
    ),
    "conv2d_grouped": (
        lambda x, w: F.conv2d(x, w, groups=4, padding=1),
        [r(2, 8, 10, 10), r(16, 2, 3, 3)],
        2 * (2 * 16 * 100) * 2 * 9,
        0,
    ),
    "conv2d_depthwise": (
        lambda x, w: F.conv2d(x, w, groups=8, padding=1),
        [r(1, 8, 16, 16), r(8, 1, 3, 3)],
        2 * 8 * 256 * 9,
        0,
    ),
    "conv3d": (F.conv3d, [r(1, 2, 6, 6, 6), r(4, 2, 3, 3, 3)], 2 * (4 * 4**3) * 2 * 27, 0),
    "conv_transpose2d": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2),
        [r(2, 8, 16, 16), r(8, 4, 3, 3)],
        2 * (2 * 8 * 256) * 4 * 9,
        0,
    ),
    "conv_transpose2d_grouped": (
        lambda x, w: F.conv_transpose2d(x, w, groups=2, dilation=2),
        [r(1, 8, 10, 10), r(8, 3, 3, 3)],
        2 * (8 * 100) * 3 * 9,
        0,
    ),
    # --- attention
    "attention": (
        F.scaled_dot_product_attention,
        [r(2, 4, 64, 32), r(2, 4, 48, 32), r(2, 4, 48, 16)],
        2 * (2 * 4 * 64 * 48) * (32 + 16),
        6 * (2 * 4 * 64 * 48),
    ),
    "attention_causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [r(2, 4, 64, 32), r(2, 4, 64, 32), r(2, 4, 64, 32)],
        2 * (2 * 4 * (64 * 65 // 2)) * (32 + 32),
        6 * (2 * 4 * (64 * 65 // 2)),
    ),
    "attention_causal_more_keys": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [r(1, 1, 4, 8), r(1, 1, 10, 8), r(1, 1, 10, 8)],
        2 * (1 + 2 + 3 + 4) * (8 + 8),
        6 * (1 + 2 + 3 + 4),
    ),
    "attention_causal_more_queries": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [r(1, 1, 5, 8), r(1, 1, 3, 8), r(1, 1, 3, 8)],
        2 * (1 + 2 + 3 + 3 + 3) * (8 + 8),
        6 * (1 + 2 + 3 + 3 + 3),
    ),
    "attention_masked": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        [r(2, 4, 16, 8), r(2, 4, 16, 8), r(2, 4, 16, 8), r(16, 16)],
        2 * (8 * 256) * 16,
        7 * (8 * 256),
    ),
    "attention_grouped_queries": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        [r(1, 8, 16, 8), r(1, 2, 16, 8), r(1, 2, 16, 8)],
        2 * (8 * 256) * 16,
        6 * (8 * 256),
    ),
    # --- elementwise
    "add": (torch.add, [r(8, 16), r(8, 16)], 0, N),
    "add_scaled": (lambda a, b: torch.add(a, b, alpha=3), [r(8, 16), r(8, 16)], 0, 2 * N),
    "multiply_broadcast": (torch.mul, [r(8, 16), r(16)], 0, N),
    "relu": (F.relu, [r(8, 16)], 0, N),
    "exp": (torch.exp, [r(8, 16)], 0, N),
    "tanh_in_place": (lambda x: x.clone().tanh_(), [r(8, 16)], 0, N),
    "sigmoid": (torch.sigmoid, [r(8, 16)], 0, 4 * N),
    "silu": (F.silu, [r(8, 16)], 0, 5 * N),
    "gelu": (F.gelu, [r(8, 16)], 0, 5 * N),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), [r(8, 16)], 0, 9 * N),
    "leaky_relu": (F.leaky_relu, [r(8, 16)], 0, 2 * N),
    "elu": (F.elu, [r(8, 16)], 0, 3 * N),
    "selu": (F.selu, [r(8, 16)], 0, 4 * N),
    "softplus": (F.softplus, [r(8, 16)], 0, 3 * N),
    "mish": (F.mish, [r(8, 16)], 0, 4 * N),
    "hardtanh": (F.hardtanh, [r(8, 16)], 0, 2 * N),
    "hardswish": (F.hardswish, [r(8, 16)], 0, 5 * N),
    "clamp_one_side": (lambda x: torch.clamp(x, min=0.5), [r(8, 16)], 0, N),
    "addcmul": (torch.addcmul, [r(8, 16), r(8, 16), r(8, 16)], 0, 2 * N),
    "lerp": (torch.lerp, [r(8, 16), r(8, 16), r(8, 16)], 0, 3 * N),
    "glu": (F.glu, [r(8, 16)], 0, 5 * N // 2),
    "compare": (torch.gt, [r(8, 16), r(8, 16)], 0, N),
    "complex_multiply": (torch.mul, [torch.randn(4, dtype=torch.complex64)] * 2, 0, 6 * 4),
    "integers_are_no_flops": (torch.add, [torch.ones(4, dtype=torch.int64)] * 2, 0, 0),
    "where_moves_data": (torch.where, [r(4) > 0, r(4), r(4)], 0, 0),
    "copies_are_free": (lambda x: torch.cat([x, x.flip(0)]).half(), [r(8, 16)], 0, 0),
    # --- reductions
    "sum": (torch.sum, [r(8, 16)], 0, N),
    "mean_rows": (lambda x: x.mean(1), [r(8, 16)], 0, N + 8),
    "amax": (lambda x: x.amax(1), [r(8, 16)], 0, N),
    "argmax": (lambda x: x.argmax(1), [r(8, 16)], 0, N),
    "max_with_indices": (lambda x: x.max(1)[0], [r(8, 16)], 0, N),
    "var_rows": (lambda x: x.var(1), [r(8, 16)], 0, 4 * N + 2 * 8),
    "std": (torch.std, [r(8, 16)], 0, 4 * N + 3),
    "norm_l2": (lambda x: torch.linalg.vector_norm(x, dim=1), [r(8, 16)], 0, 2 * N + 8),
    "norm_l1": (lambda x: torch.linalg.vector_norm(x, ord=1, dim=1), [r(8, 16)], 0, 2 * N),
    "norm_l3": (lambda x: torch.linalg.vector_norm(x, ord=3, dim=1), [r(8, 16)], 0, 3 * N + 8),
    "frobenius": (lambda x: torch.norm(x, p="fro"), [r(8, 16)], 0, 2 * N + 1),
    "logsumexp": (lambda x: x.logsumexp(1), [r(8, 16)], 0, 4 * N + 2 * 8),
    "cumsum": (lambda x: x.cumsum(1), [r(8, 16)], 0, N),
    "cumprod": (lambda x: x.cumprod(0), [r(8, 16)], 0, N),
    "sort": (lambda x: x.sort(1)[0], [r(8, 16)], 0, N * 4),
    "topk": (lambda x: x.topk(3)[0], [r(8, 16)], 0, N),
    "softmax": (lambda x: x.softmax(-1), [r(8, 16)], 0, 5 * N),
    "log_softmax": (lambda x: x.log_softmax(-1), [r(8, 16)], 0, 5 * N + 8),
    # --- normalisations
    "layer_norm": (lambda x: F.layer_norm(x, (16,)), [r(8, 16)], 0, 5 * N + 4 * 8),
    "layer_norm_affine": (
        lambda x, w, b: F.layer_norm(x, (16,), w, b),
        [r(8, 16), r(16), r(16)],
        0,
        7 * N + 4 * 8,
    ),
    "rms_norm": (lambda x, w: F.rms_norm(x, (16,), w), [r(8, 16), r(16)], 0, 4 * N + 3 * 8),
    "group_norm": (
        lambda x, w, b: F.group_norm(x, 3, w, b),
        [r(2, 6, 5, 5), r(6), r(6)],
        0,
        7 * 300 + 4 * (2 * 3),
    ),
    "instance_norm": (F.instance_norm, [r(2, 6, 5, 5)], 0, 5 * 300 + 4 * (2 * 6)),
    # --- pooling and resampling
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, stride=2), [r(2, 4, 9, 9)], 0, (2 * 4 * 16) * 9),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), [r(2, 4, 8, 8)], 0, (2 * 4 * 16) * (4 + 1)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 4), [r(2, 4, 16)], 0, (2 * 4 * 4) * (4 + 1)),
    "global_average": (lambda x: F.adaptive_avg_pool2d(x, 1), [r(2, 4, 8, 8)], 0, 512 + 8),
    "adaptive_average_overlapping": (
        # 5 to 3: windows 0:2, 1:4, 3:5, which are 2 + 3 + 2 = 7 elements a side
        lambda x: F.adaptive_avg_pool2d(x, 3),
        [r(2, 4, 5, 5)],
        0,
        (2 * 4) * 7 * 7 + (2 * 4) * 9,
    ),
    "bilinear_upsample": (
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        [r(1, 2, 4, 4)],
        0,
        9 * (2 * 8 * 8),
    ),
    "nearest_upsample": (lambda x: F.interpolate(x, scale_factor=2), [r(1, 2, 4, 4)], 0, 0),
    # --- losses
    "mse_loss": (F.mse_loss, [r(8, 16), r(8, 16)], 0, 2 * N + N + 1),
    "smooth_l1_loss": (F.smooth_l1_loss, [r(8, 16), r(8, 16)], 0, 5 * N + N + 1),
    "l1_loss": (F.l1_loss, [r(8, 16), r(8, 16)], 0, 2 * N + N + 1),
    "cross_entropy": (
        F.cross_entropy,
        [r(8, 16), torch.zeros(8, dtype=torch.int64)],
        0,
        (5 * N + 8) + (8 + 8 + 1),
    ),
    "binary_cross_entropy": (F.binary_cross_entropy, [torch.rand(4), torch.rand(4)], 0, 8 * 4 + 5),
    # --- others
    "fft": (torch.fft.fft, [torch.randn(3, 16, dtype=torch.complex64)], 0, 3 * 5 * 16 * 4),
    "rfft": (torch.fft.rfft, [r(3, 16)], 0, 3 * 5 * 16 * 4 // 2),
    "cdist": (torch.cdist, [r(5, 8), r(7, 8)], 0, 5 * 7 * (3 * 8 + 1)),
    "index_add": (
        lambda x, i, y: x.index_add(0, i, y),
        [r(8, 16), torch.tensor([1, 2]), r(2, 16)],
        0,
        2 * 16,
    ),
    "scatter_add": (
        lambda x, i, y: x.scatter_add(0, i, y),
        [r(8, 16), torch.zeros(4, 16, dtype=torch.int64), r(4, 16)],
        0,
        4 * 16,
    ),
    "cholesky": (lambda x: torch.linalg.cholesky_ex(x)[0], [r(2, 6, 6)], 2 * (6**3 // 3), 0),
    "triangular_solve": (
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=False),
        [r(6, 6), r(6, 4)],
        6 * 6 * 4,
        0,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_flops_of_an_operator(name: str) -> None:
    function, inputs, products, others = CASES[name]
    counted = count_work(Reference(function), inputs)
    assert (counted.product_flops, counted.flops - counted.product_flops) == (products, others)
    assert counted.uncounted == ()


def test_more_than_forty_operators_are_worked_out() -> None:
    assert len(CASES) > 80


# On real tensors torch takes other ways (fused attention, mkldnn); the counts must not follow it.
@pytest.mark.parametrize("name", CASES)
def test_real_tensors_count_the_same(name: str) -> None:
    function, inputs, products, others = CASES[name]
    counted = work._count(Reference(function), inputs, on_meta=False)
    assert (counted.product_flops, counted.flops - counted.product_flops) == (products, others)


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        (nn.BatchNorm2d(6), 7 * 300 + 4 * 6 + 6 * 6),  # and two running statistics, 3 flops each
        (nn.BatchNorm2d(6).eval(), 2 * 300 + 2 * 6 + 2 * 300),
        (nn.BatchNorm2d(6, affine=False, track_running_stats=False), 5 * 300 + 4 * 6),
    ],
)
def test_batch_norm(norm: nn.Module, expected: int) -> None:
    assert count_work(Reference(lambda m, x: m(x), norm), [r(2, 6, 5, 5)]).flops == expected


STEPS, BATCH, INPUT, HIDDEN = 5, 2, 16, 32
RECURRENT = {
    "lstm": (nn.LSTM(INPUT, HIDDEN), 4, 30),
    "gru": (nn.GRU(INPUT, HIDDEN), 3, 22),
    "rnn": (nn.RNN(INPUT, HIDDEN), 1, 4),
}


@pytest.mark.parametrize("name", RECURRENT)
@pytest.mark.parametrize("on_meta", [True, False])
def test_recurrent_layers(name: str, on_meta: bool) -> None:
    layer, gates, per_hidden = RECURRENT[name]
    model = Reference(lambda m, x: m(x)[0], layer)
    counted = work._count(model, [r(STEPS, BATCH, INPUT)], on_meta=on_meta)
    places = STEPS * BATCH
    assert counted.product_flops == 2 * places * gates * HIDDEN * (INPUT + HIDDEN)
    assert counted.flops - counted.product_flops == places * HIDDEN * per_hidden


def test_recurrent_layers_count_like_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = nn.LSTM(INPUT, HIDDEN, num_layers=2, bidirectional=True, proj_size=8)
    model = Reference(lambda m, x: m(x)[0], layer)
    whole = count_work(model, [r(STEPS, BATCH, INPUT)])
    monkeypatch.setattr("toprung.judge.clock.whole.CELLS", ())
    assert count_work(model, [r(STEPS, BATCH, INPUT)]) == whole


class Gradient(nn.Module):
    """Gradients of a function for an upstream gradient, as a task with `grad` asks for them."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        with torch.enable_grad():
            leaves = [x.detach().requires_grad_() for x in inputs]
            out = self.function(*leaves)
            return torch.autograd.grad(out, leaves, torch.ones_like(out))


GRADIENTS: dict[str, tuple[Callable, list, int, int]] = {
    # Forward passes whose results the gradient does not need are not part of the work.
    "mm": (torch.mm, [r(8, 16), r(16, 4)], 2 * 2 * 8 * 16 * 4, 0),
    "softmax": (lambda x: x.softmax(-1), [r(8, 16)], 0, 5 * N + 4 * N),
    "conv2d": (
        lambda x, w: F.conv2d(x, w, padding=1),
        [r(2, 3, 8, 8), r(4, 3, 3, 3)],
        2 * (2 * (2 * 4 * 64) * 3 * 9),
        0,
    ),
    "layer_norm": (lambda x: F.layer_norm(x, (16,)), [r(8, 16)], 0, (5 * N + 4 * 8) + 9 * N),
    "tanh": (torch.tanh, [r(8, 16)], 0, N + 3 * N),
    "attention_causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [r(1, 2, 8, 4), r(1, 2, 8, 4), r(1, 2, 8, 4)],
        4 * (2 * 36) * (4 + 4),
        5 * (2 * 36),
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_flops_of_a_gradient(name: str) -> None:
    function, inputs, products, others = GRADIENTS[name]
    counted = count_work(Gradient(function), inputs)
    assert (counted.product_flops, counted.flops - counted.product_flops) == (products, others)
    assert counted.uncounted == ()


def test_unknown_operators_are_named_not_dropped() -> None:
    counted = count_work(Reference(torch.linalg.eigvalsh), [r(4, 4)])
    assert counted.uncounted == ("_linalg_eigh",)


@torch.library.custom_op("toprung_test::halve", mutates_args=())
def _halve(x: torch.Tensor) -> torch.Tensor:
    return x / 2


@_halve.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_custom_operators_are_named_with_their_namespace() -> None:
    counted = count_work(Reference(lambda x: _halve(x) + 1), [r(8, 16)])
    assert counted.uncounted == ("toprung_test.halve",)
    assert counted.flops == N


def test_results_that_reach_no_output_are_not_work() -> None:
    def function(x):
        x.exp().sum()
        return x * 2

    assert count_work(Reference(function), [r(8, 16)]).flops == N


def test_inference_mode_counts_the_same() -> None:
    def function(x, w, b):
        with torch.inference_mode():
            return F.linear(x, w, b).softmax(-1)

    counted = count_work(Reference(function), [r(8, 16), r(4, 16), r(4)])
    assert counted.flops == 2 * 8 * 16 * 4 + 8 * 4 + 5 * 8 * 4


def test_control_flow_on_values_falls_back_to_real_tensors() -> None:
    counted = count_work(
        Reference(lambda x: x * 2 if x.abs().sum() >= 0 else x.exp().exp()), [r(8, 16)]
    )
    assert counted.flops == (N + N + 1) + N  # abs, sum, the comparison, and the branch taken


def test_transformer_layer_is_the_sum_of_its_parts() -> None:
    rows, width, heads, inner = 5 * 2, 32, 4, 64
    layer = nn.TransformerEncoderLayer(width, heads, inner, dropout=0.0)
    counted = count_work(Reference(lambda m, x: m(x), layer.eval()), [r(5, 2, width)])
    pairs = 2 * heads * 5 * 5
    products = 2 * rows * width * (3 * width + width + 2 * inner) + 2 * pairs * 2 * (width // heads)
    biases = rows * (3 * width + width + inner + width)
    norms = 2 * (7 * rows * width + 4 * rows)
    assert counted.product_flops == products
    assert counted.flops - products == biases + norms + 6 * pairs + 2 * rows * width + rows * inner


def test_logarithms_of_sizes_are_exact_for_powers_of_two() -> None:
    counted = count_work(Reference(lambda x: x.sort()[0]), [r(1 << 10)])
    assert counted.flops == (1 << 10) * math.ceil(math.log2(1 << 10))
