"""What is wrong with a task is told as the task's fault, with its own lines."""

from __future__ import annotations

import pytest
from oracle_bench import source_of

from toprung.errors import HarnessError, TaskError
from toprung.judge.oracle.examiner import Examiner
from toprung.model.task import Case, Task

pytestmark = pytest.mark.unit

GOOD = source_of("return x * 2", "torch.randn(8, 9)", args="self, x")


def task(source: str, **fields: object) -> Task:
    return Task(name="t", reference=source, path="some/where.py", **fields)  # type: ignore[arg-type]


def fault(source: str, **fields: object) -> TaskError:
    with pytest.raises(TaskError) as refusal:
        Examiner().open(task(source, **fields), 1, "cpu:native")
    return refusal.value


CASES = {
    "syntax": ("def broken(:", "cannot be loaded"),
    "import": ("import no_such_module\n" + GOOD, "no_such_module"),
    "no Model": (GOOD.replace("class Model", "class Other"), "no Model"),
    "no get_inputs": (GOOD.replace("def get_inputs", "def inputs"), "no get_inputs"),
    "get_inputs raises": (GOOD.replace("torch.randn(8, 9)", "1 / 0"), "division by zero"),
    "inputs are no list": (GOOD.replace("[torch.randn(8, 9)]", "torch.randn(8, 9)"), "not a list"),
    "inputs are no tensors": (GOOD.replace("torch.randn(8, 9)", "object()"), "object"),
    "constructor raises": (
        source_of("return x", "torch.randn(8)", init="raise OSError('no file')", args="self, x"),
        "no file",
    ),
    "Model is no module": (
        GOOD.replace("nn.Module", "object").replace("super().__init__()", "pass"),
        "not a torch.nn.Module",
    ),
    "forward raises": (
        source_of("return x @ x", "torch.randn(8, 9)", args="self, x"),
        "fails on case",
    ),
    "forward exits": (
        source_of("raise SystemExit(3)", "torch.randn(8, 9)", args="self, x"),
        "SystemExit",
    ),
    "nothing returned": (
        source_of("return None", "torch.randn(8, 9)", args="self, x"),
        "no tensor",
    ),
    "parameters change": (
        source_of(
            "self.w.data.add_(0); self.w.add_(1); return x * self.w",
            "torch.randn(8, 9)",
            init="self.w = nn.Parameter(torch.ones(9))",
            args="self, x",
        ),
        "changes parameter 'w'",
    ),
    "buffers appear": (
        source_of(
            "self.register_buffer('late', x.clone()); return x", "torch.randn(8, 9)", args="self, x"
        ),
        "creates buffer 'late'",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_broken_task_is_told_as_such(name: str) -> None:
    source, words = CASES[name]
    error = fault(source)
    assert error.blame == "task"
    assert words in error.message


def test_a_traceback_shows_the_tasks_own_line() -> None:
    error = fault(
        source_of("return helper(x)", "torch.randn(8, 9)", args="self, x")
        + "\n\ndef helper(x):\n    return x.no_such_thing\n"
    )
    details = error.details or ""
    assert 'File "some/where.py"' in details
    assert "return helper(x)" in details
    assert "return x.no_such_thing" in details
    assert "toprung" not in details


def test_case_arguments_reach_get_inputs() -> None:
    source = GOOD.replace("def get_inputs()", "def get_inputs(rows, columns=9)").replace(
        "randn(8, 9)", "randn(rows, columns)"
    )
    cases = (Case(name="a", args={"rows": 3}), Case(name="b", args={"rows": 4, "columns": 5}))
    opened = Examiner().open(task(source, cases=cases), 1, "cpu:native")
    assert [case.inputs.specs[0].shape for case in opened.cases] == [(3, 9), (4, 5)]
    assert "rows" in fault(source).message


def test_only_cases_of_the_target_are_opened() -> None:
    cases = (Case(name="gpu", targets=("cuda",)), Case(name="any", held_out=True), Case(name="cpu"))
    opened = Examiner().open(task(GOOD, cases=cases), 1, "cpu:native")
    assert [case.name for case in opened.cases] == ["any", "cpu"]
    assert opened.cases[0].held_out
    assert "cpu:native" in fault(GOOD, cases=(Case(targets=("cuda",)),)).message


def test_gradients_are_refused_in_plain_words() -> None:
    error = fault(GOOD, grad=("x",))
    assert "does not judge gradients" in error.message
    assert error.hint


def test_what_the_judge_asks_wrongly_is_the_harness_s_fault() -> None:
    examiner = Examiner()
    examiner.open(task(GOOD), 1, "cpu:native")
    with pytest.raises(HarnessError, match="no arena"):
        examiner.stage(0, "as_given", 0, [0])
    with pytest.raises(HarnessError, match="no case 7"):
        examiner.stage(7, "as_given", 0, [0])
    with pytest.raises(HarnessError, match="nothing is staged"):
        examiner.check(5, [0])


@pytest.mark.parametrize(
    ("inputs", "precision"),
    [
        ("torch.randn(8, 9)", "fp32"),
        ("torch.randn(8, 9).half()", "fp16"),
        ("torch.randn(8, 9).bfloat16()", "bf16"),
        ("torch.randn(8, 9).double()", "fp64"),
        ("torch.randint(0, 9, (8, 9))", "fp32"),
    ],
)
def test_precision_is_that_of_the_floating_inputs(inputs: str, precision: str) -> None:
    source = source_of("return x * 2", inputs, args="self, x")
    assert Examiner().open(task(source), 1, "cpu:native").precision == precision


def test_precision_is_that_of_the_parameters_where_no_input_is_floating() -> None:
    source = source_of(
        "return self.e(i)",
        "torch.randint(0, 9, (8,))",
        init="self.e = nn.Embedding(9, 4).bfloat16()",
        args="self, i",
    )
    assert Examiner().open(task(source), 1, "cpu:native").precision == "bf16"
