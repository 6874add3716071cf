"""silu(gate) * up in bf16: the reference."""

import torch


class Model(torch.nn.Module):
    """Two (rows, dim) in, one out."""

    def forward(self, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.silu(gate) * up


def get_inputs(rows=512, dim=2048):
    return [torch.randn(rows, dim, dtype=torch.bfloat16) for _ in range(2)]


def get_init_inputs():
    return []
