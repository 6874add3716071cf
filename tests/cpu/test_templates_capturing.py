"""The process that captures a reference: whatever the reference does, it is told apart."""

from __future__ import annotations

import pytest

from references import Reference
from toprung.errors import TaskError, UsageError
from toprung.model.task import Case, Task
from toprung.proposers.templates.capturing import captured

pytestmark = pytest.mark.cpu


def a_task(reference: Reference, **changes: object) -> Task:
    return Task(name="x", reference=reference.source, **changes)


def test_a_reference_that_fails_is_the_tasks_fault() -> None:
    wrong = Reference("return u.reshape(7, 11)", None)
    with pytest.raises(TaskError, match="invalid for input of size 185") as raised:
        captured(a_task(wrong), "cpu:native")
    assert raised.value.details and "Traceback" in raised.value.details


def test_a_reference_that_does_not_end_is_ended() -> None:
    endless = Reference("return u", None, inputs="[1 for _ in iter(int, 1)]")
    with pytest.raises(TaskError, match="did not end within 8 s"):
        captured(a_task(endless), "cpu:native", timeout_s=8)


def test_open_cases_of_the_target_are_captured_whatever_is_printed() -> None:
    noisy = Reference("print('[{]')\nimport sys\nsys.stdout.flush()\nreturn u * 2", "pointwise")
    cases = (
        Case(name="here"),
        Case(name="hidden", held_out=True, args={"nonsense": 1}),
        Case(name="elsewhere", targets=("cuda",), args={"nonsense": 1}),
    )
    (found,) = captured(a_task(noisy, cases=cases), "cpu:native")
    assert found.case == "here"
    assert found.graph and [node.op for node in found.graph.nodes] == ["aten.mul"]
    with pytest.raises(UsageError, match="no open case for cpu"):
        captured(a_task(noisy, cases=cases[2:]), "cpu:native")
