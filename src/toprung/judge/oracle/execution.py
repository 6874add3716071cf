"""Calls of the reference: at its declared precision, in float64, and in float64 shaken a little."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from toprung.errors import TaskError
from toprung.judge.wire.trees import rebuild
from toprung.model.tensor import Tree
from toprung.model.value import Json

from .exactness import WIDE, Exact
from .products import SLOW, Products
from .randomness import Recorder, Recording, sow
from .reference import Reference, accepted
from .values import OutputSpec

Tensors = list[torch.Tensor]


@dataclass(frozen=True)
class Plan:
    """What a call takes and what is collected after it."""

    case: str
    inputs: Json
    """Layout of the arguments."""
    returned: Json
    """Layout of the result."""
    outputs: tuple[OutputSpec, ...]


class Runner:
    """The reference module, callable at either precision. Buffers are restored after each call."""

    def __init__(self, model: torch.nn.Module, reference: Reference):
        self.model = model
        self._reference = reference
        self._exact: torch.nn.Module | None = None

    def declared(
        self, plan: Plan, leaves: Tensors, seed: int, recording: Recording | None = None
    ) -> Tensors:
        """Outputs at the declared precision, in the order of `plan.outputs`."""
        with contextlib.ExitStack() as stack:
            if self._has_slow(leaves):
                stack.enter_context(Products())
            if recording is not None:
                stack.enter_context(Recorder(recording))
            return self._outputs(self.model, plan, leaves, seed)

    def unfused(self, plan: Plan, leaves: Tensors, seed: int) -> Tensors:
        """As `declared`, with attention in steps whose results are kept at that precision."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        before = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
        try:
            with sdpa_kernel(SDPBackend.MATH):
                return self.declared(plan, leaves, seed)
        finally:
            torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(before)

    def call(self, plan: Plan, leaves: Tensors, seed: int, recording: Recording) -> Any:
        """What the reference returns at the declared precision, for a first look at it."""
        with contextlib.ExitStack() as stack:
            if self._has_slow(leaves):
                stack.enter_context(Products())
            stack.enter_context(Recorder(recording))
            return self._call(self.model, plan, leaves, seed)

    def exact(
        self,
        plan: Plan,
        leaves: Tensors,
        seed: int,
        recording: Recording,
        shake: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> Tensors:
        """Outputs in float64, integers as they are."""
        if self._exact is None:
            with self._reference.blamed("the module cannot be copied to float64"):
                self._exact = _in_float64(self.model)
        raised = [_raised(leaf) for leaf in leaves]
        mode = Exact(self._narrowest(leaves), recording)
        with contextlib.ExitStack() as stack:
            if shake is not None:
                raised = [shake(leaf) if leaf.dtype == torch.float64 else leaf for leaf in raised]
                stack.enter_context(_shaken(self._exact, self.model, shake))
            stack.enter_context(_default_dtype(torch.float64))
            stack.enter_context(mode)
            outputs = self._outputs(self._exact, plan, raised, seed)
        return [_raised(output) for output in outputs]

    def _outputs(self, model: torch.nn.Module, plan: Plan, leaves: Tensors, seed: int) -> Tensors:
        """Call on leaves of its own, collect, and undo what the call has done to buffers."""
        changed = [spec.index for spec in plan.outputs if spec.source == "input"]
        own = [leaf.clone() if i in changed else leaf for i, leaf in enumerate(leaves)]
        buffers = dict(model.named_buffers())
        names = [spec.name for spec in plan.outputs if spec.source == "buffer" and spec.name]
        saved = {name: buffers[name].clone() for name in names}
        try:
            result = self._call(model, plan, own, seed)
            tree, returned = described(result)
            if nesting(tree.layout) != nesting(plan.returned):
                raise TaskError(
                    "the reference returns differently nested values on different inputs",
                    hint="return always the same structure",
                )
            now = dict(model.named_buffers())
            kept = {t.untyped_storage().data_ptr() for t in [*model.parameters(), *now.values()]}
            outputs = [_collected(spec, returned, own, now) for spec in plan.outputs]
            return [t.clone() if t.untyped_storage().data_ptr() in kept else t for t in outputs]
        finally:
            with torch.no_grad():
                for name, tensor in saved.items():
                    model.get_buffer(name).copy_(tensor)

    def _call(self, model: torch.nn.Module, plan: Plan, leaves: Tensors, seed: int) -> Any:
        arguments = rebuild(plan.inputs, leaves)
        sow(seed)
        with self._reference.blamed(f"the reference fails on case {plan.case!r}"), torch.no_grad():
            return model(*arguments)

    def _has_slow(self, leaves: Tensors) -> bool:
        return any(tensor.dtype == SLOW for tensor in [*leaves, *self.model.parameters()])

    def _narrowest(self, leaves: Tensors) -> torch.dtype | None:
        floats = {t.dtype for t in [*leaves, *self.model.parameters()] if t.is_floating_point()}
        return max(floats, key=lambda dtype: torch.finfo(dtype).eps, default=None)


def described(result: Any) -> tuple[Tree, Tensors]:
    """Tree and tensors of what a reference returned; raises `TaskError`."""
    return accepted(
        result,
        "the reference returns what cannot be compared",
        "return dense CPU tensors, alone or in lists, tuples or dicts",
    )


def nesting(layout: Json) -> Json:
    """A layout with its plain values left out: what stays the same whatever they are."""
    ((kind, content),) = layout.items()
    if kind in ("list", "tuple"):
        return {kind: [nesting(node) for node in content]}
    if kind == "dict":
        return {kind: [[key, nesting(node)] for key, node in content]}
    return layout if kind == "t" else None


def _collected(
    spec: OutputSpec, returned: Tensors, inputs: Tensors, buffers: dict[str, torch.Tensor]
) -> torch.Tensor:
    if spec.source == "buffer":
        return buffers[spec.name or ""]
    assert spec.index is not None
    tensor = (returned if spec.source == "return" else inputs)[spec.index].detach()
    if tuple(tensor.shape) != spec.spec.shape:
        raise TaskError(
            f"{spec.label} of the reference has shape {tuple(tensor.shape)} here and "
            f"{spec.spec.shape} on other inputs",
            hint="shapes that depend on values cannot be judged: return padded tensors",
        )
    return tensor


def _raised(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return tensor.to(WIDE.get(tensor.dtype, tensor.dtype))
    return tensor.double() if tensor.is_floating_point() else tensor


def _in_float64(model: torch.nn.Module) -> torch.nn.Module:
    """A copy whose parameters, buffers and plain tensor attributes are float64."""
    exact = copy.deepcopy(model).double()
    for module in exact.modules():
        for name, value in list(vars(module).items()):
            if not name.startswith("_") or isinstance(value, torch.Tensor):
                vars(module)[name] = _attribute(value)
    return exact


def _attribute(value: Any) -> Any:
    if type(value) is torch.Tensor:
        return _raised(value)
    if type(value) in (list, tuple):
        return type(value)(_attribute(item) for item in value)
    if type(value) is dict:
        return {key: _attribute(item) for key, item in value.items()}
    return value


@contextlib.contextmanager
def _shaken(
    exact: torch.nn.Module, model: torch.nn.Module, shake: Callable[[torch.Tensor], torch.Tensor]
) -> Iterator[None]:
    """While this lasts, the parameters of `exact` are shaken; those of `model` bring them back."""
    pairs = [
        (own, original)
        for own, original in zip(exact.parameters(), model.parameters(), strict=True)
        if own.dtype == torch.float64
    ]
    with torch.no_grad():
        for own, _ in pairs:
            own.copy_(shake(own))
    try:
        yield
    finally:
        with torch.no_grad():
            for own, original in pairs:
                own.copy_(original)


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
