"""Running sums by blocks, with a carry that is dropped: wrong. Refuted at: correct

Blocks of 2048 columns are summed on their own, and each gets the total of the block before it, but
not of those further back. Up to 4096 columns that is right.
"""

import torch

BLOCK = 2048


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [torch.cumsum(part, dim=1) for part in x.split(BLOCK, dim=1)]
        totals = [part[:, -1:].clone() for part in parts]
        for part, before in zip(parts[1:], totals):
            part += before
        return torch.cat(parts, dim=1)
