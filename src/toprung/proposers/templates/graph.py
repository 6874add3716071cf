"""The exported graph of a reference, as the capturing process prints it. No torch here.

Sizes are texts: expressions over symbols (`s27*s77`), which `sizes` reads. A symbol stands for one
dimension of one input; what torch has specialised is a plain number.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from toprung.model.value import Json, Value

from .sizes import evaluate

LARGEST = 4000
"""Nodes of a graph; what is larger is no operator family."""


class Meta(Value):
    """A tensor: element type, sizes as expressions, and the sizes they had while capturing."""

    dtype: str
    shape: tuple[str, ...]
    hint: tuple[Annotated[int, Field(ge=0)], ...]

    @model_validator(mode="after")
    def _same_rank(self) -> Meta:
        if len(self.shape) != len(self.hint):
            raise ValueError(f"{len(self.shape)} sizes but {len(self.hint)} hints")
        return self


class State(Value):
    """A parameter or buffer of the reference, by the name under which it is copied in."""

    name: str
    kind: Literal["parameter", "buffer"]
    dtype: str
    shape: tuple[int, ...]


class Source(Value):
    """Where a value that nobody computes comes from: exactly one of the fields is set."""

    name: str
    input: int | None = None
    state: str | None = None
    constant: Json = None


class Node(Value):
    """One operator, without its overload: `aten.add`. References are `{"n": name, "i": output}`,
    sizes `{"size": expression}`, element types `{"dtype": name}`, odd floats `{"float": "inf"}`."""

    name: str
    op: str
    args: tuple[Json, ...]
    kwargs: dict[str, Json] = {}
    outs: tuple[Meta, ...]


class Graph(Value):
    """One call of the reference: functional, decomposed to core ATen, nodes in order."""

    symbols: dict[str, tuple[int, int]]
    """Symbol -> (input, dimension)."""
    guards: tuple[str, ...] = ()
    """Conditions on the symbols under which this graph holds."""
    inputs: tuple[Json, ...]
    """Per argument of `forward`: a `Meta` as JSON, or `{"constant": value}`."""
    state: tuple[State, ...] = ()
    sources: tuple[Source, ...]
    nodes: Annotated[tuple[Node, ...], Field(max_length=LARGEST)]
    outputs: Json
    """Layout as in `model.tensor.Tree`; a leaf is `{"n": name, "i": output}`."""
    exact: bool = False
    """True when the sizes could not be kept symbolic: the graph holds for these sizes only."""

    def input_meta(self, index: int) -> Meta | None:
        """The tensor that argument `index` is, or `None` for a constant."""
        given = self.inputs[index]
        return None if "constant" in given else Meta.model_validate(given)

    def accepts(self, other: Graph) -> bool:
        """Whether this graph holds for the inputs with which `other` was captured."""
        if len(self.inputs) != len(other.inputs):
            return False
        shapes = [other.input_meta(place) for place in range(len(other.inputs))]
        sizes: dict[str, int] = {}
        for symbol, (place, dim) in self.symbols.items():
            meta = shapes[place]
            if meta is None or dim >= len(meta.hint):
                return False
            sizes[symbol] = meta.hint[dim]
        for place, theirs in enumerate(shapes):
            own = self.input_meta(place)
            if own is None or theirs is None:
                if self.inputs[place] != other.inputs[place]:
                    return False
            elif own.dtype != theirs.dtype or theirs.hint != tuple(
                evaluate(size, sizes) for size in own.shape
            ):
                return False
        return all(evaluate(guard, sizes) for guard in self.guards)


class Capture(Value):
    """What came of one case: a graph, or why there is none."""

    case: str
    graph: Graph | None = None
    refused: str | None = None
