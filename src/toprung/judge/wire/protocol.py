"""What the judge and a candidate's process say to each other, typed and bounded.

Requests are made by the judge. Replies come from a process that runs hostile code: each is
validated here, and nothing in it is believed beyond what the judge can see for itself.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from toprung.errors import WireError
from toprung.model.tensor import TensorSpec, Tree
from toprung.model.value import Json, Value

from .channel import Message

MAX_TEXT = 16_000
"""Characters of a traceback or of compiler output that cross the wire; the end is kept."""

MAX_LINE = 2_000
"""Characters of a message or a hint. Even escaped to six bytes each, all texts fit a packet."""

Offset = Annotated[int, Field(ge=0)]
Text = Annotated[str, Field(max_length=MAX_TEXT)]
Line = Annotated[str, Field(max_length=MAX_LINE)]
Nanoseconds = Annotated[int, Field(ge=0, le=10**15)]


class StateSpec(Value):
    """A parameter or buffer of a module."""

    name: Annotated[str, Field(max_length=500)]
    spec: TensorSpec
    kind: Literal["parameter", "buffer"]


class Load(Value):
    """Compile and load the candidate whose files the judge has laid out in `folder`."""

    op: Literal["load"] = "load"
    dsl: str
    folder: str
    main: str
    entry: str | None = None
    target: str


class Construct(Value):
    """Build the module from constructor arguments, with torch seeded by `seed`."""

    op: Literal["construct"] = "construct"
    init: Tree
    init_offsets: tuple[Offset, ...] = ()
    seed: int
    train: bool = False


class Adopt(Value):
    """Take parameters and buffers over from the lent arena (none: keep one's own), `prepare`."""

    op: Literal["adopt"] = "adopt"
    state: tuple[StateSpec, ...] = ()
    offsets: tuple[Offset, ...] = ()


class OutputSlot(Value):
    """Where one output goes: a leaf of what is returned, or a buffer that the call changes."""

    spec: TensorSpec
    offset: Offset
    leaf: int | None = None
    buffer: str | None = None


class Call(Value):
    """Call once. Inputs lie in the lent arena; outputs are copied to their slots there."""

    op: Literal["call"] = "call"
    inputs: Tree
    offsets: tuple[Offset, ...]
    outputs: tuple[OutputSlot, ...]
    seed: int
    keep: bool = False
    """Hold on to the result, as a caller might, beside the last one, which is always held."""


class Recall(Value):
    """Hand out once more what the call returned that was asked to be kept."""

    op: Literal["recall"] = "recall"
    outputs: tuple[OutputSlot, ...]


class Recalled(Value):
    """Whether there is such a result and it was copied to its slots."""

    ok: Literal[True] = True
    filled: bool


class Lend(Value):
    """The arena in which tensors will lie, in place of the present one; its descriptor travels with this message."""

    op: Literal["lend"] = "lend"
    arena_bytes: Offset


Request = Load | Lend | Construct | Adopt | Call | Recall


class Failure(Value):
    """An exception in the candidate's process."""

    ok: Literal[False] = False
    kind: Literal["exception", "compile", "refuted"]
    message: Line
    hint: Line | None = None
    traceback: Text | None = None


class Loaded(Value):
    """The candidate's code is loaded."""

    ok: Literal[True] = True
    entry: Annotated[str, Field(max_length=200)]
    is_module: bool
    facts: dict[str, Json] = {}


class Constructed(Value):
    """The candidate's own parameters and buffers, empty for a function."""

    ok: Literal[True] = True
    state: Annotated[tuple[StateSpec, ...], Field(max_length=10_000)] = ()


class Done(Value):
    """Nothing to tell."""

    ok: Literal[True] = True


class Called(Value):
    """What a call returned, as the child saw it."""

    ok: Literal[True] = True
    returned: Tree
    elapsed_ns: Nanoseconds
    cpu_ns: Nanoseconds
    filled: bool
    """Whether types and shapes fitted, so that outputs were copied to their slots."""
    strange: Line | None = None
    """Set when a leaf is not exactly a `torch.Tensor`."""
    aliases: tuple[tuple[int, int], ...] = ()
    """Pairs (returned leaf, input leaf) that share memory."""
    overlapping: tuple[int, ...] = ()
    """Returned leaves in which two elements share one address, or which overlap another leaf."""


Reply = TypeVar("Reply", bound=Value)


def parse(kind: type[Reply], message: Message) -> Reply | Failure:
    """The reply as `kind`, or the failure it reports; raises `WireError` on anything else."""
    try:
        return Failure.model_validate(message) if message.get("ok") is False else kind(**message)
    except (ValidationError, TypeError) as bad:
        raise WireError(f"not a {kind.__name__}: {str(bad)[:300]}") from None
