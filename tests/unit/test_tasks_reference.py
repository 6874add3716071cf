"""KernelBench files: what is read, and what each way of being wrong says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toprung.errors import Exit, TaskError, ToprungError, UsageError
from toprung.model.task import Case
from toprung.tasks import read_task

pytestmark = pytest.mark.unit

GOOD = """\
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return []
"""


def write(folder: Path, text: str | bytes, name: str = "task.py") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path: Path) -> ToprungError:
    with pytest.raises(ToprungError) as caught:
        read_task(path)
    assert caught.value.exit_code == Exit.WRONG
    return caught.value


def test_a_file_is_a_task_as_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD, "23_Softmax.py")
    task = read_task(path)
    assert task.name == "23_Softmax"
    assert task.reference == GOOD
    assert task.path == str(path)
    assert task.cases == (Case(),)
    assert task.precision is None


def test_the_file_is_not_executed(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    read_task(write(tmp_path, GOOD + f"\nopen({str(mark)!r}, 'w')\nraise SystemExit(1)\n"))
    assert not mark.exists()


def test_reading_loads_no_torch(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    code = (
        "import sys, pathlib, toprung.tasks as t\n"
        f"t.read_task(pathlib.Path({str(path)!r}))\n"
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_a_byte_order_mark_and_foreign_line_ends_are_fine(tmp_path: Path) -> None:
    path = write(tmp_path, b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read_task(path).reference.startswith("import torch\r\n")


@pytest.mark.parametrize(
    "rewritten",
    [
        GOOD.replace("def get_inputs():", "get_inputs = lambda:").replace(
            "lambda:\n    return", "lambda:"
        ),
        GOOD.replace("class Model(torch.nn.Module)", "class Base(torch.nn.Module)")
        + "class Model(Base):\n    pass\n",
        "from somewhere import *\n",
        "from somewhere import Model, get_inputs, get_init_inputs\n",
        "try:\n    import a\nexcept ImportError:\n    a = None\nif a:\n"
        + "".join("    " + line + "\n" for line in GOOD.splitlines()),
        GOOD.replace("def get_inputs()", "def get_inputs(rows=4, *, cols=8)"),
        GOOD.replace("def get_inputs()", "def get_inputs(*sizes, **more)"),
    ],
)
def test_other_ways_to_define_the_three_names(tmp_path: Path, rewritten: str) -> None:
    assert read_task(write(tmp_path, rewritten)).reference == rewritten


@pytest.mark.parametrize("name", ["Model", "get_inputs", "get_init_inputs"])
def test_what_is_missing_is_named_with_how_to_write_it(tmp_path: Path, name: str) -> None:
    error = refused(write(tmp_path, GOOD.replace(name, "other")))
    assert isinstance(error, TaskError)
    assert f"no {name} at module level" in error.message
    assert name in (error.hint or "")


def test_names_inside_functions_do_not_count(tmp_path: Path) -> None:
    inner = GOOD.replace("def get_inputs():", "def outer():\n    def get_inputs(): pass")
    assert "no get_inputs" in refused(write(tmp_path, inner)).message


def test_a_candidate_in_the_place_of_the_task_is_recognised(tmp_path: Path) -> None:
    error = refused(write(tmp_path, GOOD.replace("class Model(", "class ModelNew(")))
    assert "TASK CANDIDATE" in (error.hint or "")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("class Model(torch.nn.Module):", "class Model:", "line 3: class Model has no base class"),
        ("def forward(", "def forwards(", "line 3: class Model has no forward()"),
        ("class Model(torch.nn.Module)", "def Model(x)", "line 3: Model is a function"),
        (
            "def get_inputs()",
            "async def get_inputs()",
            "line 7: get_inputs is not a plain function",
        ),
        ("def get_inputs()", "def get_inputs(rows)", "line 7: get_inputs() needs 'rows'"),
        ("def get_inputs()", "def get_inputs(rows, /)", "line 7: get_inputs() needs 'rows'"),
        ("def get_inputs()", "def get_inputs(*, rows)", "line 7: get_inputs() needs 'rows'"),
        ("def get_init_inputs()", "def get_init_inputs(n)", "line 10: get_init_inputs() needs 'n'"),
    ],
)
def test_misshapen_definitions_are_told_with_their_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    error = refused(write(tmp_path, GOOD.replace(old, new)))
    assert isinstance(error, TaskError)
    assert message in error.message
    assert error.hint


def test_a_syntax_error_shows_line_and_caret(tmp_path: Path) -> None:
    error = refused(write(tmp_path, GOOD.replace("dim=1)", "dim=1]")))
    assert isinstance(error, TaskError)
    assert "line 5" in error.message
    shown, caret = (error.details or "").splitlines()
    assert shown.endswith("return torch.softmax(x, dim=1]")
    assert shown[caret.index("^")] == "]"


def test_the_shown_line_is_cut_and_cleaned(tmp_path: Path) -> None:
    line = "x = '\x1b[31m" + "a" * 100_000 + "' ]" + "b" * 100_000
    details = refused(write(tmp_path, line)).details or ""
    assert len(details) < 1000
    assert "\x1b" not in details
    shown, caret = details.splitlines()
    assert shown[caret.index("^")] == "]"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\x7fELF\0\0", "is binary"),
        (b"x = 1\ny = '\xe4'\n", "line 2: the task is not UTF-8 (byte 0xe4"),
        (b"#" * (4 << 20) + b"#", "larger than 4 MiB"),
        (b"-" * 200_000 + b"1", "cannot parse"),
        (b"a" + b"+1" * 100_000, "cannot parse"),
    ],
)
def test_what_is_no_source_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    error = refused(write(tmp_path, data))
    assert isinstance(error, TaskError)
    assert message in error.message


def test_exactly_the_limit_is_read(tmp_path: Path) -> None:
    padded = GOOD.encode() + b"#" * ((4 << 20) - len(GOOD))
    assert len(read_task(write(tmp_path, padded)).reference) == 4 << 20


def test_pipes_are_refused_and_never_waited_for(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "task.py")
    assert "pipe or device" in refused(tmp_path / "task.py").message


@pytest.mark.parametrize("path", ["missing.py", "missing/task.py", "a" * 5000, "nul\0.py"])
def test_a_path_that_leads_nowhere(tmp_path: Path, path: str) -> None:
    assert isinstance(refused(tmp_path / path), UsageError)


def test_other_files_are_not_tasks(tmp_path: Path) -> None:
    error = refused(write(tmp_path, "hello", "task.txt"))
    assert isinstance(error, UsageError)
    assert "KernelBench" in (error.hint or "")


def test_a_file_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = Path(str(tmp_path) + "/\udcff.py")
    try:
        path.write_text(GOOD)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert read_task(path).name == "\ufffd"
