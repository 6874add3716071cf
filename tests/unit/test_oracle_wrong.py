"""Wrong kernels must be refused: each is what somebody writes by mistake, or to seem fast."""

from __future__ import annotations

import math

import oracle_tasks as tasks
import pytest
import torch
import torch.nn.functional as F
from oracle_arithmetic import (
    bf16,
    distance,
    flash_attention,
    fp8,
    mean_of,
    narrow_accumulation,
    normalise,
    one_pass_variance,
    relative_attention,
    softmax_of,
    tf32,
    variance_of,
)
from oracle_bench import Kernel, bench_of

pytestmark = pytest.mark.unit


def spoilt(kernel: Kernel, index: object, value: object) -> Kernel:
    """A right kernel that leaves something else in part of its output."""

    def call(*inputs: torch.Tensor, **state: torch.Tensor) -> torch.Tensor:
        out = kernel(*inputs, **state).clone()
        out[index] = value(out) if callable(value) else value
        return out

    return call


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def layer_norm(x: torch.Tensor, norm_weight: torch.Tensor, norm_bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), norm_weight, norm_bias)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


def conv(x: torch.Tensor, c_weight: torch.Tensor, c_bias: torch.Tensor) -> torch.Tensor:
    return F.conv2d(x, c_weight, c_bias, padding=1)


def norm_with(mean: Kernel, variance: Kernel, eps: float = 1e-5) -> Kernel:
    return lambda x, norm_weight, norm_bias: normalise(
        x, mean(x), variance(x), norm_weight, norm_bias, eps
    )


