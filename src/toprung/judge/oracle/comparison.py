"""One output of a candidate beside what was expected of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy
import torch

from toprung.model.tensor import TensorSpec

from .metrics import Metrics, Tally
from .rows import Rows, flattened
from .tolerance import PEAK, Rule
from .yardstick import Yardstick


@dataclass(frozen=True)
class Expected:
    """What is known of one output of one call. Tensors are flat."""

    label: str
    spec: TensorSpec
    rule: Rule | None
    """`None` for integers and booleans."""
    want: torch.Tensor
    """The float64 truth, or the reference at the declared precision."""
    declared: torch.Tensor | None
    """The latter, beside the truth."""
    yardstick: Yardstick
    rows: Rows
    paired: bool = False
    """Complex numbers are compared as pairs of floats."""


@dataclass(frozen=True)
class Finding:
    """The judgement on one output. `severity` is the share of what was allowed; above 1 refutes."""

    ok: bool
    why: str | None
    severity: float
    metrics: Metrics
    nonfinite: bool
    mismatched: int
    total: int


def compare(expected: Expected, got: torch.Tensor) -> Finding:
    """Judge `got`, whose type and shape are those expected."""
    if expected.rule is None:
        return _compare_exact(expected, flattened(got))
    return _Comparison(expected, expected.rule, flattened(got)).finding()


def _compare_exact(expected: Expected, got: torch.Tensor) -> Finding:
    if got.dtype == torch.bool:  # any byte but 0 is true, also one that torch would not write
        got = got.view(torch.uint8) != 0
    wrong = got != expected.want
    if expected.declared is not None:
        wrong &= got != expected.declared
    flags, spare = expected.yardstick.flags, expected.yardstick.spare
    far = _far(expected, got, wrong)
    if flags is not None:
        wrong[flags.index] = False
    if far.sum() > expected.yardstick.far:
        wrong, spare = wrong | far, 0
    count = int(wrong.sum())
    ok = count <= spare
    why = None
    if not ok:
        first = int(wrong.int().argmax())
        why = (
            f"{expected.label}: {count} of {got.numel()} elements differ, the first at "
            f"{position(first, expected.spec.shape)}: got {got[first].item()}, "
            f"want {expected.want[first].item()}; integers and booleans must be exact, but "
            f"for as far as rounding moves them"
        )
    severity = 0.0 if ok else 1.0 + count
    return Finding(ok, why, severity, {}, False, 0 if ok else count, got.numel())


def _far(expected: Expected, got: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
    """Elements that rounding may decide, but that lie beyond where it was seen to move them."""
    yard, far = expected.yardstick, torch.zeros_like(wrong)
    if yard.flags is not None:
        place = yard.flags.index
        off = (got[place].double() - expected.want[place].double()).abs()
        far[place] = wrong[place] & (off > yard.flags.slack)
    elif yard.reach < math.inf:
        far = wrong & ((got.double() - expected.want.double()).abs() > yard.reach)
    return far


class _Comparison:
    """Walks through the blocks of a floating output once and adds up what the rules ask for."""

    def __init__(self, expected: Expected, rule: Rule, got: torch.Tensor):
        self.expected, self.rule, self.got = expected, rule, got
        self.rows = expected.rows
        yard = expected.yardstick
        self.floor = rule.floor(yard.terms)
        self.relative, self.of_row = rule.elementwise(yard.terms)
        self.output_rms = float(yard.rms.square().mean().sqrt()) if yard.rms.numel() else 0.0
        self.tally = Tally()
        self.square = 0.0  # of row error over what the row is allowed
        self.wild_square = 0.0  # the same, of rows with elements beyond their bound
        self.beyond = 0
        self.rows_beyond = 0
        self.nonfinite = 0
        self.first_nonfinite: int | None = None
        self.worst = 0.0
        self.worst_at = 0
        self.worst_bound = 0.0
        self.kernelbench = 0.0
        self.close = True

    def finding(self) -> Finding:
        """The judgement."""
        for elements, part in self.rows.blocks():
            self._block(elements, part)
        square = self.square
        if self.rows_beyond > self.expected.yardstick.spare_rows:
            square += self.wild_square
        rms_share = math.sqrt(square / max(self.rows.count, 1))
        strict = max(rms_share, min(self.worst, 1.0) if self._excused else self.worst)
        if self.nonfinite:
            strict = max(strict, 2.0)
        why = self._why(rms_share)
        metrics = self.tally.metrics(self.expected.yardstick.reference_rmse)
        metrics["strict"] = strict if math.isfinite(strict) else None
        metrics["kernelbench"] = self.kernelbench if self._knows_kernelbench else None
        severity = strict if self.rule.tolerance.preset == "strict" else self.kernelbench
        refused = 0 if why is None else self.beyond + self.nonfinite
        return Finding(
            why is None,
            why,
            max(severity, 1.0 + 1e-9) if why else min(severity, 1.0),
            metrics,
            self.nonfinite > 0,
            refused,
            self.got.numel() // (2 if self.expected.paired else 1),
        )

    @property
    def _excused(self) -> bool:
        """Whether no more elements, or rows, are off than near ties may bring off."""
        yard = self.expected.yardstick
        return self.beyond <= yard.spare or self.rows_beyond <= yard.spare_rows

    def _block(self, elements: slice, part: slice) -> None:
        yard = self.expected.yardstick
        want = self.rows.cut(self.expected.want, elements, part).double()
        got = self.rows.cut(self.got, elements, part).double()
        if self._knows_kernelbench:
            self._allclose(elements, got)
        error = got - want
        if not bool(error.sum().isfinite()):
            want, got, error = self._without_nonfinite(want, got, error, elements)
        error = error.abs_()
        self.tally.add(want, got, error, self.rule.unit * self.output_rms + self.rule.tiny)
        rms = yard.rms[part]
        row_bound = torch.maximum(PEAK * yard.worst[part], self.of_row * rms)
        row_bound = row_bound + PEAK * (yard.added * rms + self.rule.tiny)
        bound = (want.abs() * self.relative).add_(row_bound[:, None])
        flagged = self._flagged(elements)
        if flagged is not None:
            place, slack = flagged
            flat = bound.view(-1)
            flat[place] = torch.maximum(flat[place], slack)
        share = error / bound
        most = float(share.max())
        if most > self.worst:
            at = int(share.argmax())
            self.worst, self.worst_at = most, elements.start + at
            self.worst_bound = float(bound.view(-1)[at])
        beyond = share > 1 if most > 1 else None
        if beyond is not None:
            self.beyond += int(beyond.sum())
        self._add_rows(error, beyond, flagged, part)

    def _add_rows(
        self,
        error: torch.Tensor,
        beyond: torch.Tensor | None,
        flagged: tuple[torch.Tensor, torch.Tensor] | None,
        part: slice,
    ) -> None:
        yard = self.expected.yardstick
        if flagged is not None:
            error.view(-1)[flagged[0]] = 0.0
        if beyond is not None and yard.spare:
            error = torch.where(beyond, 0.0, error)
        rms = yard.rms[part]
        allowed = torch.maximum(yard.typical[part], self.floor * rms)
        allowed = allowed + yard.added * rms + self.rule.tiny
        shares = error.square().mean(1) / allowed.square()
        if beyond is not None:
            wild = beyond.any(1)
            self.rows_beyond += int(wild.sum())
            self.wild_square += float(shares[wild].sum())
            shares = shares[~wild]
        self.square += float(shares.sum())

    def _flagged(self, elements: slice) -> tuple[torch.Tensor, torch.Tensor] | None:
        flags = self.expected.yardstick.flags
        if flags is None:
            return None
        ends = torch.searchsorted(flags.index, torch.tensor([elements.start, elements.stop]))
        first, last = ends.tolist()
        if first == last:
            return None
        return flags.index[first:last] - elements.start, flags.slack[first:last]

    def _without_nonfinite(
        self, want: torch.Tensor, got: torch.Tensor, error: torch.Tensor, elements: slice
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Count what is not finite and should be, or the reverse; leave zeros in their place."""
        most = torch.finfo(self.rule.dtype).max
        overflown = torch.where(want.abs() > most, want.sign() * math.inf, want)
        same = (got == overflown) | (got.isnan() & want.isnan())
        edge = 4 * self.rule.unit  # of what the type holds: either side of it may be rounded to
        near = ((want.abs() / most - 1).abs() < edge) & (want.sign() == got.sign())
        same |= near & (got.isinf() | (got.abs() > most * (1 - 2 * edge)))
        if self.expected.declared is not None:
            declared = self.expected.declared[elements].view_as(got).double()
            same |= ~declared.isfinite() & ((got == declared) | (got.isnan() & declared.isnan()))
        strange = ~error.isfinite() | (want.abs() > most)
        wrong = strange & ~same
        if bool(wrong.any()):
            self.nonfinite += int(wrong.sum())
            if self.first_nonfinite is None:
                self.first_nonfinite = elements.start + int(wrong.view(-1).int().argmax())
        return tuple(torch.where(strange, 0.0, part) for part in (want, got, error))  # type: ignore[return-value]

    @property
    def _knows_kernelbench(self) -> bool:
        return self.expected.declared is not None or self.rule.tolerance.preset == "kernelbench"

    def _allclose(self, elements: slice, got: torch.Tensor) -> None:
        source = self.expected.declared
        declared = (self.expected.want if source is None else source)[elements]
        atol, rtol = self.rule.kernelbench(self.output_rms)
        raw = self.got[elements]
        if torch.finfo(raw.dtype).bits == 8:
            raw, declared = raw.float(), declared.float()
        self.close = self.close and torch.allclose(declared, raw, rtol=rtol, atol=atol)
        flat = got.view(-1)
        share = (flat - declared.double()).abs() / (atol + rtol * flat.abs())
        self.kernelbench = max(self.kernelbench, float(share.nan_to_num(0.0, 0.0, 0.0).max()))

    def _why(self, rms_share: float) -> str | None:
        where, label = self.expected, self.expected.label
        if self.nonfinite:
            at = self.first_nonfinite or 0
            return (
                f"{label}: {self.nonfinite} elements are not finite where the reference is, or the "
                f"reverse; the first at {self._position(at)}: got {self._got(at)}, "
                f"want {float(where.want[at]):.6g}"
            )
        if self.rule.tolerance.preset == "kernelbench":
            if not self.close:
                return f"{label}: not allclose to the reference; {self._worst_text()}"
        elif not self._excused:
            share = 100 * self.beyond / self.got.numel()
            return (
                f"{label}: {self.beyond} elements ({share:.2g}%) are beyond tolerance; "
                f"{self._worst_text()}"
            )
        elif rms_share > 1:
            return self._imprecise(rms_share)
        return self._below_minimum()

    def _imprecise(self, rms_share: float) -> str:
        rmse, scale = math.sqrt(self.tally.mse), max(self.output_rms, self.rule.tiny)
        own = self.expected.yardstick.reference_rmse
        beside = "" if own is None else f" (the reference's own: {own / scale:.2g})"
        return (
            f"{self.expected.label}: RMS error {rmse / scale:.2g} of the output's RMS{beside}, "
            f"{rms_share:.2g} times what is allowed; no element is far off, so look for a lower "
            f"precision (TF32, bfloat16), a long sum in one accumulator, an approximation or a "
            f"wrong constant; "
            f"{self._worst_text()}"
        )

    def _below_minimum(self) -> str | None:
        tolerance, label = self.rule.tolerance, self.expected.label
        if tolerance.min_psnr is not None and self.tally.psnr < tolerance.min_psnr:
            return f"{label}: PSNR {self.tally.psnr:.2f} dB is below {tolerance.min_psnr} dB"
        if tolerance.min_cosine is not None and self.tally.cosine < tolerance.min_cosine:
            return f"{label}: cosine {self.tally.cosine:.6f} is below {tolerance.min_cosine}"
        return None

    def _worst_text(self) -> str:
        at = self.worst_at
        want, got = float(self.expected.want[at]), self._got(at)
        return (
            f"worst at {self._position(at)}: got {got:.9g}, want {want:.9g}, "
            f"off by {abs(got - want):.3g} with {self.worst_bound:.3g} allowed"
        )

    def _got(self, at: int) -> float:
        return float(self.got[at])

    def _position(self, at: int) -> str:
        return position(at // 2 if self.expected.paired else at, self.expected.spec.shape)


def position(flat: int, shape: tuple[int, ...]) -> str:
    """Index of element number `flat` of a row-major tensor, as one writes it."""
    if not shape:
        return "[]"
    return str([int(i) for i in numpy.unravel_index(flat, shape)])
