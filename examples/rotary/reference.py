"""Rotary position embedding of queries and keys: the reference."""

import torch


class Model(torch.nn.Module):
    """q and k (batch, heads, length, dim), cos and sin (length, dim / 2); (q, k) out."""

    def forward(self, q, k, cos, sin):
        return self.turn(q, cos, sin), self.turn(k, cos, sin)

    def turn(self, x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def get_inputs(batch=2, heads=8, length=512, dim=64):
    position = torch.arange(length)[:, None] + torch.rand(1)
    angle = position * 10000.0 ** (-torch.arange(0, dim, 2) / dim)
    q, k = torch.randn(batch, heads, length, dim), torch.randn(batch, heads, length, dim)
    return [q, k, torch.cos(angle), torch.sin(angle)]


def get_init_inputs():
    return []
