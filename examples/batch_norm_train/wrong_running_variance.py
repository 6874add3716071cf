"""Batch normalisation that keeps the wrong variance: wrong. Refuted at: correct

Its output is right. The running variance, which is used when training is over, is updated with the
biased variance instead of the unbiased one: nobody notices who looks at the output only.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = self.norm
        variance, mean = torch.var_mean(x, dim=0, correction=0)
        n.running_mean.lerp_(mean, n.momentum)
        n.running_var.lerp_(variance, n.momentum)
        n.num_batches_tracked += 1
        return (x - mean) * (torch.rsqrt(variance + n.eps) * n.weight) + n.bias
