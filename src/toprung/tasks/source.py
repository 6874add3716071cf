"""Text of the files that tasks and candidates are made of, read without trusting a byte of it."""

from __future__ import annotations

import ast
import os
import stat
import warnings
from pathlib import Path

from toprung.errors import TaskError, ToprungError, UsageError

MAX_BYTES = 4 << 20
"""No file of a task and no candidate may be larger: 4 MiB."""

_SHOWN_COLUMNS = 160


def shown(path: Path) -> str:
    """`path` as text for messages; bytes of a file name that are not UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def is_folder(path: Path) -> bool:
    """Whether `path` leads to a folder; false, and never an exception, for what cannot be looked at."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def read_text(path: Path, what: str, fault: type[ToprungError] = UsageError) -> str:
    """The text of the regular file `path`, at most `MAX_BYTES` of UTF-8, a leading BOM dropped.

    Anything else raises `fault` with a message that calls the file `what`; a path that leads to
    nothing at all raises `UsageError`. Pipes and devices are refused, never waited for.
    """
    data = _read_bytes(path, what, fault)
    name = shown(path)
    if len(data) > MAX_BYTES:
        raise fault(
            f"{name}: {what} is larger than {MAX_BYTES >> 20} MiB",
            hint="is this the right file? data belongs into get_inputs(), not into the source",
        )
    if not data.strip():
        raise fault(f"{name}: {what} is empty")
    if b"\0" in data:
        raise fault(
            f"{name}: {what} is binary, not text (NUL byte at offset {data.index(0)})",
            hint="give the source file, not what was built from it",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise fault(
            f"{name}, line {line}: {what} is not UTF-8 (byte 0x{data[error.start]:02x} at "
            f"offset {error.start})",
            hint="save the file as UTF-8",
        ) from None


def _read_bytes(path: Path, what: str, fault: type[ToprungError]) -> bytes:
    """At most one byte more than `MAX_BYTES`, so that the caller can tell what is too large."""
    name = shown(path)
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{name}: there is no such file", hint="check the path") from None
    except (OSError, ValueError) as error:
        raise fault(f"{name}: {what} cannot be read: {_why(error)}") from None
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or device"
            raise fault(f"{name}: {what} must be a file, and this is {kind}")
        try:
            return file.read(MAX_BYTES + 1)
        except OSError as error:
            raise fault(f"{name}: {what} cannot be read: {_why(error)}") from None


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def parse_python(text: str, path: Path) -> ast.Module:
    """The syntax tree of `text`; what Python cannot parse is a `TaskError` with line and caret."""
    try:
        with warnings.catch_warnings():
            # Doubtful escapes and the like are the author's business, not ours.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        line, column = error.lineno or 1, error.offset or 1
        raise TaskError(
            f"{shown(path)}, line {line}: {error.msg}",
            hint="the file must be valid Python",
            details=point_at(text, line, column),
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise TaskError(
            f"{shown(path)}: Python cannot parse this file ({type(error).__name__}: "
            f"{str(error) or 'nested too deeply'})"
        ) from None


def point_at(text: str, line: int, column: int) -> str:
    """Line `line` of `text` (both counted from 1) with a caret under `column`.

    Long lines are cut around the caret; characters that a terminal would obey are shown as `?`.
    """
    lines = text.splitlines()
    if not 1 <= line <= len(lines):
        return ""
    first = max(0, column - 1 - _SHOWN_COLUMNS // 2)
    cut = lines[line - 1][first : first + _SHOWN_COLUMNS]
    safe = "".join(c if c.isprintable() else " " if c == "\t" else "?" for c in cut)
    margin = f"{line:>5} | "
    caret = min(max(column - 1 - first, 0), len(safe))
    return f"{margin}{safe}\n{' ' * (len(margin) + caret)}^"
