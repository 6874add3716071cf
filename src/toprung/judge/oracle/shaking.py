"""The reference on inputs and parameters that were changed a little: how much rounding can matter."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from toprung.model.tensor import Precision

from .execution import Plan, Runner, Tensors
from .randomness import Recording, generator
from .tolerance import EPS

TIMES = 16.0
"""Fine types are also shaken by this many units: jumps (thresholds, rounding) are then found
wherever an honest kernel may jump. What changes smoothly is divided by it; what saturates, as the
choice of the largest of many near ties, shows at one unit. Coarse types are shaken by a unit
only, lest smooth changes bend, and several times."""

FINE = 2.0**-20
FEW = 256
"""Outputs of fewer elements are shaken more often: one sample of an error may be small by luck."""

AGAIN = 3


@dataclass
class Shake:
    """Multiplies by 1 + amplitude * u, and adds jolt * rms * u, with u uniform in ±1/2."""

    generator: torch.Generator
    amplitude: float
    jolt: float = 0.0
    _noise: torch.Tensor | None = field(default=None, repr=False)

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """A shaken copy of a float64 tensor."""
        u = self._take(value.numel()).reshape(value.shape)
        shaken = value * (1 + self.amplitude * u)
        if self.jolt:
            shaken += self.jolt * value.square().mean().sqrt().nan_to_num() * u
        return shaken

    def _take(self, count: int) -> torch.Tensor:
        """`count` numbers of a block that is drawn once; a random start keeps tensors apart."""
        if self._noise is None:
            self._noise = torch.rand(2**20 - 3, generator=self.generator, dtype=torch.float64) - 0.5
        start = int(torch.randint(self._noise.numel(), (), generator=self.generator))
        repeats = (start + count) // self._noise.numel() + 1
        return self._noise.repeat(repeats)[start : start + count]


@dataclass(frozen=True)
class Shaken:
    """Outputs of shaken runs: `smooth` for floating outputs, `exact` for the others.

    `times` says by how many units the inputs of each smooth run were shaken.
    """

    smooth: list[Tensors]
    times: list[float]
    exact: list[Tensors]


def shake(
    runner: Runner,
    plan: Plan,
    leaves: Tensors,
    seed: int,
    recording: Recording,
    truth: Tensors,
    precision: Precision,
    secret: int,
) -> Shaken:
    """float64 runs on shaken inputs; more of them where one sample says too little."""
    unit, rng = EPS[precision], generator(secret, "shake")
    times = [TIMES, 1.0] if unit <= FINE else [1.0] * AGAIN
    smooth: list[Tensors] = []
    exact: list[Tensors] = []

    def run(shaking: Shake) -> Tensors:
        return runner.exact(plan, leaves, seed, recording, shaking)

    floating = [t for t in truth if t.is_floating_point() or t.is_complex()]
    if floating:
        smooth = [run(Shake(rng, strength * unit)) for strength in times]
        few = min(t.numel() for t in floating) < FEW
        if few or _leaps(truth, smooth[0], times[0] * unit):
            smooth += [run(Shake(rng, times[0] * unit)) for _ in range(AGAIN)]
            times += times[:1] * AGAIN
    if len(floating) < len(truth):
        amplitude = TIMES * min(unit, EPS["fp32"])
        # zeros must move too, or ties between them would look decided
        shaking = Shake(rng, amplitude, jolt=amplitude)
        exact += [run(shaking) for _ in range(1 + AGAIN)]
    return Shaken(smooth, times, exact)


def shake_declared(
    runner: Runner, plan: Plan, leaves: Tensors, seed: int, precision: Precision, secret: int
) -> Shaken:
    """The same where no float64 run is possible: inputs moved by a unit, at their own precision."""
    shaking = Shake(generator(secret, "shake"), EPS[precision])
    runs = []
    for _ in range(1 + AGAIN):
        moved = [
            shaking(leaf.double()).to(leaf.dtype) if leaf.is_floating_point() else leaf
            for leaf in leaves
        ]
        outputs = runner.declared(plan, moved, seed)
        runs.append([raised(output) for output in outputs])
    return Shaken(runs, [1.0] * len(runs), runs)


def raised(tensor: torch.Tensor) -> torch.Tensor:
    """In float64 or complex128; integers as they are."""
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor


def _leaps(truth: Tensors, shaken: Tensors, amplitude: float) -> bool:
    """Whether some element moves far more than shaking the inputs should move it."""
    for one, other in zip(truth, shaken, strict=True):
        if not (one.is_floating_point() or one.is_complex()):
            continue
        scale = one.abs().nan_to_num(0.0, 0.0, 0.0)
        limit = 1e3 * amplitude * (scale + scale.square().mean().sqrt())
        if bool(((one - other).abs() > limit).any()):
            return True
    return False
