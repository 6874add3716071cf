"""The oracle itself: everything it is asked for, in one process, without any wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from toprung.errors import HarnessError, TaskError
from toprung.judge.wire.arena import Arena
from toprung.judge.wire.protocol import StateSpec
from toprung.judge.wire.trees import rebuild, spec_of, tensor_at
from toprung.model.task import FAMILIES, Family, Task
from toprung.model.tensor import PRECISION_OF_DTYPE, Precision

from .comparison import Expected, Finding, compare
from .content import Content
from .course import Course
from .execution import Runner
from .parameters import BOLDNESS, make_secret, tensors_of
from .randomness import derive
from .reference import Reference
from .truth import Measured
from .values import Checked, Opened, Staged


class Examiner:
    """Generates inputs, computes what is expected, and compares. One task, one process.

    Order: `open`, `lend`, `write_state`, then any number of `stage`, `check` and `forget`.
    """

    def __init__(self) -> None:
        self._arena: Arena | None = None
        self._staged: dict[int, tuple[Expected, ...]] = {}
        self._next_id = 0
        self._mode: str | None = None

    def open(self, task: Task, seed: int, target: str) -> Opened:
        """Load, build and call the task once per case that fits `target`; raises `TaskError`."""
        if task.grad:
            raise TaskError(
                f"grad = {list(task.grad)}: this version of toprung does not judge gradients",
                hint="take the backward pass inside forward() and return the gradients",
            )
        if "torch.compile" in task.reference:
            torch.compiler.set_stance("force_eager")
        self._seed = seed
        self._reference = Reference(task, derive(seed, "module"))
        self._init, self._init_leaves = self._reference.init(derive(seed, "init"))
        self._param_seed = derive(seed, "parameters") % 2**31
        cases = [case for case in task.cases if case.fits(target)]
        if not cases:
            raise TaskError(f"no case of task {task.name!r} is meant for {target}")
        contents = [Content.of(self._reference, case, derive(seed, case.name)) for case in cases]
        model = self._built()
        precision = task.precision or _precision_of(contents, model)
        _require_full_float32(precision)
        measured = Measured(task.tolerance, precision)
        self._runner = Runner(model, self._reference)
        self._courses = [
            Course.first_look(content, self._runner, measured, content.seed) for content in contents
        ]
        return Opened(
            precision=precision,
            init=self._init,
            param_seed=self._param_seed,
            state=tuple(_state_of(model)),
            cases=tuple(course.spec() for course in self._courses),
        )

    def lend(self, arena: Arena) -> None:
        """Take `arena` for inputs and outputs, in place of the one before."""
        self._arena = arena

    def write_init(self, offsets: Sequence[int]) -> None:
        """Write the tensors among the constructor's arguments."""
        for spec, leaf, offset in zip(self._init.specs, self._init_leaves, offsets, strict=True):
            tensor_at(self._lent, offset, spec).copy_(leaf)

    def write_state(self, mode: str, offsets: Sequence[int]) -> None:
        """Fix how parameters come about on both sides; write them where they are `copied`.

        Asked again in the same mode, it writes the same values and forgets nothing.
        """
        if mode != self._mode:
            self._mode = mode
            model = self._with_secrets() if mode == "copied" else self._built()
            self._runner = Runner(model, self._reference)
            for course in self._courses:
                course.adopt(self._runner)
        if mode == "copied":
            for (_, tensor), offset in zip(tensors_of(self._runner.model), offsets, strict=True):
                tensor_at(self._lent, offset, spec_of(tensor)).copy_(tensor.detach())

    def stage(
        self, case: int, family: Family, draw: int, offsets: Sequence[int], truth: bool = True
    ) -> Staged:
        """Write fresh inputs and keep what is expected of a call on them."""
        if family not in FAMILIES or not 0 <= case < len(self._courses):
            raise HarnessError(f"there is no case {case} or no family {family!r}")
        course = self._courses[case]
        ready = course.truth(family, draw) if truth else course.declared(family, draw)
        number, call_seed = self._next_id, course.call_seed(family, draw)
        self._next_id += 1
        if isinstance(ready, str):
            return Staged(id=number, skipped=ready, call_seed=call_seed)
        for spec, leaf, offset in zip(
            course.content.tree.specs, ready.leaves, offsets, strict=True
        ):
            tensor_at(self._lent, offset, spec).copy_(leaf)
        self._staged[number] = ready.expected
        return Staged(id=number, call_seed=call_seed, note=ready.note)

    def check(self, staged: int, offsets: Sequence[int]) -> Checked:
        """Compare what lies at `offsets` with what was expected of `staged`."""
        expected = self._staged.get(staged)
        if expected is None:
            raise HarnessError(f"nothing is staged under {staged}")
        return _summary(
            [
                compare(one, tensor_at(self._lent, offset, one.spec))
                for one, offset in zip(expected, offsets, strict=True)
            ]
        )

    def forget(self, staged: int) -> None:
        """Drop what was expected of `staged`."""
        self._staged.pop(staged, None)

    @property
    def _lent(self) -> Arena:
        if self._arena is None:
            raise HarnessError("the oracle was lent no arena")
        return self._arena

    def _built(self) -> torch.nn.Module:
        arguments = rebuild(self._init.layout, [leaf.clone() for leaf in self._init_leaves])
        return self._reference.build(list(arguments), self._param_seed)

    def _with_secrets(self) -> torch.nn.Module:
        """The module with secret values for constant parameters, as bold as the reference bears."""
        course = self._courses[0]
        for boldness in BOLDNESS:
            model = self._built()
            make_secret(model, derive(self._seed, "secrets"), boldness)
            if boldness == "none" or course.bears(Runner(model, self._reference)):
                return model
        raise AssertionError("the last boldness is always borne")


def _state_of(model: torch.nn.Module) -> list[StateSpec]:
    state = [("parameter", name, t) for name, t in model.named_parameters()]
    state += [("buffer", name, t) for name, t in model.named_buffers()]
    return [StateSpec(name=name, spec=spec_of(t), kind=kind) for kind, name, t in state]  # type: ignore[arg-type]


def _precision_of(contents: Sequence[Content], model: torch.nn.Module) -> Precision:
    """That of the widest floating input; of the parameters where no input is floating."""
    names = {spec.dtype for content in contents for spec in content.tree.specs}
    known = [d for d in PRECISION_OF_DTYPE if d in names]
    if not known:
        own = {str(p.dtype).removeprefix("torch.") for p in model.parameters()}
        known = [d for d in PRECISION_OF_DTYPE if d in own]
    return PRECISION_OF_DTYPE[known[0]] if known else "fp32"


def _require_full_float32(precision: Precision) -> None:
    """fp32 means fp32, whatever the task's module has switched on."""
    exact = precision in ("fp64", "fp32")
    torch.set_float32_matmul_precision("highest" if exact else "high")
    torch.backends.cudnn.allow_tf32 = not exact


def _summary(findings: list[Finding]) -> Checked:
    """The verdict over all outputs; metrics are of the floating output nearest to its limit."""
    wrong = [finding for finding in findings if not finding.ok]
    floating = [finding for finding in findings if finding.metrics]
    metrics: dict[str, Any] = {}
    if floating:
        metrics = max(floating, key=lambda finding: finding.severity).metrics
    return Checked(
        ok=not wrong,
        why=max(wrong, key=lambda finding: finding.severity).why if wrong else None,
        metrics=metrics,
        nonfinite=any(finding.nonfinite for finding in findings),
        mismatched=sum(finding.mismatched for finding in findings),
        total=sum(finding.total for finding in findings),
    )
