"""How far an output may be from the truth: the `strict` and the `kernelbench` preset.

`strict`
--------
The judge measures what rounding does to this task on these inputs, and allows a small multiple of
it. Written out, for one output, `t` its float64 truth and `y` the candidate's:

* u is the rounding unit (machine epsilon) of the output's type, or of the task's declared
  precision where that is coarser; w is that of float32, in which honest kernels of any smaller
  precision accumulate (of float64 in a float64 output). n is the number of terms in the longest
  sum of the reference (the inner size of a product, the length of a reduced row).
* floor = 1.5 u + (16 + 0.5 sqrt(n)) w, with 0.5 sqrt(n) at most 512: relative to the output, what
  is allowed even where the reference happens to be exact.
* own = RMS of (reference at the declared precision - t): the reference's own rounding error; for
  attention in 16 bits, that of its plain steps as well, with scores and weights kept in 16 bits.
* shaken = RMS change of the truth when every input and parameter is changed at random by up to half
  a unit of the declared precision: what rounding anything of the size of the inputs may do, as when
  a subtraction amplifies it, and what a kernel that keeps intermediate results in that precision
  may show. m = max(4, sqrt(n)) is how often that is allowed where the declared unit is w, and 2
  where it is coarser: there few steps round to it, and sums do not.
* A row is the shortest run of trailing dimensions with at least 32 elements. For each row,
  allowed = max(floor * RMS(t), 4 * own, m * shaken), where own and shaken are those of the
  row or, where that is more, RMS(t) times their median over rows relative to it.

Refused is an output with

1. sqrt(mean over rows of (RMS(y - t) / allowed)^2) > 1, or
2. an element with |y - t| > 5 * max(allowed, floor * (RMS(t) + |t|)), with allowed at least what
   it is, relative to RMS(t), in the most sensitive tenth of the rows (chance picks the row), or
3. a non-finite element whose truth (rounded to the output's type) is not the same, or
4. less than the task's `min_psnr` or `min_cosine`, where it has them.

What rounding alone decides is not held against a candidate. Elements at which the reference or the
shaken truth jumps (rounding, thresholds) may jump in the candidate too, and as many others as a
quarter of them: float32 inputs are shaken sixteen times harder than rounding would. Where whole
rows hang on near ties (their allowance exceeds a tenth of their RMS), half as many rows as those
may break rule 2. Integers and booleans are compared exactly, but for elements that change when
the inputs are shaken, which must stay near the values that were seen.

`rtol` and `atol_scale` of a task replace 5 * floor in rule 2 (on |t| and on the row's RMS), and
floor in rule 1 becomes their sum.

A timed call has no float64 truth: it is held against the reference at the declared precision, and
allowed is widened by the reference's own error, as it was found when the case was validated.

Why these figures (measured; RMS over the output's RMS, in units of the output's type)
-------------------------------------------------------------------------------------
float32, CPU: a sum in one float32 accumulator is 0.10 to 0.18 sqrt(n) off (3.3 at n = 1,024, 26 at
32,768, 184 at 2^20), whether the terms share a sign or not; 0.5 sqrt(n) leaves a factor of 2.7.
Elementwise functions written plainly are at most 0.7 off on unit-scale inputs; tanh as
1 - 2 / (1 + exp(2 x)) is 24 off at a scale of 1/64, the smallest that input families use, and
ELU as exp(x) - 1 is 6.6: 16 lets them pass. A tanh-approximated GELU is 1,660 off, TF32 2,400 to
6,500. bfloat16 and float16, H200: 19 honest kernels are at most 0.92 off or 1.3 times the
reference's own error; the subtlest cheats 2.4 and 11 times. 1.5 and 4 lie between, near the
geometric means.

With the rule as it stands, in shares of what is allowed, on the CPU: 58 honest kernels of 24 tasks
(tests/unit/test_oracle_honest.py; every family, ten seeds) need at most 0.73 (tanh as above), the
next 0.58; 102 wrong ones (test_oracle_wrong.py) reach at least 1.1 (attention whose weights are in
fp8), 1.24 (16-bit products accumulated in 16 bits) and 2.1; in float32 the nearest is at 9.7.

Refused although somebody may call it honest: one float32 accumulator for 10^6 terms (3e-4 off on
heavy tails), and Strassen's product, whose error in a small row is that of the largest row.

`kernelbench`
-------------
torch.allclose(reference, candidate, atol, rtol) against the reference at the declared precision,
with 1e-4 for float32 (and float64) and 1e-2 for float16 and bfloat16, as KernelBench publishes it;
`rtol` and `atol_scale` replace the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from toprung.model.task import Tolerance
from toprung.model.tensor import Precision

EPS: dict[Precision, float] = {
    "fp64": 2.0**-52,
    "fp32": 2.0**-23,
    "tf32": 2.0**-10,
    "fp16": 2.0**-10,
    "bf16": 2.0**-7,
    "fp8_e4m3": 2.0**-3,
    "fp8_e5m2": 2.0**-2,
}

OUTPUT_UNITS = 1.5
PLAIN_UNITS = 16.0
SUM_UNITS = 0.5
MOST_SUM_UNITS = 512.0
OWN_MULTIPLE = 4.0
COARSE_MULTIPLE = 2.0
PEAK = 5.0
"""Elementwise bound over RMS: of 10^7 Gaussian errors of an honest kernel (which is well below
its bound) the largest is 5.3 standard deviations."""

KERNELBENCH = {torch.float16: 1e-2, torch.bfloat16: 1e-2}


@dataclass(frozen=True)
class Rule:
    """The tolerance of one output: which numbers apply to its type and to this task."""

    tolerance: Tolerance
    precision: Precision
    dtype: torch.dtype

    @property
    def unit(self) -> float:
        """Rounding unit of the output."""
        return max(torch.finfo(self.dtype).eps, EPS[self.precision])

    @property
    def working_unit(self) -> float:
        """Rounding unit in which honest kernels accumulate."""
        return EPS["fp64"] if self.unit == EPS["fp64"] else EPS["fp32"]

    def natural_floor(self, terms: int) -> float:
        """The preset's own floor, relative to the output; `terms` are added up per element."""
        sums = min(SUM_UNITS * math.sqrt(terms), MOST_SUM_UNITS)
        return OUTPUT_UNITS * self.unit + (PLAIN_UNITS + sums) * self.working_unit

    def floor(self, terms: int) -> float:
        """Rule 1: relative to the RMS of a row."""
        if self.overridden:
            return sum(self.elementwise(terms))
        return self.natural_floor(terms)

    def elementwise(self, terms: int) -> tuple[float, float]:
        """Rule 2: relative to an element, and to the RMS of its row."""
        own = PEAK * self.natural_floor(terms)
        rtol, scale = self.tolerance.rtol, self.tolerance.atol_scale
        return (own if rtol is None else rtol, own if scale is None else scale)

    @property
    def overridden(self) -> bool:
        """Whether the task brings numbers of its own."""
        return self.tolerance.rtol is not None or self.tolerance.atol_scale is not None

    def kernelbench(self, rms: float) -> tuple[float, float]:
        """(atol, rtol) of that preset; `rms` is that of the expected output."""
        tolerance = KERNELBENCH.get(self.dtype, 1e-4)
        atol, rtol = tolerance, tolerance
        if self.tolerance.preset == "kernelbench":
            if self.tolerance.atol_scale is not None:
                atol = self.tolerance.atol_scale * rms
            if self.tolerance.rtol is not None:
                rtol = self.tolerance.rtol
        return atol, rtol

    def shaken_multiple(self, terms: int) -> float:
        """m: how often the effect of a unit of the declared precision in the inputs is allowed."""
        if EPS[self.precision] > EPS["fp32"]:
            return COARSE_MULTIPLE
        return max(OWN_MULTIPLE, min(math.sqrt(terms), MOST_SUM_UNITS / SUM_UNITS))

    @property
    def tiny(self) -> float:
        """Absolute: what flushing subnormals to zero may cost."""
        info = torch.finfo(self.dtype)
        return info.smallest_normal if self.dtype != torch.float16 else 2 * 2.0**-24
