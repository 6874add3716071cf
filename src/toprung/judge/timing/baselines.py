"""Baselines: the reference in eager mode, compiled, and a vendor's code where the task names one.

Each is a candidate like any other, timed by the same code in a process of its own.
"""

from __future__ import annotations

from toprung.model.candidate import Candidate
from toprung.model.task import Task

EAGER = """

class ModelNew(Model):
    pass
"""

COMPILED = """

class ModelNew(Model):
    def prepare(self):
        import torch

        self._compiled = torch.compile(super().forward)

    def __call__(self, *inputs):
        return self._compiled(*inputs)
"""

NAMES = ("eager", "compile", "vendor")


def baseline(task: Task, name: str) -> Candidate | None:
    """The baseline called `name` as a candidate; `None` for a vendor that the task does not name."""
    if name == "vendor":
        return Candidate.of_source(task.vendor) if task.vendor else None
    text = EAGER if name == "eager" else COMPILED
    return Candidate.of_source(task.reference + text, dsl="torch", main="reference.py")