SOFTMAX = {
    "no maximum subtracted": lambda x: softmax_of(torch.exp(x)),
    "clamped instead": lambda x: softmax_of(torch.exp(x.clamp(max=80))),
    "maximum of half the row": lambda x: softmax_of(
        torch.exp(x - x[:, :250].amax(-1, keepdim=True))
    ),
    "other axis": lambda x: torch.softmax(x, 0),
    "last column dropped": lambda x: F.pad(softmax(x[:, :-1]), (0, 1)),
    "zeros": torch.zeros_like,
    "constant": lambda x: torch.full_like(x, 1 / x.shape[-1]),
    "tiny outputs flushed": lambda x: torch.where(softmax(x) < 1e-4, 0.0, softmax(x)),
    "bf16 inside": lambda x: softmax(bf16(x)),
    "bf16 result": lambda x: bf16(softmax(x)),
    "stale tile": spoilt(softmax, (slice(64, 80), slice(0, 32)), lambda out: out[:16, :32].clone()),
    "last row left out": spoilt(softmax, -1, 0.0),
    "NaN in one place": spoilt(softmax, (3, 5), math.nan),
}
LAYER_NORM = {
    "no epsilon": norm_with(mean_of, variance_of, eps=0.0),
    "another epsilon": norm_with(mean_of, variance_of, eps=1e-6),
    "epsilon outside the root": lambda x, norm_weight, norm_bias: (
        (x - mean_of(x)) / (variance_of(x).sqrt() + 1e-5) * norm_weight + norm_bias
    ),
    "unbiased variance": norm_with(mean_of, lambda x: x.var(-1, keepdim=True)),
    "one-pass variance": norm_with(mean_of, one_pass_variance),
    "mean left in": norm_with(lambda x: 0.0, variance_of),
    "statistics of all but one": norm_with(
        lambda x: mean_of(x[:, :-1]), lambda x: variance_of(x[:, :-1])
    ),
    "statistics of a normal distribution": norm_with(lambda x: 0.0, lambda x: torch.ones(1)),
    "weight and bias as initialised": lambda x, **_: F.layer_norm(x, (x.shape[-1],)),
    "reciprocal root in bf16": lambda x, norm_weight, norm_bias: (
        (x - mean_of(x)) * bf16(torch.rsqrt(variance_of(x) + 1e-5)) * norm_weight + norm_bias
    ),
}
RMS_NORM = {
    "no epsilon": lambda x, w: x * torch.rsqrt(mean_of(x * x)) * w,
    "epsilon of layer norm": lambda x, w: x * torch.rsqrt(mean_of(x * x) + 1e-5) * w,
    "epsilon outside the root": lambda x, w: x / (mean_of(x * x).sqrt() + 1e-6) * w,
    "n - 1": lambda x, w: x * torch.rsqrt((x * x).sum(-1, keepdim=True) / 699 + 1e-6) * w,
    "mean absolute value": lambda x, w: x / (mean_of(x.abs()) * math.sqrt(math.pi / 2)) * w,
}
GELU = {
    "tanh approximation": lambda x: F.gelu(x, approximate="tanh"),
    "sigmoid approximation": lambda x: x * torch.sigmoid(1.702 * x),
    "clipped tails": lambda x: torch.where(x > 3, x, torch.where(x < -3, 0.0, F.gelu(x))),
    "one element off": spoilt(F.gelu, (10, 77), 0.3),
}
MATMUL = {
    "TF32": lambda a, b: tf32(a) @ tf32(b),
    "TF32 in two parts": lambda a, b: tf32(a) @ tf32(b) + tf32(a) @ tf32(b - tf32(b)),
    "fp16 operands": lambda a, b: a.half().float() @ b.half().float(),
    "bf16 operands": lambda a, b: bf16(a) @ bf16(b),
    "one term short": lambda a, b: a[:, :-1] @ b[:-1],
    "permuted terms": lambda a, b: a.roll(1, 1) @ b,
    "last column dropped": spoilt(product, (slice(None), -1), 0.0),
    "swapped tiles": spoilt(
        product, (slice(0, 32), slice(32, 56)), lambda o: o[32:64, :24].clone()
    ),
}
MATMUL_16 = {
    "fp8 operands": lambda a, b: (fp8(a) @ fp8(b)).to(a.dtype),
    "narrow accumulator": lambda a, b: narrow_accumulation(a, b, 4),
    "one term short": lambda a, b: (a[:, :-1].float() @ b[:-1].float()).to(a.dtype),
}
SUM = {
    "last element dropped": lambda x: x[:, :-1].sum(-1),
    "last vector dropped": lambda x: x[:, :2992].sum(-1),
    "expected value": lambda x: torch.full((64,), 1500.0),
    "a sample": lambda x: x[:, ::2].sum(-1) * 2,
    "permuted rows": lambda x: x.sum(-1).roll(1),
    "bf16 operands": lambda x: bf16(x).sum(-1),
}
MSE = {
    "statistic of uniform inputs": lambda a, b: torch.tensor(1 / 6),
    "moments instead of products": lambda a, b: (
        a.square().mean() + b.square().mean() - 2 * a.mean() * b.mean()
    ),
    "expanded square": lambda a, b: a.square().mean() + b.square().mean() - 2 * (a * b).mean(),
    "bf16 operands": lambda a, b: F.mse_loss(bf16(a), bf16(b)),
}
CONV = {
    "padding left out": lambda x, c_weight, c_bias: F.pad(
        F.conv2d(x, c_weight, c_bias), (1, 1, 1, 1)
    ),
    "kernel flipped": lambda x, c_weight, c_bias: conv(x, c_weight.flip(-1), c_bias),
    "bias left out": lambda x, c_weight, c_bias: F.conv2d(x, c_weight, padding=1),
    "TF32": lambda x, c_weight, c_bias: conv(tf32(x), tf32(c_weight), c_bias),
    "one channel short": lambda x, c_weight, c_bias: conv(x[:, :-1], c_weight[:, :-1], c_bias),
}
CUMSUM = {
    "exclusive": lambda x: x.cumsum(1) - x,
    "not carried over blocks": lambda x: x.view(32, 20, 100).cumsum(-1).reshape(32, 2000),
    "carried in bf16": lambda x: (
        x.view(32, 20, 100).cumsum(-1)
        + bf16(F.pad(x.view(32, 20, 100).sum(-1).cumsum(-1)[:, :-1], (1, 0)))[..., None]
    ).reshape(32, 2000),
}
ATTENTION = {
    "key minus query": lambda q, k, v: relative_attention(q, k, v, -distance(q, k)),
    "absolute distance": lambda q, k, v: relative_attention(q, k, v, distance(q, k).abs()),
    "float32 indices far from zero": lambda q, k, v: relative_attention(
        q, k, v, (distance(q, k) + 3e4).float()
    ),
    "far keys dropped": lambda q, k, v: relative_attention(q, k[:, :24], v[:, :24]),
    "causal": lambda q, k, v: relative_attention(
        q, k, v, torch.where(distance(q, k) < 0, -math.inf, distance(q, k))
    ),
    "TF32": lambda q, k, v: relative_attention(tf32(q), tf32(k), v),
    "not scaled": lambda q, k, v: relative_attention(q * math.sqrt(32), k, v),
}
ATTENTION_BF16 = {
    "fp8 queries and keys": lambda q, k, v: flash_attention(fp8(q), fp8(k), v).bfloat16(),
    "fp8 values": lambda q, k, v: flash_attention(q, k, fp8(v)).bfloat16(),
    "fp8 weights": lambda q, k, v: flash_attention(q, k, v, weights=torch.float8_e4m3fn).bfloat16(),
    "last key dropped": lambda q, k, v: flash_attention(q, k[:, :, :-1], v[:, :, :-1]).bfloat16(),
    "causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
}
EMBEDDING = {
    "permuted indices": lambda i, e_weight: e_weight[i.flip(1)],
    "off by one": lambda i, e_weight: e_weight[(i + 1) % 500],
    "last entry never read": lambda i, e_weight: e_weight[i.clamp(max=498)],
    "entry 0 as padding": lambda i, e_weight: e_weight[i] * (i > 0)[..., None],
    "bf16": lambda i, e_weight: bf16(e_weight[i]),
}
CROSS_ENTROPY = {
    "sum": lambda x, t: F.cross_entropy(x, t, reduction="sum"),
    "no maximum subtracted": lambda x, t: (
        x.exp().sum(-1).log() - x.gather(1, t[:, None])[:, 0]
    ).mean(),
    "half the batch": lambda x, t: F.cross_entropy(x[::2], t[::2]),
    "targets shifted": lambda x, t: F.cross_entropy(x, (t + 1) % 100),
}
ARGMAX = {
    "argmin": lambda x: x.argmin(-1),
    "last column dropped": lambda x: x[:, :-1].argmax(-1),
    "bf16": lambda x: x.bfloat16().argmax(-1),
}
BATCH_NORM = {
    "statistics as initialised": lambda x, **_: x / math.sqrt(1 + 1e-5),
    "statistics of the batch": lambda x, n_weight, n_bias, **_: F.batch_norm(
        x, None, None, n_weight, n_bias, training=True
    ),
    "no epsilon": lambda x, n_weight, n_bias, n_running_mean, n_running_var, **_: F.batch_norm(
        x, n_running_mean, n_running_var, n_weight, n_bias, eps=1e-30
    ),
}
OTHERS = {
    (tasks.TRIANGULAR, "TF32"): lambda a, b: tf32(a) @ tf32(b),
    (tasks.TRIANGULAR, "diagonal dropped"): lambda a, b: torch.triu(a @ b, 1),
    (tasks.QUANTISE, "not rounded"): lambda x: x,
    (tasks.QUANTISE, "rounded down"): lambda x: torch.floor(x * 8) / 8,
    (tasks.QUANTISE, "bf16 before rounding"): lambda x: torch.round(bf16(x) * 8) / 8,
    (tasks.THRESHOLD, "mean taken for zero"): F.relu,
    (tasks.TANH, "rational"): lambda x: (x * (27 + x * x) / (27 + 9 * x * x)).clamp(-1, 1),
    (tasks.FFT, "TF32"): lambda x: torch.fft.fft(tf32(x)),
    (tasks.FFT, "conjugate"): lambda x: torch.fft.fft(x).conj().resolve_conj(),
    (tasks.LOGSUMEXP, "maximum alone"): lambda x: x.amax(-1),
    (tasks.LOGSUMEXP, "last element dropped"): lambda x: torch.logsumexp(x[:, :-1], -1),
}

