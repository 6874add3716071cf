"""What a graph computes, as a list of scalar expressions over axes.

Views, broadcasts and composed operators are gone: what is left are loads, constants, elementwise
functions and reductions. Nodes refer to earlier nodes by their place in the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .axes import Axes, Dims, Label

Kind = Literal["f32", "f64", "i64", "b8"]
"""What a node is computed in; bf16 is stored, and computed in f32."""

KINDS: dict[str, Kind] = {
    "float32": "f32",
    "bfloat16": "f32",
    "float64": "f64",
    "int64": "i64",
    "int32": "i64",
    "int16": "i64",
    "int8": "i64",
    "uint8": "i64",
    "bool": "b8",
}
"""Element types of tensors that are covered."""


@dataclass(frozen=True, slots=True)
class Load:
    """An element of an input or of a parameter; `steps` are (axis, stride) as laid out in memory."""

    tensor: str
    dtype: str
    offset: str
    steps: tuple[tuple[Label, str], ...]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Const:
    """A number."""

    value: float | int | bool
    kind: Kind


@dataclass(frozen=True, slots=True)
class Size:
    """A number that depends on sizes: a size expression."""

    expression: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Index:
    """The position along a label, counted from `start` in steps of `step`."""

    label: Label
    start: str
    step: str
    kind: Kind = "i64"


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of `scalar.FUNCTIONS`, element by element."""

    function: str
    args: tuple[int, ...]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Reduce:
    """`sum`, `prod`, `max`, `min`, `argmax` or `argmin` over the axes of `label`.

    `domain` are all axes that the operand ranges over, the reduced ones among them.
    """

    function: str
    arg: int
    label: Label
    domain: Label
    kind: Kind


@dataclass(frozen=True, slots=True)
class Pick:
    """The element of `arg` at position `index` along `label`."""

    arg: int
    index: int
    label: Label
    kind: Kind


Node = Load | Const | Size | Index | Apply | Reduce | Pick


def operands(node: Node) -> tuple[int, ...]:
    """The nodes that `node` is computed from."""
    match node:
        case Apply(args=args):
            return args
        case Reduce(arg=arg):
            return (arg,)
        case Pick(arg=arg, index=index):
            return (arg, index)
    return ()


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor of the graph: which node gives its elements, and which axes its dimensions are."""

    node: int
    dims: Dims
    dtype: str


@dataclass(frozen=True, slots=True)
class Expression:
    """Everything that a graph computes. `outputs` are its leaves in order."""

    nodes: tuple[Node, ...]
    outputs: tuple[Ref, ...]
    axes: Axes
