"""A task's module: loaded from its source, asked for inputs, built. Its failures are the task's."""

from __future__ import annotations

import contextlib
import linecache
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import torch

from toprung.errors import TaskError
from toprung.judge.wire.trees import describe
from toprung.model.task import Case, Task
from toprung.model.tensor import Tree

from .randomness import sow, undisclosed

MODULE = "toprung_task"
"""Under this name the task's module is known to pickle, dataclasses and inspect."""


HERE = str(Path(__file__).parent)


class Reference:
    """The task's module. Nothing of it runs outside this class and `execution.Runner`."""

    def __init__(self, task: Task, seed: int):
        """Run the module's top level, with draws that `seed` decides; raises `TaskError`."""
        self.task = task
        self.filename = task.path or f"<task {task.name}>"
        lines = task.reference.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(task.reference), None, lines, self.filename)
        self._module = types.ModuleType(MODULE)
        self._module.__file__ = self.filename
        sys.modules[MODULE] = self._module
        with self.blamed("the reference cannot be loaded"), undisclosed(seed):
            code = compile(task.reference, self.filename, "exec", dont_inherit=True)
            exec(code, self._module.__dict__)
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if not callable(getattr(self._module, name, None)):
                raise TaskError(
                    f"the reference defines no {name}",
                    hint="a task needs class Model(torch.nn.Module), get_inputs() and "
                    "get_init_inputs()",
                )

    @contextlib.contextmanager
    def blamed(self, what: str) -> Iterator[None]:
        """Turn whatever the task raises inside into a `TaskError` that shows the task's lines."""
        try:
            yield
        except TaskError:
            raise
        except MemoryError as full:
            raise TaskError(f"{what}: out of memory", hint="choose a smaller case") from full
        except (Exception, SystemExit) as error:
            raise TaskError(
                f"{what}: {type(error).__name__}: {said(error)}", details=self.traceback(error)
            ) from error

    def traceback(self, error: BaseException) -> str:
        """The traceback of `error` from the task's first own line on, without toprung's."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [i for i, frame in enumerate(frames) if frame.filename == self.filename]
        kept = [f for f in frames[own[0] :] if not f.filename.startswith(HERE)] if own else []
        listing = traceback.format_list(traceback.StackSummary.from_list(kept))
        return "".join([*listing, *traceback.format_exception_only(error)])

    @contextlib.contextmanager
    def pointing(self, name: Literal["forward", "get_inputs", "get_init_inputs"]) -> Iterator[None]:
        """Let a `TaskError` that knows no line show where the task defines `name`."""
        try:
            yield
        except TaskError as error:
            if error.details is None:
                error.details = self._definition(name)
            raise

    def _definition(self, name: str) -> str | None:
        owner = self._module.Model if name == "forward" else self._module
        code = getattr(getattr(owner, name, None), "__code__", None)
        if code is None or code.co_filename != self.filename:
            return None
        frame = traceback.FrameSummary(self.filename, code.co_firstlineno, name)
        return "".join(traceback.format_list([frame]))

    def init(self, seed: int) -> tuple[Tree, list[torch.Tensor]]:
        """The constructor's arguments."""
        with self.blamed("get_init_inputs() failed"), undisclosed(seed):
            arguments = self._module.get_init_inputs()
        with self.pointing("get_init_inputs"):
            return self._described(arguments, "get_init_inputs()")

    def draw(self, case: Case, seed: int) -> tuple[Tree, list[torch.Tensor]]:
        """Fresh inputs of `case`: what they look like, and their tensors."""
        with self.blamed(f"get_inputs() failed for case {case.name!r}"), undisclosed(seed):
            inputs = self._module.get_inputs(**case.args)
        with self.pointing("get_inputs"):
            tree, leaves = self._described(inputs, "get_inputs()")
        return tree, [leaf.detach() for leaf in leaves]

    def build(self, arguments: list[Any], seed: int) -> torch.nn.Module:
        """The reference module, seeded as the candidate's will be; `eval()` unless `train`."""
        with self.blamed("Model cannot be built"):
            sow(seed)
            model = self._module.Model(*arguments)
        if not isinstance(model, torch.nn.Module):
            raise TaskError(f"Model is a {type(model).__name__}, not a torch.nn.Module")
        return model.train(self.task.train)

    def _described(self, value: Any, what: str) -> tuple[Tree, list[torch.Tensor]]:
        if not isinstance(value, list | tuple):
            raise TaskError(
                f"{what} returns a {type(value).__name__}, not a list",
                hint="return the positional arguments as a list",
            )
        return accepted(
            value,
            f"{what} returns what cannot be passed to a candidate",
            "use dense CPU tensors, numbers, strings, None, and lists, tuples or dicts of them",
        )


def accepted(value: Any, problem: str, hint: str) -> tuple[Tree, list[torch.Tensor]]:
    """Tree and tensors of what a task's code returned; raises `TaskError` with `problem`."""
    try:
        tree, leaves = describe(value)
    except Exception as strange:  # a task's own classes raise what they like
        raise TaskError(f"{problem}: {said(strange)}", hint=hint) from strange
    for leaf in leaves:
        if leaf.device.type != "cpu":
            raise TaskError(f"{problem}: a tensor on device {leaf.device}", hint=hint)
    return tree, leaves


def said(error: BaseException) -> str:
    """The message of an exception, whatever its class makes of it."""
    try:
        return str(error)
    except Exception as failed:
        return f"(its __str__ raises {type(failed).__name__})"
