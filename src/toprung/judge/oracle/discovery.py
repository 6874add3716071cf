"""The first call of a case: what it returns, what it changes, how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from toprung.errors import TaskError
from toprung.judge.wire.memory import aliases, overlapping
from toprung.judge.wire.trees import spec_of
from toprung.model.tensor import Tree

from .execution import Plan, Runner, Tensors, described, nesting
from .randomness import Recording
from .values import OutputSpec

PATIENCE_S = 2.0
"""A reference that takes longer is not called a second time for the clock's sake."""


@dataclass(frozen=True)
class Discovery:
    """What one call of the reference shows."""

    plan: Plan
    returned: Tree
    aliases: tuple[tuple[int, int], ...]
    overlapping: tuple[int, ...]
    reference_us: float
    draws: int
    """Random draws in `forward`."""
    plain_fixed: bool
    """Whether plain values among what it returns are the same on other inputs."""


def discover(
    runner: Runner,
    case: str,
    inputs: Tree,
    leaves: Tensors,
    seed: int,
    others: Callable[[], Tensors],
) -> Discovery:
    """Call the reference on copies of `leaves` and look at what has changed.

    `others` are asked for when it returns plain values, which may or may not depend on inputs.
    """
    own = [leaf.clone() for leaf in leaves]
    buffers = {name: tensor.clone() for name, tensor in runner.model.named_buffers()}
    parameters = {name: tensor._version for name, tensor in runner.model.named_parameters()}
    recording = Recording()
    start = time.perf_counter()
    result = runner.call(Plan(case, inputs.layout, None, ()), own, seed, recording)
    elapsed = time.perf_counter() - start
    tree, returned = described(result)
    _require_fixed_parameters(runner.model, parameters)
    outputs = [OutputSpec(spec=spec, source="return", index=i) for i, spec in enumerate(tree.specs)]
    for index, (before, after) in enumerate(zip(leaves, own, strict=True)):
        if not same(before, after):
            outputs.append(OutputSpec(spec=spec_of(before), source="input", index=index))
    for name, after in runner.model.named_buffers():
        if name not in buffers or not same(buffers[name], after):
            outputs.append(OutputSpec(spec=spec_of(after), source="buffer", name=name))
            _require_known(name, buffers)
            with torch.no_grad():
                after.copy_(buffers[name])
    if not outputs:
        raise TaskError(
            "the reference returns no tensor and changes none",
            hint="forward() must return at least one tensor",
        )
    plan = Plan(case, inputs.layout, tree.layout, tuple(outputs))
    if elapsed < PATIENCE_S:
        start = time.perf_counter()
        runner.declared(plan, leaves, seed)
        elapsed = min(elapsed, time.perf_counter() - start)
    return Discovery(
        plan,
        tree,
        tuple(aliases(returned, own)),
        tuple(overlapping(returned)),
        elapsed * 1e6,
        len(recording.draws),
        nesting(tree.layout) == tree.layout or _same_plain(runner, plan, others(), seed + 1),
    )


def _same_plain(runner: Runner, plan: Plan, leaves: Tensors, seed: int) -> bool:
    """Whether a call on other inputs returns the plain values of `plan`."""
    buffers = {name: tensor.clone() for name, tensor in runner.model.named_buffers()}
    own = [leaf.clone() for leaf in leaves]
    tree, _ = described(runner.call(plan, own, seed, Recording()))
    with torch.no_grad():
        for name, tensor in runner.model.named_buffers():
            tensor.copy_(buffers[name])
    return tree.layout == plan.returned


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal bits, as far as comparison sees them; NaN equals NaN."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.itemsize == 1 and one.is_floating_point():
        one, other = one.view(torch.uint8), other.view(torch.uint8)
    if torch.equal(one, other):
        return True
    if not (one.is_floating_point() or one.is_complex()):
        return False
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def _require_fixed_parameters(model: torch.nn.Module, versions: dict[str, int]) -> None:
    for name, parameter in model.named_parameters():
        if versions.get(name) != parameter._version:
            raise TaskError(
                f"forward() changes parameter {name!r}",
                hint="parameters stay fixed within a process: make it a buffer",
            )


def _require_known(name: str, before: dict[str, torch.Tensor]) -> None:
    if name not in before:
        raise TaskError(
            f"forward() creates buffer {name!r}",
            hint="register every buffer in __init__",
        )
