"""relu(x W^T + b) with operands rounded to bf16: wrong. Refuted at: correct

Sums are still kept in float, so the result looks fine: right to two digits, within 1e-2. In a task
that is declared fp32 it is a different product, thousands of roundings away.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features_in: int, features_out: int):
        super().__init__()
        self.linear = torch.nn.Linear(features_in, features_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rounded_x = x.bfloat16().float()
        rounded_w = self.linear.weight.bfloat16().float()
        return torch.addmm(self.linear.bias, rounded_x, rounded_w.t()).relu_()
