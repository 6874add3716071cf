"""TOML files: parsed, with the line of a key for messages."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toprung.errors import ToprungError

from .source import point_at, shown

Key = tuple[str | int, ...]
"""Path of a value: table names, and places in arrays counted from 0."""

_AT = re.compile(r"\(at line (\d+), column (\d+)\)")
_HEADER = re.compile(r"^\s*\[(\[)?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_ENTRY = re.compile(r"^\s*([^=#\[\]]+?)\s*=")


def load_toml(text: str, path: Path, fault: type[ToprungError]) -> dict[str, Any]:
    """The tables of a TOML file; what is not TOML raises `fault` with line and caret."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        line, column = (int(at[1]), int(at[2])) if at else (len(text.splitlines()), 1)
        raise fault(
            f"{shown(path)}, line {line}: {_AT.sub('', str(error)).strip()}",
            hint="the file must be valid TOML (https://toml.io)",
            details=point_at(text, line, column),
        ) from None
    except (ValueError, RecursionError) as error:
        raise fault(f"{shown(path)}: not readable as TOML: {error}") from None


def as_json(data: dict[str, Any], text: str, path: Path, fault: type[ToprungError]) -> str:
    """The tables of `text` as JSON; dates, NaN, infinities and integers beyond 64 bits raise
    `fault` with the key and its line."""
    try:
        for key, value in _leaves(data, ()):
            if complaint := _not_json(value):
                raise fault(f"{place_of(path, text, key)}: {spelled(key)} {complaint}")
        return json.dumps(data, allow_nan=False)
    except RecursionError:
        raise fault(f"{shown(path)}: tables are nested too deeply") from None


def _leaves(value: Any, key: Key) -> Iterator[tuple[Key, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*key, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*key, place))
    else:
        yield key, value


def _not_json(value: Any) -> str | None:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "does not fit into 64 bits"
    if isinstance(value, float) and not math.isfinite(value):
        return f"is {value}, which is not a finite number"
    if not isinstance(value, str | int | float):
        return f"is a {type(value).__name__}; write it as a string"
    return None


def spelled(key: Key) -> str:
    """A key as people write it: `cases[1].args.rows`."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def place_of(path: Path, text: str, key: Key) -> str:
    """Where `key` is written, for the start of a message: the file, and the line if it is found."""
    line = line_of(text, key)
    return f"{shown(path)}, line {line}" if line else shown(path)


def line_of(text: str, key: Key) -> int | None:
    """The line (from 1) where `key`, or else the table around it, is written; `None` if unsure.

    A scan of lines, not a parser: it serves messages only, and a key in unusual spelling is found
    at the table that holds it.
    """
    table: Key = ()
    places: dict[str, int] = {}
    best: tuple[int, int | None] = (0, None)
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            name = tuple(_names(header[2]))
            table = name
            if header[1]:
                dotted = ".".join(name)
                places[dotted] = places.get(dotted, -1) + 1
                table = (*name, places[dotted])
            elif name[:-1] and ".".join(name[:-1]) in places:
                table = (*name[:-1], places[".".join(name[:-1])], name[-1])
            found = table
        elif entry := _ENTRY.match(line):
            found = (*table, *_names(entry[1]))
        else:
            continue
        if key[: len(found)] == found and len(found) > best[0]:
            best = (len(found), number)
    return best[1]


def _names(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
