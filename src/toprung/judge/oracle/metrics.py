"""Error metrics of an output, added up block by block in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

Metrics = dict[str, float | None]


@dataclass
class Tally:
    """Sums from which every metric follows; `t` is what was wanted, `y` what was got."""

    count: int = 0
    error: float = 0.0
    error_square: float = 0.0
    max_error: float = 0.0
    max_relative: float = 0.0
    want_square: float = 0.0
    got_square: float = 0.0
    product: float = 0.0
    peak: float = 0.0

    def add(self, want: torch.Tensor, got: torch.Tensor, error: torch.Tensor, small: float) -> None:
        """A block of float64 values and |got - want|; wanted values below `small` have no
        relative error."""
        self.count += error.numel()
        size = want.abs()
        self.error += float(error.sum())
        self.error_square += float(error.square().sum())
        self.max_error = max(self.max_error, float(error.max()))
        self.max_relative = max(self.max_relative, float((error / size.clamp_min(small)).max()))
        self.want_square += float(want.square().sum())
        self.got_square += float(got.square().sum())
        self.product += float((want * got).sum())
        self.peak = max(self.peak, float(size.max()))

    @property
    def mse(self) -> float:
        """Mean squared error."""
        return self.error_square / max(self.count, 1)

    @property
    def psnr(self) -> float:
        """Peak signal to noise, 20 log10(max |t| / RMSE), in dB; infinite without error."""
        if self.error_square == 0:
            return math.inf
        return 20 * math.log10(self.peak / math.sqrt(self.mse)) if self.peak else -math.inf

    @property
    def cosine(self) -> float:
        """Cosine of the angle between the two; 1 where both are zero."""
        if self.want_square == 0 and self.got_square == 0:
            return 1.0
        norm = math.sqrt(self.want_square) * math.sqrt(self.got_square)
        return self.product / norm if norm else 0.0

    def metrics(self, reference_rmse: float | None) -> Metrics:
        """All of them; what is infinite or undefined is `None`."""
        rmse = math.sqrt(self.mse)
        figures: Metrics = {
            "max_abs": self.max_error,
            "max_rel": self.max_relative,
            "mae": self.error / max(self.count, 1),
            "mse": self.mse,
            "rmse": rmse,
            "psnr": self.psnr,
            "cosine": self.cosine,
            "reference_error": reference_rmse,
            "error_ratio": rmse / reference_rmse if reference_rmse else None,
        }
        return {k: v if v is not None and math.isfinite(v) else None for k, v in figures.items()}
