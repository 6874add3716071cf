"""relu(x W^T + b): the reference."""

import torch

IN, OUT = 520, 772


class Model(torch.nn.Module):
    """(rows, features in) to (rows, features out)."""

    def __init__(self, features_in: int, features_out: int):
        super().__init__()
        self.linear = torch.nn.Linear(features_in, features_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def get_inputs(rows=256):
    return [torch.randn(rows, IN)]


def get_init_inputs():
    return [IN, OUT]
