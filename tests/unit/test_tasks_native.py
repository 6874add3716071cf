"""Native tasks: every key is read, and every wrong key is told with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from toprung.errors import Exit, TaskError, ToprungError, UsageError
from toprung.model.task import Case, Inputs, Objective, Rules, Tolerance, Weights
from toprung.tasks import read_task
from toprung.tasks.toml import line_of

pytestmark = pytest.mark.unit

REFERENCE = """\
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs(rows=4, cols=8):
    return [torch.rand(rows, cols)]

def get_init_inputs():
    return []
"""

FULL = """\
[task]
name = "plus one"
precision = "bf16"
grad = ["x"]
train = true
reference = "other.py"
description = "adds one"

[[cases]]
name = "wide"
args = { rows = 3, cols = 5 }

[[cases]]
name = "hidden"
held_out = true
targets = ["cuda"]

[tolerance]
preset = "kernelbench"
rtol = 1e-3
atol_scale = 2
min_psnr = 40.0
min_cosine = 0.999

[inputs]
families = ["as_given", "special_values"]

[rules]
library_calls = "forbid"
in_place = true

[objective]
weights = { latency = 0.5, memory = 0.5 }
max_peak_bytes = 1_000_000
max_error = 0.5

[baseline]
vendor = "vendor.py"
"""


def folder_with(folder: Path, toml: str | bytes, **files: str) -> Path:
    (folder / "task.toml").write_bytes(toml if isinstance(toml, bytes) else toml.encode())
    for name, text in {"reference": REFERENCE, **files}.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def refused(path: Path) -> ToprungError:
    with pytest.raises(ToprungError) as caught:
        read_task(path)
    assert caught.value.exit_code == Exit.WRONG
    return caught.value


def test_everything_is_optional(tmp_path: Path) -> None:
    folder = tmp_path / "plus"
    folder.mkdir()
    task = read_task(folder_with(folder, ""))
    assert task.name == "plus"
    assert task.reference == REFERENCE
    assert task.cases == (Case(),)
    assert task.tolerance == Tolerance()
    assert task.vendor is None


def test_every_key_is_read(tmp_path: Path) -> None:
    task = read_task(
        folder_with(tmp_path, FULL, other=REFERENCE + "# other\n", vendor="def kernel(x): ...")
    )
    assert (task.name, task.precision, task.grad, task.train) == ("plus one", "bf16", ("x",), True)
    assert task.description == "adds one"
    assert task.reference.endswith("# other\n")
    assert task.cases == (
        Case(name="wide", args={"rows": 3, "cols": 5}),
        Case(name="hidden", held_out=True, targets=("cuda",)),
    )
    assert task.tolerance == Tolerance(
        preset="kernelbench", rtol=1e-3, atol_scale=2, min_psnr=40, min_cosine=0.999
    )
    assert task.inputs == Inputs(families=("as_given", "special_values"))
    assert task.rules == Rules(library_calls="forbid", in_place=True)
    assert task.objective == Objective(
        weights=Weights(latency=0.5, memory=0.5), max_peak_bytes=1_000_000, max_error=0.5
    )
    assert task.vendor == "def kernel(x): ..."


def test_the_path_of_the_toml_file_is_the_same_task(tmp_path: Path) -> None:
    folder_with(tmp_path, "[task]\ntrain = true\n")
    assert read_task(tmp_path / "task.toml") == read_task(tmp_path)


def test_another_toml_file_beside_it_is_another_task(tmp_path: Path) -> None:
    folder_with(tmp_path, "")
    (tmp_path / "wide.toml").write_text("[[cases]]\nargs = { cols = 99 }\n")
    task = read_task(tmp_path / "wide.toml")
    assert task.name == "wide"
    assert task.cases[0].args == {"cols": 99}


def test_the_name_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_with(tmp_path, "")
    monkeypatch.chdir(folder)
    assert read_task(Path()).name == folder.name
    assert read_task(Path("task.toml")).name == folder.name


def test_a_folder_without_task_toml_is_no_task(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    error = refused(tmp_path)
    assert isinstance(error, UsageError)
    assert "task.toml" in (error.hint or "")


@pytest.mark.parametrize(
    ("toml", "message", "hint"),
    [
        ("[task]\nnme = 'x'", "line 2: unknown key task.nme", "did you mean 'name'?"),
        ("[task]\n\ntrain = 'yes'", "line 3: task.train should be a valid boolean", "'yes'"),
        ("[task]\ntrain = 1", "line 2: task.train should be a valid boolean", "1"),
        ("[task]\nprecision = 'fp31'", "line 2: task.precision should be 'fp64'", "'fp31'"),
        ("[task]\nname = ''", "line 2: task.name", "''"),
        ("[task]\ngrad = 'x'", "line 2: task.grad should be a valid array", "'x'"),
        ("[task]\ngrad = ['x', 3]", "line 2: task.grad[1] should be a valid string", "3"),
        ("task = [1]", "line 1: task should be a table", "[1]"),
        ("[tasks]\n", "line 1: unknown key tasks", "task, cases, tolerance, inputs, rules"),
        ("cases = 3", "line 1: cases should be a valid array", "3"),
        ("cases = []", "line 1: cases should have at least 1 item", "[]"),
        (
            "[[cases]]\n[[cases]]\nhold_out = true",
            "line 3: unknown key cases[1].hold_out",
            "held_out",
        ),
        ("[[cases]]\nargs = 3", "line 2: cases[0].args should be a table", "3"),
        ("[[cases]]\nargs = { n = nan }", "line 2: cases[0].args.n is nan", ""),
        ("[[cases]]\nargs = { n = 2020-01-01 }", "line 2: cases[0].args.n is a date", ""),
        (
            "[[cases]]\n[cases.args]\nn = 0x1_0000_0000_0000_0000",
            "line 3: cases[0].args.n does not",
            "",
        ),
        ("[tolerance]\nrtol = '1'", "line 2: tolerance.rtol should be a valid number", "'1'"),
        ("[tolerance]\nrtol = -1.0", "line 2: tolerance.rtol should be greater", "-1.0"),
        ("[tolerance]\npreset = 'lax'", "line 2: tolerance.preset should be 'strict'", "'lax'"),
        ("[inputs]\nfamilies = 'some'", "line 2: inputs.families should be 'all', or", "'some'"),
        ("[inputs]\nfamilies = ['odd']", "line 2: inputs.families should be 'all', or", "odd"),
        ("[rules]\nlibrary_calls = true", "line 2: rules.library_calls should be 'allow'", "True"),
        (
            "[objective]\nweights = { speed = 1 }",
            "line 2: unknown key objective.weights.speed",
            "latency",
        ),
        ("[objective]\nmax_peak_bytes = 1e9", "line 2: objective.max_peak_bytes", "1000000000.0"),
        (
            "[baseline]\nvendors = 'v.py'",
            "line 2: unknown key baseline.vendors",
            "did you mean 'vendor'",
        ),
        ("[[cases]]\nheld_out = true", "every case is held out", ""),
        ("[[cases]]\ntimed = false", "no open case is timed", ""),
        ("[[cases]]\n[[cases]]", "case names must differ: default", ""),
        ("a" + ".a" * 5000 + " = 1", "nested too deeply", ""),
        ("x = " + "[" * 5000, "not readable as TOML", ""),
    ],
)
def test_wrong_keys_are_told_with_their_place(
    tmp_path: Path, toml: str, message: str, hint: str
) -> None:
    error = refused(folder_with(tmp_path, toml))
    assert isinstance(error, TaskError)
    assert message in error.message
    assert hint in (error.hint or "")


def test_broken_toml_shows_line_and_caret(tmp_path: Path) -> None:
    error = refused(folder_with(tmp_path, "[task]\nname = softmax\n"))
    assert "line 2" in error.message
    shown, caret = (error.details or "").splitlines()
    assert shown[caret.index("^") :] == "softmax"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("{ rows = 3, columns = 4 }", "get_inputs() has no parameter 'columns', which case 'odd'"),
        ("{ 'a b' = 3 }", "get_inputs() has no parameter 'a b'"),
    ],
)
def test_case_arguments_are_held_against_get_inputs(
    tmp_path: Path, args: str, message: str
) -> None:
    error = refused(folder_with(tmp_path, f"[[cases]]\nname = 'odd'\nargs = {args}\n"))
    assert message in error.message
    assert "rows, cols" in (error.hint or "")


def test_a_size_without_default_must_be_given_by_every_case(tmp_path: Path) -> None:
    reference = REFERENCE.replace("rows=4", "rows")
    given = "[[cases]]\nargs = { rows = 2 }\n"
    assert read_task(folder_with(tmp_path, given, reference=reference)).cases[0].args == {"rows": 2}
    error = refused(folder_with(tmp_path, given + "[[cases]]\nname='b'\n", reference=reference))
    assert "needs 'rows', and case 'b'" in error.message


@pytest.mark.parametrize("key", ["[task]\nreference = 'none.py'", "[baseline]\nvendor = 'none.py'"])
def test_a_named_file_that_is_missing(tmp_path: Path, key: str) -> None:
    error = refused(folder_with(tmp_path, key))
    assert isinstance(error, TaskError)
    assert "line 2" in error.message
    assert "none.py" in error.message


def test_a_named_file_with_an_impossible_name(tmp_path: Path) -> None:
    assert isinstance(refused(folder_with(tmp_path, '[task]\nreference = "\\u0000"')), TaskError)
    assert isinstance(
        refused(folder_with(tmp_path, f"[task]\nreference = '{'a' * 5000}'")), TaskError
    )


def test_a_vendor_baseline_must_parse(tmp_path: Path) -> None:
    error = refused(
        folder_with(tmp_path, "[baseline]\nvendor = 'vendor.py'", vendor="def kernel(x:")
    )
    assert "vendor.py, line 1" in error.message


def test_errors_in_the_reference_name_the_reference(tmp_path: Path) -> None:
    error = refused(folder_with(tmp_path, "", reference=REFERENCE.replace("x + 1", "x +")))
    assert "reference.py, line 5" in error.message


def test_lines_of_keys_are_found_or_not_told() -> None:
    text = "# [task]\n[task] # here\n'name' = 1\n[[cases]]\n[cases.args]\nrows = 1\n[[cases]]\n"
    assert line_of(text, ("task",)) == 2
    assert line_of(text, ("task", "name")) == 3
    assert line_of(text, ("cases", 0, "args", "rows")) == 6
    assert line_of(text, ("cases", 1, "args", "rows")) == 7
    assert line_of(text, ("rules", "in_place")) is None
