"""Tensors described without torch: element types, shapes, strides, and trees of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
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

Size = Annotated[int, Field(ge=0, le=2**62)]


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


DEEPEST = 30
"""How deep a tree may be nested."""


class Tree(Value):
    """How tensors and plain values are nested; `specs[i]` describes the tensor leaf `{"t": i}`.

    `layout` is JSON: `{"t": i}` a tensor, counted from 0 in order, `{"v": x}` a plain value (None,
    bool, int, float, str), `{"list": [...]}`, `{"tuple": [...]}`, `{"dict": [[key, node], ...]}` with
    keys that are strings or numbers, `{"dtype": "float32"}`, and `{"float": "inf"}` for floats that
    JSON has no word for. Anything else is refused: trees come from hostile processes too.
    """

    layout: Json
    specs: tuple[TensorSpec, ...] = ()

    @model_validator(mode="after")
    def _grammar(self) -> Tree:
        leaves = list(_leaves(self.layout, 0))
        if leaves != list(range(len(self.specs))):
            raise ValueError(f"leaves {leaves[:8]} do not match {len(self.specs)} tensors")
        return self


def _leaves(node: Json, depth: int) -> Iterator[int]:
    """The tensor leaves below `node`, in order; raises `ValueError` outside the grammar."""
    if depth > DEEPEST or not isinstance(node, dict) or len(node) != 1:
        raise ValueError(f"not a node of a tree: {str(node)[:60]}")
    ((kind, content),) = node.items()
    if kind == "t" and type(content) is int:
        yield content
    elif kind in ("list", "tuple") and isinstance(content, list):
        for item in content:
            yield from _leaves(item, depth + 1)
    elif kind == "dict" and isinstance(content, list):
        for entry in content:
            if not (isinstance(entry, list) and len(entry) == 2 and _plain(entry[0])):
                raise ValueError(f"not an entry of a dict: {str(entry)[:60]}")
            yield from _leaves(entry[1], depth + 1)
    elif not (
        (kind == "v" and _plain(content))
        or (kind == "dtype" and content in ITEMSIZE)
        or (kind == "float" and content in ("inf", "-inf", "nan"))
    ):
        raise ValueError(f"not a node of a tree: {str(node)[:60]}")


def _plain(content: Json) -> bool:
    return content is None or isinstance(content, bool | int | float | str)
