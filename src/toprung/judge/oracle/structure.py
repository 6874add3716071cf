"""What holds for an input in every draw: its structure, which input families must keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

CLOSE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}
"""How near a sum must come to 1, per type, to be called a sum of probabilities."""

LARGEST_FACTORISED = 512
FEW = 16
"""A float input with no more distinct values than this is a choice among them, not a quantity."""


@dataclass(frozen=True)
class Structure:
    """Findings about one input tensor; `low` and `high` are its observed finite range."""

    kind: Literal["float", "integer", "boolean", "complex"]
    low: float = 0.0
    high: float = 0.0
    fixed: bool = False
    """The same in every draw: a table or a mask, not data."""
    finite: bool = True
    discrete: bool = False
    one_hot: bool = False
    probabilities: bool = False
    log_probabilities: bool = False
    unit_norm: bool = False
    symmetric: bool = False
    definite: bool = False
    triangular: bool = False
    sparse: bool = False
    """A tenth and more of the elements are zero."""
    sorted: bool = False
    distinct: bool = False
    """No integer occurs twice: a permutation, or positions."""

    @property
    def sign(self) -> Literal["any", "nonnegative", "nonpositive"]:
        """Which signs occur."""
        if self.low >= 0:
            return "nonnegative"
        return "nonpositive" if self.high <= 0 else "any"

    @property
    def zero_free(self) -> bool:
        """Whether zero is outside the observed range."""
        return self.low > 0 or self.high < 0

    @property
    def rigid(self) -> str | None:
        """Why no other values may be put in place of the task's own; `None` where they may."""
        names = {
            "fixed": self.fixed,
            "integers": self.kind == "integer",
            "a boolean mask": self.kind == "boolean",
            "complex": self.kind == "complex",
            "not finite": not self.finite,
            "one-hot": self.one_hot,
            "a few distinct values": self.discrete,
            "probabilities": self.probabilities,
            "log-probabilities": self.log_probabilities,
            "of unit norm": self.unit_norm,
            "positive definite": self.definite,
        }
        return next((name for name, holds in names.items() if holds), None)

    @property
    def label(self) -> str | None:
        """The structure in words; `None` for plain numbers of either sign."""
        words = [
            word
            for word, holds in {
                self.rigid or "": self.rigid is not None,
                "symmetric": self.symmetric and not self.definite,
                "triangular": self.triangular,
                "sparse": self.sparse and not self.triangular and self.rigid is None,
                "sorted": self.sorted,
                self.sign: self.sign != "any" and self.rigid is None,
            }.items()
            if holds
        ]
        return ", ".join(words) or None


def observe(first: torch.Tensor, second: torch.Tensor) -> Structure:
    """The structure that two draws share."""
    if first.dtype == torch.bool:
        return Structure("boolean", 0, 1, fixed=torch.equal(first, second))
    if first.is_complex():
        return Structure("complex", fixed=torch.equal(first, second))
    if not first.numel():
        return Structure("float" if first.is_floating_point() else "integer", fixed=True)
    fixed = torch.equal(first.nan_to_num(), second.nan_to_num())
    if not first.is_floating_point():
        return _of_integers(first, second, fixed)
    if first.dtype.itemsize == 1:
        first, second = first.float(), second.float()
    finite = bool(first.isfinite().all()) and bool(second.isfinite().all())
    if not finite:
        return Structure("float", fixed=fixed, finite=False)
    both = (first, second)
    low, high = (float(f(t)) for f, t in zip((torch.min, torch.max), both, strict=True))
    low, high = min(low, float(second.min())), max(high, float(first.max()))
    symmetric = all(_symmetric(t) for t in both)
    return Structure(
        "float",
        low,
        high,
        fixed=fixed,
        discrete=all(_discrete(t) for t in both),
        one_hot=all(_one_hot(t) for t in both),
        probabilities=low >= 0 and all(_sums_to_one(t) for t in both),
        log_probabilities=high <= 0 and all(_sums_to_one(t.exp()) for t in both),
        unit_norm=all(_unit_norm(t) for t in both),
        symmetric=symmetric,
        definite=symmetric and all(_definite(t) for t in both),
        triangular=all(_triangular(t) for t in both),
        sparse=all(int((t == 0).sum()) * 10 >= t.numel() for t in both),
        sorted=all(_sorted(t) for t in both),
    )


def _of_integers(first: torch.Tensor, second: torch.Tensor, fixed: bool) -> Structure:
    both = (first, second)
    return Structure(
        "integer",
        min(int(t.min()) for t in both),
        max(int(t.max()) for t in both),
        fixed=fixed,
        one_hot=all(_one_hot(t) for t in both),
        sorted=all(_sorted(t) for t in both),
        distinct=all(t.numel() > 1 and t.unique().numel() == t.numel() for t in both),
    )


def _discrete(t: torch.Tensor) -> bool:
    if t.numel() < 4 * FEW:
        return bool((t == t.round()).all()) and t.numel() > 1
    sample = t.flatten()[:65536]
    return sample.unique().numel() <= FEW or bool((sample == sample.round()).all())


def _one_hot(t: torch.Tensor) -> bool:
    if t.dim() < 1 or t.shape[-1] < 2:
        return False
    return bool(((t == 0) | (t == 1)).all()) and bool((t.sum(-1) == 1).all())


def _sums_to_one(t: torch.Tensor) -> bool:
    close = CLOSE.get(t.dtype, 3e-2)
    wide = t.float() if t.dtype != torch.float64 else t
    return any(
        t.shape[dim] > 1 and bool(((wide.sum(dim) - 1).abs() < close).all())
        for dim in range(t.dim())
    )


def _unit_norm(t: torch.Tensor) -> bool:
    if t.dim() < 2 or t.shape[-1] < 2:
        return False
    wide = t.float() if t.dtype != torch.float64 else t
    return bool(((wide.norm(dim=-1) - 1).abs() < CLOSE.get(t.dtype, 3e-2)).all())


def _square(t: torch.Tensor) -> bool:
    return t.dim() >= 2 and t.shape[-1] == t.shape[-2] and t.shape[-1] > 2


def _symmetric(t: torch.Tensor) -> bool:
    if not _square(t):
        return False
    largest = float(t.abs().max())
    return bool(((t - t.mT).abs() <= 1e-5 * largest).all()) and not bool(
        (t == t.flatten()[0]).all()
    )


def _definite(t: torch.Tensor) -> bool:
    if t.shape[-1] > LARGEST_FACTORISED:
        return False
    return not bool(torch.linalg.cholesky_ex(t.double()).info.any())


def _triangular(t: torch.Tensor) -> bool:
    if not _square(t):
        return False
    return not bool(t.triu(1).any()) or not bool(t.tril(-1).any())


def _sorted(t: torch.Tensor) -> bool:
    if t.dim() < 1 or t.shape[-1] < 4:
        return False
    low, high = t[..., :-1], t[..., 1:]
    return bool((low <= high).all()) or bool((low >= high).all())
