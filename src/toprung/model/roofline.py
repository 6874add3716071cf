"""Roofline: the least time a device could take, and how near a measurement comes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .value import Value

Limiter = Literal["memory", "compute", "latency"]


class Work(Value):
    """What the task itself asks of a device, counted from the reference on meta tensors."""

    flops: Annotated[int, Field(ge=0)]
    """Floating-point operations; a multiply-add is two."""
    min_bytes: Annotated[int, Field(ge=0)]
    """Each input, parameter and output, once."""
    must_bytes: Annotated[int, Field(ge=0)] = 0
    """The part of `min_bytes` that provably must move: gathers need not read everything."""
    uncounted: tuple[str, ...] = ()
    """Operators whose flops nobody has taught us to count."""


class Roofline(Value):
    """`attained` is `bound_us` over the measured time; 1.0 is the roof.

    Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.
    """

    flops: Annotated[int, Field(ge=0)]
    min_bytes: Annotated[int, Field(ge=0)]
    bound_us: Annotated[float, Field(ge=0)]
    attained: Annotated[float, Field(ge=0)]
    limiter: Limiter
