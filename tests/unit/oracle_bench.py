"""A bench for the oracle's own tests: tasks in one line, kernels as Python functions.

`Bench` drives the real examiner in this process, through a real arena; a kernel is any function of
the inputs, and of the reference's parameters as keywords.
"""

from __future__ import annotations

import copy
import functools
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import torch

from toprung.judge.oracle.examiner import Examiner
from toprung.judge.oracle.values import Checked, Staged
from toprung.judge.wire.arena import Arena, aligned
from toprung.judge.wire.trees import describe, rebuild, tensor_at
from toprung.model.task import FAMILIES, Family, Task
from toprung.model.tensor import TensorSpec

Kernel = Callable[..., Any]

CHECKED: tuple[Family, ...] = FAMILIES[:-1]  # type: ignore[assignment]
"""Every family that is asked without being asked for."""


def source_of(forward: str, inputs: str, *, init: str = "", args: str = "self") -> str:
    """A KernelBench file from the body of `forward`, its inputs and the body of `__init__`."""
    return textwrap.dedent(
        """\
        import math
        import torch
        import torch.nn as nn
        import torch.nn.functional as F


        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                {init}

            def forward({args}):
                {forward}


        def get_inputs():
            return [{inputs}]


        def get_init_inputs():
            return []
        """
    ).format(
        init=textwrap.indent(init, " " * 8).strip() or "pass",
        args=args,
        forward=textwrap.indent(textwrap.dedent(forward), " " * 8).strip(),
        inputs=inputs,
    )


class Bench:
    """One opened task; `climb` asks it everything that the ladder would ask."""

    def __init__(self, task: Task | str, *, seed: int = 1, mode: str = "copied"):
        if isinstance(task, str):
            task = Task(name="bench", reference=task)
        self._staged: dict[tuple[Family, int, bool], tuple[Staged, list[Any]]] = {}
        self.examiner = Examiner()
        self.opened = self.examiner.open(task, seed, "cpu:native")
        self.case = self.opened.cases[0]
        specs = [*self.case.inputs.specs, *(output.spec for output in self.case.outputs)]
        specs += [entry.spec for entry in self.opened.state]
        offsets = self._offsets(specs)
        self.arena = Arena.create(offsets[-1])
        self.examiner.lend(self.arena)
        first, second = len(self.case.inputs.specs), len(self.case.outputs)
        self.input_offsets = offsets[:first]
        self.output_offsets = offsets[first : first + second]
        self.state_offsets = state = offsets[first + second : -1]
        self.examiner.write_state(mode, state if mode == "copied" else [])
        self.state = {
            entry.name: tensor_at(self.arena, offset, entry.spec).clone()
            for entry, offset in zip(self.opened.state, state, strict=True)
        }

    @staticmethod
    def _offsets(specs: Sequence[TensorSpec]) -> list[int]:
        offsets = [0]
        for spec in specs:
            offsets.append(offsets[-1] + max(aligned(spec.nbytes), 256))
        return offsets

    def inputs(self) -> list[Any]:
        """Copies of what lies in the arena, nested as the task nests them."""
        leaves = [
            tensor_at(self.arena, offset, spec).clone()
            for offset, spec in zip(self.input_offsets, self.case.inputs.specs, strict=True)
        ]
        return list(rebuild(self.case.inputs.layout, leaves))

    def stage(self, family: Family, draw: int = 0, truth: bool = True) -> tuple[Staged, list[Any]]:
        """What was staged and its inputs; the same content is staged once for all kernels."""
        key = (family, draw, truth)
        if key not in self._staged:
            staged = self.examiner.stage(0, family, draw, self.input_offsets, truth)
            self._staged[key] = (staged, self.inputs())
        staged, inputs = self._staged[key]
        return staged, copy.deepcopy(inputs)

    def ask(
        self, kernel: Kernel, family: Family, draw: int = 0, truth: bool = True
    ) -> Checked | None:
        """One call of `kernel`; `None` where the family is skipped."""
        staged, inputs = self.stage(family, draw, truth)
        if staged.skipped:
            return None
        state = {name.replace(".", "_"): tensor.clone() for name, tensor in self.state.items()}
        torch.manual_seed(staged.call_seed)
        _, returned = describe(kernel(*inputs, **state))
        for output, offset in zip(self.case.outputs, self.output_offsets, strict=True):
            if output.source == "return":
                value = returned[output.index or 0]
            elif output.source == "input":
                value = inputs[output.index or 0]
            else:
                value = state[(output.name or "").replace(".", "_")]
            tensor_at(self.arena, offset, output.spec).copy_(value)
        return self.examiner.check(staged.id, self.output_offsets)

    def climb(self, kernel: Kernel, families: Sequence[Family] = CHECKED) -> str | None:
        """Where and why `kernel` is refused; `None` when everything that was asked passes."""
        for family in families:
            checked = self.ask(kernel, family)
            if checked is not None and not checked.ok:
                return f"{family}: {checked.why}"
        timed = self.ask(kernel, "as_given", 1, truth=False)
        assert timed is not None
        return None if timed.ok else f"timed: {timed.why}"

    def asked(self) -> dict[str, str | None]:
        """Every family with the reason why it is skipped, `None` where it is not."""
        return {family: self.stage(family)[0].skipped for family in CHECKED}


@functools.cache
def bench_of(source: str) -> Bench:
    """The bench of a source, opened once a process."""
    return Bench(source)
