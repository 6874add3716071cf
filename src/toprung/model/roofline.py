"""Roofline: the least time a device could take, and how near a measurement comes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .value import Value

Limiter = Literal["memory", "compute", "latency"]


class Work(Value):
    """What the task itself asks of a device, counted from the reference on meta tensors."""

    flops: Annotated[int, Field(ge=0)]
    """Floating-point operations; a multiply-add is two."""
    product_flops: Annotated[int, Field(ge=0)] = 0
    """The part of `flops` in matrix products and convolutions, which matrix units can do."""
    min_bytes: Annotated[int, Field(ge=0)]
    """Each input, parameter and output, once."""
    written_bytes: Annotated[int, Field(ge=0)] = 0
    """The part of `min_bytes` that is written."""
    must_bytes: Annotated[int, Field(ge=0)] = 0
    """The part of `min_bytes` that provably must move: gathers need not read everything."""
    uncounted: tuple[str, ...] = ()
    """Operators whose flops nobody has taught us to count."""

    @model_validator(mode="after")
    def _parts_within_wholes(self) -> Work:
        if self.product_flops > self.flops:
            raise ValueError(f"{self.product_flops} flops in products, {self.flops} in all")
        if max(self.must_bytes, self.written_bytes) > self.min_bytes:
            raise ValueError(
                f"must {self.must_bytes} or written {self.written_bytes} bytes exceed {self.min_bytes}"
            )
        return self


class Roofline(Value):
    """`attained` is `bound_us` over the measured time; 1.0 is the roof.

    Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.
    """

    flops: Annotated[int, Field(ge=0)]
    min_bytes: Annotated[int, Field(ge=0)]
    bound_us: Annotated[float, Field(ge=0)]
    attained: Annotated[float, Field(ge=0)]
    limiter: Limiter
