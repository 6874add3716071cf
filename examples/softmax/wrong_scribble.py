"""Row softmax that works in its input: wrong. Refuted at: honest

Subtracting the maximum in place saves a buffer, and the result is right. But the input belongs to
the caller, who finds other numbers in it afterwards.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x -= x.amax(dim=1, keepdim=True)
        e = torch.exp(x)
        return e / e.sum(dim=1, keepdim=True)
