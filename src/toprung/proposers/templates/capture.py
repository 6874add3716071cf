"""Runs in a process of its own: exports a reference and prints its graph as JSON.

`python -m toprung.proposers.templates.capture` reads a task on standard input. The reference is the
user's code: whatever it prints goes to standard error, and its memory and processor time are
limited. If it fails by itself, the process ends with 1 and a traceback; what torch cannot export is
told in the answer.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import types
from typing import Any

import torch

from toprung.model.task import Task

from .graph import Capture
from .trace import Build, Unexportable, graph_of

SECONDS = 300
"""Processor time for all cases together."""


def main() -> None:
    """Answer one task."""
    answer = os.dup(1)
    os.dup2(2, 1)
    task = Task.from_json(sys.stdin.read())
    _limit()
    torch.set_num_threads(1)
    captures = [capture(task, case.name, case.args).to_dict() for case in task.cases]
    with os.fdopen(answer, "w") as out:
        json.dump(captures, out)


def _limit() -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def capture(task: Task, case: str, args: dict[str, Any]) -> Capture:
    """The graph of `task` for one case, with symbolic sizes where that is possible."""
    module = types.ModuleType("reference")
    exec(compile(task.reference, task.path or "reference.py", "exec"), module.__dict__)
    inputs = list(module.get_inputs(**args))
    try:
        graph = _symbolic_or_exact(lambda: _model(module, task), inputs)
    except Unexportable as why:
        return Capture(case=case, refused=str(why))
    return Capture.model_validate({"case": case, "graph": graph})


def _model(module: Any, task: Task) -> torch.nn.Module:
    return module.Model(*module.get_init_inputs()).train(task.train)


def _symbolic_or_exact(build: Build, inputs: list[Any]) -> dict[str, Any]:
    try:
        return graph_of(build, inputs, symbolic=True)
    except Unexportable:
        raise
    except Exception:  # torch raises many kinds for sizes that it cannot keep symbolic
        pass
    try:
        return graph_of(build, inputs, symbolic=False)
    except Unexportable:
        raise
    except Exception as failure:
        with torch.no_grad():
            build()(*inputs)  # a reference that fails by itself ends this process here
        raise Unexportable(f"torch.export cannot capture it: {_gist(failure)}") from failure


def _gist(failure: BaseException) -> str:
    if "DataDependent" in type(failure).__name__:
        return "it takes decisions that depend on the values in its tensors"
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(failure).__name__


if __name__ == "__main__":
    main()
