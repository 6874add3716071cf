"""What the oracle tells the judge: values without torch, for both ends of the conversation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from toprung.judge.wire.protocol import StateSpec
from toprung.model.roofline import Work
from toprung.model.tensor import Precision, TensorSpec, Tree
from toprung.model.value import Value

Count = Annotated[int, Field(ge=0)]


class OutputSpec(Value):
    """One tensor that a call must produce.

    `return`: leaf `index` of what the call returns. `input`: input leaf `index`, which the
    reference changes in place. `buffer`: the module's buffer `name`, which the reference changes.
    """

    spec: TensorSpec
    source: Literal["return", "input", "buffer"]
    index: Count | None = None
    name: str | None = None

    @property
    def label(self) -> str:
        """The output in the words of a message."""
        if self.source == "return":
            return f"output {self.index}"
        if self.source == "input":
            return f"input {self.index} (changed in place)"
        return f"buffer {self.name!r}"


class CaseSpec(Value):
    """One case as the reference itself shows it."""

    name: str
    held_out: bool = False
    inputs: Tree
    """The positional arguments of `forward`; one offset per tensor leaf when a case is staged."""
    outputs: tuple[OutputSpec, ...]
    returned: Tree
    aliases: tuple[tuple[int, int], ...] = ()
    """Pairs (returned leaf, input leaf) that share memory in the reference itself."""
    overlapping: tuple[Count, ...] = ()
    """Leaves that overlap themselves or another leaf in what the reference itself returns."""
    plain_fixed: bool = True
    """Whether plain values in `returned` were the same on two different draws of inputs."""
    reference_us: Annotated[float, Field(ge=0)]
    """One call of the reference on the CPU, warm; for limits, not for comparison."""
    work: Work
    labels: tuple[str, ...] = ()
    """What was noticed: the structure of inputs, random draws, outputs that are not returned."""


class Opened(Value):
    """A task that has been loaded, built and called once per case."""

    precision: Precision
    init: Tree
    """The constructor's positional arguments."""
    param_seed: Count
    """Seeds torch before the module is built, on both sides."""
    state: tuple[StateSpec, ...]
    """Parameters, then buffers, in the order in which `write_state` takes offsets."""
    cases: tuple[CaseSpec, ...]


class Staged(Value):
    """Inputs that lie in the arena, and expected values that the oracle keeps under `id`."""

    id: Count
    skipped: str | None = None
    """Why this family is not asked here; nothing was written, and `check` has nothing to check."""
    call_seed: Count
    """The child seeds torch with this before the call; the reference was seeded alike."""
    note: str | None = None
    """How the expected values came about, where that is unusual."""


class Checked(Value):
    """Outputs beside what was expected.

    `metrics` are those of the output that came nearest to its limit: `max_abs`, `max_rel`, `mae`,
    `mse`, `rmse`, `psnr` (dB), `cosine`, `reference_error` (the reference's own RMS error),
    `error_ratio` (RMS error over the reference's own), `strict` and `kernelbench` (the share of
    what that preset allows; above 1 it refutes). `None` is a figure that does not exist there.
    """

    ok: bool
    why: str | None = None
    """One sentence: which output, how far, where, what was wanted, what is allowed."""
    metrics: dict[str, float | None] = {}
    nonfinite: bool = False
    """Whether an output is infinite or NaN where the truth is not."""
    mismatched: Count = 0
    """Elements beyond tolerance, over all outputs."""
    total: Count = 0
