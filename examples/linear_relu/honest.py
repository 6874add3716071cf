"""relu(x W^T + b) in plain PyTorch: honest. The activation works in place on the fresh product.

A rewrite in PyTorch is a candidate like any other. The product itself is best left to the library:
what can be saved is the second buffer. (Under `library_calls = "forbid"` this would be refuted.)
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features_in: int, features_out: int):
        super().__init__()
        self.linear = torch.nn.Linear(features_in, features_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.linear.bias, x, self.linear.weight.t()).relu_()
