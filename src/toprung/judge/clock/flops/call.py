"""One call of a torch operator as the formulas see it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Flops:
    """Operations in matrix products and convolutions, and all others."""

    product: int = 0
    other: int = 0

    def __add__(self, more: Flops) -> Flops:
        return Flops(self.product + more.product, self.other + more.other)

    @property
    def total(self) -> int:
        """Both together."""
        return self.product + self.other


class Call:
    """Arguments by their names in the operator's schema, and the result."""

    def __init__(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any):
        self.func = func
        self.out = out
        self._args = tuple(args)
        self._kwargs = dict(kwargs)

    @cached_property
    def name(self) -> str:
        """The operator's name without namespace, overload and the mark of the in-place form."""
        name = str(self.func.__name__).split(".")[0]
        inplace = name.endswith("_") and not name.endswith("__")
        return name[:-1] if inplace else name

    @cached_property
    def namespace(self) -> str:
        """`aten` for torch's own operators."""
        return str(getattr(self.func, "namespace", "higher_order"))

    @property
    def label(self) -> str:
        """The name for people, with the namespace of operators that are not torch's own."""
        return self.name if self.namespace == "aten" else f"{self.namespace}.{self.name}"

    @cached_property
    def overload(self) -> str:
        """E.g. `dim` of `aten.max.dim`."""
        return str(getattr(self.func, "_overloadname", ""))

    @cached_property
    def named(self) -> dict[str, Any]:
        """Every argument that was passed, by its schema name."""
        schema = getattr(self.func, "_schema", None)
        names = (
            [a.name for a in schema.arguments]
            if schema
            else [str(i) for i in range(len(self._args))]
        )
        return {**dict(zip(names, self._args, strict=False)), **self._kwargs}

    def get(self, name: str, default: Any = None) -> Any:
        """The argument `name`, or the schema's own default, or `default`."""
        if name in self.named:
            return self.named[name]
        for argument in getattr(getattr(self.func, "_schema", None), "arguments", ()):
            if argument.name == name and argument.has_default_value():
                return argument.default_value
        return default

    def tensor(self, *names: str) -> torch.Tensor:
        """The first of the named arguments that is a tensor."""
        for name in names:
            value = self.named.get(name)
            if isinstance(value, torch.Tensor):
                return value
        raise KeyError(f"{self.name}: no tensor among the arguments {names}")

    @cached_property
    def inputs(self) -> list[torch.Tensor]:
        """All tensors among the arguments, in order."""
        return tensors_in((self._args, self._kwargs))

    @cached_property
    def outputs(self) -> list[torch.Tensor]:
        """All tensors in the result, in order."""
        return tensors_in(self.out)

    @cached_property
    def numel(self) -> int:
        """Elements of the first output."""
        return self.outputs[0].numel() if self.outputs else 0

    @cached_property
    def first(self) -> torch.Tensor:
        """The first tensor among the arguments."""
        return self.inputs[0]

    @cached_property
    def is_floating(self) -> bool:
        """Whether a floating or complex tensor takes part."""
        return any(
            t.dtype.is_floating_point or t.dtype.is_complex for t in (*self.inputs, *self.outputs)
        )

    def size_over(self, tensor: torch.Tensor, dims: Any) -> int:
        """Elements along `dims`: an int, a list of them, or `None` or an empty list for all."""
        if dims is None or (isinstance(dims, Sequence) and not dims):
            return tensor.numel()
        if tensor.dim() == 0:
            return 1
        chosen = [dims] if isinstance(dims, int) else dims
        return math.prod(tensor.shape[d] for d in chosen)


def tensors_in(tree: Any) -> list[torch.Tensor]:
    """The tensors among the leaves of nested tuples, lists and dicts."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def padded(values: int | Iterable[int], count: int) -> list[int]:
    """`values` as a list of `count` numbers, the last one repeated, as torch's pooling reads it."""
    listed = [values] if isinstance(values, int) else list(values)
    return listed + [listed[-1]] * (count - len(listed)) if listed else [1] * count


def words(text: str) -> frozenset[str]:
    """The names in a text of names."""
    return frozenset(text.split())
