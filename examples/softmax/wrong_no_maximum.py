"""Row softmax without subtracting the maximum: wrong. Refuted at: correct

On the task's own normal inputs this is right to the last digits; exp overflows as soon as a value
exceeds 88, and then the row is NaN or 0.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        e = torch.exp(x)
        return e / e.sum(dim=1, keepdim=True)
