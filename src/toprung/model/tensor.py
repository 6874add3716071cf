"""Tensors described without torch: element types, shapes, strides, and trees of them."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from .value import Json, Value

Precision = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"]

# torch's own names for element types, and their sizes in bytes.
ITEMSIZE: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "complex64": 8,
    "complex128": 16,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "bool": 1,
}

FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")

# The precision that a task has when only the type of its floating inputs is known.
PRECISION_OF_DTYPE: dict[str, Precision] = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
}

Size = Annotated[int, Field(ge=0)]


class TensorSpec(Value):
    """Element type, shape and strides (both in elements) of one dense tensor."""

    dtype: str
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]

    @model_validator(mode="after")
    def _consistent(self) -> TensorSpec:
        if self.dtype not in ITEMSIZE:
            raise ValueError(f"unknown element type {self.dtype!r}")
        if len(self.shape) != len(self.strides):
            raise ValueError(f"{len(self.shape)} sizes but {len(self.strides)} strides")
        return self

    @classmethod
    def contiguous(cls, dtype: str, shape: tuple[int, ...]) -> TensorSpec:
        """The spec of a row-major tensor."""
        strides: list[int] = []
        step = 1
        for size in reversed(shape):
            strides.append(step)
            step *= max(size, 1)
        return cls(dtype=dtype, shape=tuple(shape), strides=tuple(reversed(strides)))

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the last, both included; 0 for an empty tensor."""
        if self.numel == 0:
            return 0
        span = sum((size - 1) * step for size, step in zip(self.shape, self.strides, strict=True))
        return (span + 1) * ITEMSIZE[self.dtype]


class Tree(Value):
    """How tensors and plain values are nested; `specs[i]` describes the tensor leaf `{"t": i}`.

    `layout` is JSON: `{"t": i}` a tensor, `{"v": x}` a plain value (None, bool, int, float, str),
    `{"list": [...]}`, `{"tuple": [...]}`, `{"dict": [[key, node], ...]}`, `{"dtype": "float32"}`,
    and `{"float": "inf"}` for floats that JSON has no word for.
    """

    layout: Json
    specs: tuple[TensorSpec, ...] = ()
