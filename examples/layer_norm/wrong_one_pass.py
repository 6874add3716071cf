"""Layer normalisation with the variance as E[x^2] - E[x]^2: wrong. Refuted at: correct

One pass instead of two, and right as long as the mean is small beside the deviation. Where it is
large, the two terms agree in all the digits that a float has, and their difference is noise.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(dim=1, keepdim=True)
        variance = (x * x).mean(dim=1, keepdim=True) - mean * mean
        scale = torch.rsqrt(variance.clamp_min(0) + self.norm.eps)
        return (x - mean) * scale * self.norm.weight + self.norm.bias
