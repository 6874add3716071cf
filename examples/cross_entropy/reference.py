"""Cross entropy against integer classes: the reference."""

import torch


class Model(torch.nn.Module):
    """Logits (rows, classes) and int64 targets (rows,) in, one number out."""

    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits, targets)


def get_inputs(rows=256, classes=4096):
    return [torch.randn(rows, classes), torch.randint(0, classes, (rows,))]


def get_init_inputs():
    return []
