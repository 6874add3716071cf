"""gelu by its tanh approximation: wrong. Refuted at: correct

Faster, and off by up to 5e-4: published benchmarks let it pass. The reference asks for the exact
gelu, and an approximation of a function is another function.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x + self.bias, approximate="tanh") + residual
