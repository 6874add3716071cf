"""Attention with a relative position: the reference."""

import math

import torch


class Model(torch.nn.Module):
    """(batch, heads, length, dim) three times in, once out; score + (q_idx - kv_idx)."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        score = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        index = torch.arange(q.shape[-2], device=q.device)
        score = score + (index[:, None] - index[None, :])
        return torch.softmax(score, dim=-1) @ v


def get_inputs(batch=2, heads=4, length=256, dim=64):
    return [torch.randn(batch, heads, length, dim) for _ in range(3)]


def get_init_inputs():
    return []
