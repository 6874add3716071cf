"""Arithmetic that kernels of the oracle's tests are made of."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F


def sequential_sum(x: torch.Tensor) -> torch.Tensor:
    """Over the last dimension, in one float32 accumulator."""
    return torch.from_numpy(np.cumsum(x.numpy(), axis=-1, dtype=np.float32)[..., -1].copy())


def pairwise_sum(x: torch.Tensor) -> torch.Tensor:
    """Over the last dimension, as a binary tree."""
    while x.shape[-1] > 1:
        x = F.pad(x, (0, x.shape[-1] % 2))
        x = x[..., ::2] + x[..., 1::2]
    return x[..., 0]


def sequential_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b, one float32 accumulator an element, in order."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        total += a[:, k : k + 1].float() * b[k : k + 1].float()
    return total


def narrow_accumulation(a: torch.Tensor, b: torch.Tensor, step: int) -> torch.Tensor:
    """a @ b with an accumulator of the operands' own type, rounded after every `step` terms."""
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(0, a.shape[1], step):
        part = a[:, k : k + step].float() @ b[k : k + step].float()
        total = (total.float() + part).to(a.dtype)
    return total


def tf32(x: torch.Tensor) -> torch.Tensor:
    """Rounded to 10 bits of fraction."""
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def bf16(x: torch.Tensor) -> torch.Tensor:
    """Rounded to bfloat16 and back."""
    return x.bfloat16().float()


def fp8(x: torch.Tensor) -> torch.Tensor:
    """Rounded to float8_e4m3 and back, as float32."""
    return x.float().to(torch.float8_e4m3fn).float()


def softmax_of(exponentials: torch.Tensor) -> torch.Tensor:
    """The last step of a softmax."""
    return exponentials / exponentials.sum(-1, keepdim=True)


def online_softmax(x: torch.Tensor, chunk: int = 64) -> torch.Tensor:
    """Running maximum and rescaled sum over chunks."""
    top = torch.full((*x.shape[:-1], 1), -math.inf)
    total = torch.zeros_like(top)
    for start in range(0, x.shape[-1], chunk):
        part = x[..., start : start + chunk]
        new = torch.maximum(top, part.amax(-1, keepdim=True))
        total = total * torch.exp(top - new) + torch.exp(part - new).sum(-1, keepdim=True)
        top = new
    return torch.exp(x - top) / total


def welford(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance of rows, element by element (Welford 1962)."""
    mean, square = torch.zeros(x.shape[0]), torch.zeros(x.shape[0])
    for i in range(x.shape[1]):
        delta = x[:, i] - mean
        mean = mean + delta / (i + 1)
        square = square + delta * (x[:, i] - mean)
    return mean[:, None], (square / x.shape[1])[:, None]


def normalise(
    x: torch.Tensor,
    mean: torch.Tensor | float,
    variance: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float = 1e-5,
) -> torch.Tensor:
    """The last step of a layer norm."""
    return (x - mean) * torch.rsqrt(variance + eps) * weight + bias


def mean_of(x: torch.Tensor) -> torch.Tensor:
    """Row means, kept as a column."""
    return x.mean(-1, keepdim=True)


def variance_of(x: torch.Tensor) -> torch.Tensor:
    """Biased row variances in two passes, kept as a column."""
    return (x - mean_of(x)).square().mean(-1, keepdim=True)


def one_pass_variance(x: torch.Tensor) -> torch.Tensor:
    """mean(x^2) - mean(x)^2, which cancels."""
    return mean_of(x * x) - mean_of(x).square()


def winograd(x: torch.Tensor, c_weight: torch.Tensor, c_bias: torch.Tensor) -> torch.Tensor:
    """A 3x3 convolution with padding 1 as F(2x2, 3x3) (Lavin and Gray 2015)."""
    b = torch.tensor([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
    g = torch.tensor([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    a = torch.tensor([[1.0, 1, 1, 0], [0, 1, -1, -1]])
    tiles = b @ F.pad(x, (1, 1, 1, 1)).unfold(2, 4, 2).unfold(3, 4, 2) @ b.T
    products = torch.einsum("nchwij,kcij->nkhwij", tiles, g @ c_weight @ g.T)
    result = (a @ products @ a.T).permute(0, 1, 2, 4, 3, 5)
    return result.reshape(x.shape[0], c_weight.shape[0], *x.shape[2:]) + c_bias[:, None, None]


def relative_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, position: torch.Tensor | None = None
) -> torch.Tensor:
    """softmax(q k^T / sqrt(d) + position) v; (query - key) where none is given."""
    score = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return torch.softmax(score + (distance(q, k) if position is None else position), -1) @ v


def distance(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Query index minus key index."""
    return torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])[None, :]


def flash_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    position: torch.Tensor | None = None,
    weights: torch.dtype = torch.float32,
    chunk: int = 32,
) -> torch.Tensor:
    """Online softmax over chunks of keys, in float32; `weights` is the type of the weights."""
    q, k, v = q.float(), k.float(), v.float()
    top = torch.full((*q.shape[:-1], 1), -math.inf)
    total, result = torch.zeros_like(top), torch.zeros_like(q)
    for start in range(0, k.shape[-2], chunk):
        part = slice(start, start + chunk)
        score = q @ k[..., part, :].transpose(-1, -2) / math.sqrt(q.shape[-1])
        if position is not None:
            score = score + position[..., part]
        new = torch.maximum(top, score.amax(-1, keepdim=True))
        weight, fade = torch.exp(score - new), torch.exp(top - new)
        total = total * fade + weight.sum(-1, keepdim=True)
        result = result * fade + weight.to(weights).float() @ v[..., part, :]
        top = new
    return result / total
