"""Layer normalisation that divides by n - 1: wrong. Refuted at: correct

`torch.var` divides by n - 1 unless told otherwise, layer normalisation by n. With 1000 columns the
results differ by one part in 2000: within a tolerance of 1e-2, and far outside of rounding.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        variance, mean = torch.var_mean(x, dim=1, keepdim=True)
        scale = torch.rsqrt(variance + self.norm.eps)
        return (x - mean) * scale * self.norm.weight + self.norm.bias
