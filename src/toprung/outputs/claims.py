"""What may be said of a speed-up: no more than was measured, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toprung.model.measurement import Measurement, Speedup

NAMES = {"eager": "PyTorch eager", "compile": "torch.compile", "vendor": "the vendor call"}


@dataclass(frozen=True)
class Claim:
    """A speed-up over a baseline; `confirmed` when paired rounds gave it."""

    baseline: str
    speedup: Speedup
    word: Literal["faster", "slower", "no difference can be told"]
    confirmed: bool

    @property
    def faster(self) -> bool:
        """Whether "faster" may be said without a reservation."""
        return self.confirmed and self.word == "faster"


def claim(measured: Measurement, baseline: str) -> Claim | None:
    """What may be said beside `baseline`; `None` where they were not compared."""
    speedup = measured.speedup.get(baseline)
    if speedup is None:
        return None
    low, high = speedup.ci
    word = "faster" if low > 1 else "slower" if high < 1 else "no difference can be told"
    return Claim(baseline, speedup, word, speedup.confirmed)


def main_claim(measured: Measurement) -> Claim | None:
    """The claim over the fastest baseline, among the confirmed ones where there are any."""
    found = {name: s for name, s in measured.speedup.items() if s.confirmed} or measured.speedup
    fastest = min(found, key=lambda name: found[name].ratio, default=None)
    return claim(measured, fastest) if fastest else None


def name_of(baseline: str) -> str:
    """A baseline as people call it."""
    return NAMES.get(baseline, baseline)
