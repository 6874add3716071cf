"""The table of formats, its plug-ins, and garbage of every kind."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from toprung.errors import TaskError, ToprungError, UsageError
from toprung.model.task import Task
from toprung.tasks import read_candidate, read_task, readers

pytestmark = pytest.mark.unit

REFERENCE = (
    "class Model(Module):\n    def forward(self): ...\n"
    "def get_inputs(rows=1): ...\ndef get_init_inputs(): ...\n"
)


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points `lines` (works: reads `.lines` files), `absent` and `native` (a clash)."""
    module = ModuleType("lines_for_toprung")
    module.read = lambda path: (  # type: ignore[attr-defined]
        Task(name="lines", reference=path.read_text()) if path.suffix == ".lines" else None
    )
    monkeypatch.setitem(sys.modules, "lines_for_toprung", module)
    points = [
        EntryPoint("lines", "lines_for_toprung:read", readers.GROUP),
        EntryPoint("absent", "package_that_is_not_there:read", readers.GROUP),
        EntryPoint("native", "package_that_is_not_there:read", readers.GROUP),
    ]
    monkeypatch.setattr(
        readers, "entry_points", lambda group: points if group == readers.GROUP else []
    )


@pytest.mark.usefixtures("plugged")
def test_a_plugged_format_reads_what_the_built_in_ones_do_not_know(tmp_path: Path) -> None:
    (tmp_path / "a.lines").write_text("text")
    assert read_task(tmp_path / "a.lines", format="lines").reference == "text"
    assert list(readers.readers()) == ["kernelbench", "native", "absent", "lines"]


@pytest.mark.usefixtures("plugged")
def test_a_broken_plug_in_is_named_and_spares_the_other_formats(tmp_path: Path) -> None:
    (tmp_path / "a.lines").write_text("text")
    with pytest.raises(TaskError, match="'absent' cannot be loaded") as caught:
        read_task(tmp_path / "a.lines")
    assert "toprung.tasks: absent" in (caught.value.hint or "")
    (tmp_path / "a.py").write_text(REFERENCE)
    assert read_task(tmp_path / "a.py").name == "a"


def test_a_format_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(REFERENCE)
    assert read_task(tmp_path / "a.py", format="kernelbench").name == "a"
    with pytest.raises(UsageError, match="not a task"):
        read_task(tmp_path / "a.py", format="native")
    with pytest.raises(UsageError, match="no task format 'yaml'") as caught:
        read_task(tmp_path / "a.py", format="yaml")
    assert "kernelbench, native" in (caught.value.hint or "")


def tokens(*words: str) -> st.SearchStrategy[bytes]:
    """Texts of the words of a language in any order, which get further than random bytes."""
    return st.lists(st.sampled_from(words), max_size=30).map(lambda w: "".join(w).encode())


PYTHON = tokens(
    "class Model(", "nn.Module", "):\n", "    def forward(self): ...\n", "def get_inputs(", "a, /",
    "*, b=1", "**c", "):", " ...\n", "get_init_inputs", " = ", "lambda: []", "\n", "    ", "if 1:",
    "from x import *\n", "import Model\n", "(", ")", "[", "]", "'", '"""', "\\", "#", "\0", "é", ":=",
)  # fmt: skip
TOML = tokens(
    "[task]", "[[cases]]", "[cases.args]", "\n", "name", "args", "held_out", "reference", ".", " = ",
    "'reference.py'", "'x'", "{", "}", "[", "]", "rows", "1", "-1", "nan", "true", "2020-01-01", ",",
    "[tolerance]", "rtol", "preset", "'strict'", "[inputs]", "families", "'all'", "#", '"""', "\\",
    "0x" + "f" * 40, "cases", "[baseline]", "vendor", "'task.toml'",
)  # fmt: skip

harmless = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def survives(read, path: Path) -> None:
    """`read(path)` works or raises a `ToprungError` with a message in plain text."""
    try:
        read(path)
    except ToprungError as error:
        assert error.message
        str(error).encode()


@harmless
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | PYTHON)
@example(data=REFERENCE.encode())
def test_garbage_in_a_python_task(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.py").write_bytes(data)
    survives(read_task, tmp_path / "a.py")


@harmless
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | TOML)
@example(data=b"")
def test_garbage_in_a_native_task(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "task.toml").write_bytes(data)
    survives(read_task, tmp_path)


@harmless
@given(
    data=st.binary(max_size=100) | PYTHON | TOML, suffix=st.sampled_from([".py", ".cu", ".null"])
)
def test_garbage_in_a_candidate(tmp_path: Path, data: bytes, suffix: str) -> None:
    folder = tmp_path / suffix
    folder.mkdir(exist_ok=True)
    (folder / f"a{suffix}").write_bytes(data)
    (folder / "a.toml").write_bytes(data)
    survives(read_candidate, folder / f"a{suffix}")
    survives(read_candidate, folder)


@harmless
@given(name=st.text(min_size=1, max_size=300))
def test_garbage_in_a_path(name: str) -> None:
    survives(read_task, Path("nowhere") / name)
    survives(read_candidate, Path("nowhere") / name)