WRONG: dict[tuple[str, str], Kernel] = {
    **{(tasks.SOFTMAX, name): kernel for name, kernel in SOFTMAX.items()},
    **{(tasks.LAYER_NORM, name): kernel for name, kernel in LAYER_NORM.items()},
    **{(tasks.RMS_NORM, name): kernel for name, kernel in RMS_NORM.items()},
    **{(tasks.GELU, name): kernel for name, kernel in GELU.items()},
    **{(tasks.MATMUL, name): kernel for name, kernel in MATMUL.items()},
    **{(tasks.MATMUL_BF16, name): kernel for name, kernel in MATMUL_16.items()},
    **{(tasks.MATMUL_FP16, name): kernel for name, kernel in MATMUL_16.items()},
    **{(tasks.SUM, name): kernel for name, kernel in SUM.items()},
    **{(tasks.MSE, name): kernel for name, kernel in MSE.items()},
    **{(tasks.CONV, name): kernel for name, kernel in CONV.items()},
    **{(tasks.CUMSUM, name): kernel for name, kernel in CUMSUM.items()},
    **{(tasks.ATTENTION, name): kernel for name, kernel in ATTENTION.items()},
    **{(tasks.ATTENTION_BF16, name): kernel for name, kernel in ATTENTION_BF16.items()},
    **{(tasks.EMBEDDING, name): kernel for name, kernel in EMBEDDING.items()},
    **{(tasks.CROSS_ENTROPY, name): kernel for name, kernel in CROSS_ENTROPY.items()},
    **{(tasks.ARGMAX, name): kernel for name, kernel in ARGMAX.items()},
    **{(tasks.BATCH_NORM, name): kernel for name, kernel in BATCH_NORM.items()},
    **OTHERS,
}
TASK_NAMES = {source: name.lower() for name, source in vars(tasks).items() if name.isupper()}


@pytest.mark.parametrize(
    ("source", "kernel"),
    [
        pytest.param(source, kernel, id=f"{TASK_NAMES[source]}: {name}")
        for (source, name), kernel in WRONG.items()
    ],
)
def test_a_wrong_kernel_is_refused(source: str, kernel: Kernel) -> None:
    refusal = bench_of(source).climb(kernel)
    assert refusal is not None
    assert "output 0" in refusal
