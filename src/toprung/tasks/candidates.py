"""Candidate files: from a path to the `Candidate`; the text is taken as it is, right or wrong."""

from __future__ import annotations

import ast
import os
import warnings
from pathlib import Path

from toprung.errors import UsageError
from toprung.model.candidate import Candidate

from .reference import Outline
from .source import MAX_BYTES, is_folder, read_text, shown
from .toml import load_toml

ENTRIES = ("ModelNew", "kernel")
NATIVE_SUFFIXES = (".cpp", ".cc", ".cxx", ".cu")
SINGLE_SUFFIXES = (".py", ".null")
MAX_FILES = 256

_FORMS = (
    "a candidate is a .py file that defines ModelNew or kernel, a folder with one (kernel.py), "
    "or a .cpp, .cc, .cxx or .cu file beside a NAME.toml with a [candidate] table"
)


def read_candidate(path: Path) -> Candidate:
    """The candidate at `path`: a file, a folder, or a native source with its sidecar.

    Nothing is executed and nothing judged: whether it parses, and which DSL it is, the `static`
    rung finds out. What cannot be read as source at all raises `UsageError`.
    """
    path = Path(path)
    if is_folder(path):
        return _of_folder(path)
    if path.suffix in NATIVE_SUFFIXES:
        return _of_native(path)
    text = read_text(path, "the candidate")
    if path.suffix not in SINGLE_SUFFIXES:
        raise UsageError(f"{shown(path)}: candidates do not end in {path.suffix!r}", hint=_FORMS)
    name = _file_name(path)
    return Candidate(files={name: text}, main=name)


def _of_native(path: Path) -> Candidate:
    source = read_text(path, "the candidate")
    sidecar = path.with_suffix(".toml")
    if not sidecar.is_file():
        raise UsageError(
            f"{shown(path)}: a plain {path.suffix} file needs {shown(Path(sidecar.name))} beside it",
            hint="write a [candidate] table there, or put the source into a .py file with "
            "toprung.inline(source, functions=[...])",
        )
    text = read_text(sidecar, "the candidate's sidecar")
    if not isinstance(load_toml(text, sidecar, UsageError).get("candidate"), dict):
        raise UsageError(f"{shown(sidecar)}: there is no [candidate] table")
    main = _file_name(path)
    return Candidate(files={main: source, _file_name(sidecar): text}, main=main)


def _of_folder(folder: Path) -> Candidate:
    files: dict[str, str] = {}
    size = 0
    for path in _listing(folder):
        text = read_text(path, "a file of the candidate")
        size += len(text)
        if size > MAX_BYTES:
            raise UsageError(f"{shown(folder)}: the candidate is larger than {MAX_BYTES >> 20} MiB")
        files[_file_name(path, folder)] = text
    return Candidate(files=files, main=_main_among(files, folder))


def _listing(folder: Path) -> list[Path]:
    """Every file below, sorted; hidden ones and Python's caches are left out.

    Links are refused: what they lead to is not the candidate's, and may not be for its eyes.
    """
    found: list[Path] = []

    def cannot(error: OSError) -> None:
        raise UsageError(f"{shown(folder)}: cannot be read: {error.strerror}")

    for here, folders, names in os.walk(folder, onerror=cannot):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "__pycache__")
        kept = [n for n in sorted(names) if not n.startswith(".")]
        for path in (Path(here, name) for name in [*folders, *kept]):
            if path.is_symlink():
                raise UsageError(
                    f"{shown(path)}: a symbolic link inside a candidate",
                    hint="put the file itself into the folder",
                )
        found += [Path(here, name) for name in kept]
        if len(found) > MAX_FILES:
            raise UsageError(
                f"{shown(folder)}: more than {MAX_FILES} files",
                hint="is this the right folder? a candidate's folder holds its sources only",
            )
    return found


def _main_among(files: dict[str, str], folder: Path) -> str:
    if "kernel.py" in files:
        return "kernel.py"
    python = [name for name in files if name.endswith(".py") and "/" not in name]
    defining = [name for name in python if _defines_an_entry(files[name])]
    if len(defining) == 1:
        return defining[0]
    if not defining and len(python) == 1:
        return python[0]
    if defining:
        why = f"several files define {' or '.join(ENTRIES)}: {', '.join(defining)}"
    else:
        why = f"no Python file in it defines {' or '.join(ENTRIES)}"
    raise UsageError(
        f"{shown(folder)}: {why}",
        hint="name the main file kernel.py, or give the path of the file instead of the folder",
    )


def _defines_an_entry(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(entry in Outline.of(tree).names for entry in ENTRIES)


def _file_name(path: Path, folder: Path | None = None) -> str:
    name = path.relative_to(folder).as_posix() if folder else path.name
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{shown(path)}: its name is not UTF-8", hint="rename the file") from None
    return name
