"""Measurement: how long a candidate takes, beside what, and how sure that is."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .value import Value

Microseconds = Annotated[float, Field(ge=0)]
Ratio = Annotated[float, Field(gt=0)]
Bytes = Annotated[int, Field(ge=0)]


class Timing(Value):
    """A median with its interval, which includes the clock's resolution."""

    median_us: Microseconds
    ci_us: tuple[Microseconds, Microseconds]

    @model_validator(mode="after")
    def _ordered(self) -> Timing:
        low, high = self.ci_us
        if not low <= self.median_us <= high:
            raise ValueError(f"median {self.median_us} us lies outside its interval {self.ci_us}")
        return self


class Speedup(Value):
    """Baseline time over candidate time; above 1 is faster."""

    ratio: Ratio
    ci: tuple[Ratio, Ratio]
    confirmed: bool = False
    """Whether fresh paired rounds over several processes gave it; else one process a side did."""

    @model_validator(mode="after")
    def _ordered(self) -> Speedup:
        low, high = self.ci
        if not low <= self.ratio <= high:
            raise ValueError(f"ratio {self.ratio} lies outside its interval {self.ci}")
        return self

    @property
    def faster(self) -> bool:
        """True only when the whole interval lies above 1."""
        return self.ci[0] > 1.0


class Measurement(Timing):
    """What the `bench` rung leaves, for one case or as the geometric mean over cases.

    `median_us` is first device activity to last, `busy_us` the time in which the device worked,
    `wall_us` what the judge saw from outside less its calibrated overhead.
    """

    busy_us: Microseconds
    wall_us: Microseconds
    resolution_us: Microseconds
    samples_us: tuple[Microseconds, ...] = ()
    clock: Literal["cupti", "event", "monotonic"]
    cache: Literal["cold", "warm"]
    confirmed: bool = False
    """True when fresh paired rounds over several processes gave at least one `speedup`."""
    peak_bytes: Bytes
    baselines: dict[str, Timing] = {}
    speedup: dict[str, Speedup] = {}

    @model_validator(mode="after")
    def _speedups_have_baselines(self) -> Measurement:
        lone = sorted(set(self.speedup) - set(self.baselines))
        if lone:
            raise ValueError(f"speedup without a baseline: {', '.join(lone)}")
        if self.confirmed != any(speedup.confirmed for speedup in self.speedup.values()):
            raise ValueError("confirmed must say whether a speedup is")
        return self
