"""Candidates: which files make one, and which cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toprung.errors import Exit, UsageError
from toprung.tasks import read_candidate

pytestmark = pytest.mark.unit

KERNEL = "def kernel(x):\n    return x + 1\n"


def refused(path: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_candidate(path)
    assert caught.value.exit_code == Exit.WRONG
    return caught.value


def tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize("name", ["23_softmax.py", "echo.null"])
def test_a_single_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(KERNEL)
    candidate = read_candidate(tmp_path / name)
    assert candidate.files == {name: KERNEL}
    assert candidate.main == name
    assert candidate.dsl is None


def test_what_does_not_parse_is_for_the_static_rung(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def kernel(x:")
    assert read_candidate(tmp_path / "broken.py").source == "def kernel(x:"


def test_nothing_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    tree(tmp_path, {"c/main.py": KERNEL + f"open({str(mark)!r}, 'w')\n", "c/b.py": "import main"})
    read_candidate(tmp_path / "c")
    assert not mark.exists()


def test_a_folder_with_kernel_py(tmp_path: Path) -> None:
    tree(tmp_path, {"kernel.py": KERNEL, "src/a.cu": "// a", "other.py": "class ModelNew: ..."})
    candidate = read_candidate(tmp_path)
    assert candidate.main == "kernel.py"
    assert sorted(candidate.files) == ["kernel.py", "other.py", "src/a.cu"]


def test_a_folder_whose_only_definition_tells_the_main_file(tmp_path: Path) -> None:
    tree(tmp_path, {"fast.py": "class ModelNew(X): ...", "parts.py": "def part(): ..."})
    tree(tmp_path, {"sub/deep.py": KERNEL})
    assert read_candidate(tmp_path).main == "fast.py"


def test_a_folder_whose_only_python_file_is_broken(tmp_path: Path) -> None:
    tree(tmp_path, {"fast.py": "class ModelNew(", "notes.md": "notes"})
    assert read_candidate(tmp_path).main == "fast.py"


def test_caches_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path, {"kernel.py": KERNEL})
    (tmp_path / "__pycache__").mkdir(exist_ok=True)
    (tmp_path / "__pycache__" / "k.pyc").write_bytes(b"\0")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "index").write_bytes(b"\0")
    (tmp_path / ".hidden").write_bytes(b"\0")
    assert list(read_candidate(tmp_path).files) == ["kernel.py"]


@pytest.mark.parametrize("suffix", [".cpp", ".cc", ".cxx", ".cu"])
def test_a_native_source_brings_its_sidecar(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"fast{suffix}").write_text("// source")
    (tmp_path / "fast.toml").write_text('[candidate]\nentry = "run"\n')
    candidate = read_candidate(tmp_path / f"fast{suffix}")
    assert candidate.main == f"fast{suffix}"
    assert candidate.files == {
        f"fast{suffix}": "// source",
        "fast.toml": '[candidate]\nentry = "run"\n',
    }


def test_a_native_source_without_a_sidecar(tmp_path: Path) -> None:
    (tmp_path / "fast.cu").write_text("// source")
    error = refused(tmp_path / "fast.cu")
    assert "fast.toml" in error.message
    assert "[candidate]" in (error.hint or "")


@pytest.mark.parametrize("text", ["[task]\n", "candidate = 3\n"])
def test_a_sidecar_without_the_table(tmp_path: Path, text: str) -> None:
    (tmp_path / "fast.cpp").write_text("// source")
    (tmp_path / "fast.toml").write_text(text)
    assert "no [candidate] table" in refused(tmp_path / "fast.cpp").message


def test_a_sidecar_that_is_not_toml(tmp_path: Path) -> None:
    (tmp_path / "fast.cpp").write_text("// source")
    (tmp_path / "fast.toml").write_text("[candidate]\nentry = run\n")
    error = refused(tmp_path / "fast.cpp")
    assert "fast.toml, line 2" in error.message
    assert "^" in (error.details or "")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\n \t", "is empty"),
        (b"PK\x03\x04\0\0", "is binary"),
        (b"# \xff", "is not UTF-8"),
        (b"#" * ((4 << 20) + 1), "larger than 4 MiB"),
    ],
)
@pytest.mark.parametrize("name", ["kernel.py", "c/kernel.py"])
def test_what_is_no_text(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    assert message in refused(path if name == "kernel.py" else path.parent).message


def test_missing_paths_and_strange_suffixes(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "missing.py").message
    assert "no such file" in refused(tmp_path / "missing.cpp").message
    assert "cannot be read" in refused(tmp_path / ("a" * 5000)).message
    (tmp_path / "kernel.txt").write_text(KERNEL)
    assert "'.txt'" in refused(tmp_path / "kernel.txt").message


def test_folders_without_one_main_file(tmp_path: Path) -> None:
    assert "no Python file" in refused(tmp_path).message
    tree(tmp_path, {"a.py": "x = 1", "b.py": "y = 1"})
    assert "no Python file in it defines ModelNew or kernel" in refused(tmp_path).message
    tree(tmp_path, {"a.py": KERNEL, "b.py": KERNEL})
    assert "several files define ModelNew or kernel: a.py, b.py" in refused(tmp_path).message


def test_folders_that_are_too_much(tmp_path: Path) -> None:
    tree(tmp_path, {"many/kernel.py": KERNEL, "large/kernel.py": KERNEL})
    for number in range(256):
        (tmp_path / "many" / f"{number}.txt").write_text("x")
    assert "more than 256 files" in refused(tmp_path / "many").message
    for number in range(3):
        (tmp_path / "large" / f"{number}.txt").write_text("x" * (2 << 20))
    assert "larger than 4 MiB" in refused(tmp_path / "large").message


@pytest.mark.parametrize("kind", ["file", "folder", "dangling"])
def test_links_out_of_a_folder_are_refused(tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.txt").write_text("secret")
    folder = tree(tmp_path / "c", {"kernel.py": KERNEL})
    to = {"file": secret / "key.txt", "folder": secret, "dangling": tmp_path / "nowhere"}[kind]
    (folder / "link").symlink_to(to)
    assert "symbolic link" in refused(folder).message


def test_a_pipe_in_a_folder_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    tree(tmp_path, {"kernel.py": KERNEL})
    os.mkfifo(tmp_path / "pipe")
    assert "pipe or device" in refused(tmp_path).message


def test_a_file_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = Path(str(tmp_path) + "/\udcff.py")
    try:
        path.write_text(KERNEL)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert "not UTF-8" in refused(path).message
    assert "not UTF-8" in refused(tmp_path).message
