"""Source with line numbers and a little colour, every character escaped."""

from __future__ import annotations

import re
from dataclasses import dataclass

from markupsafe import Markup, escape

from toprung.model.candidate import Candidate
from toprung.outputs.text import clean, one_line

MOST_LINES = 3000
WIDEST = 2000

_WORDS = (
    "and as assert async await break case class const constexpr continue def del do double elif else "
    "except False finally float for from global if import in inline int int64_t is lambda namespace "
    "None not or pass raise return size_t sizeof static struct template True try typename using void "
    "while with yield auto bool char unsigned __global__ __shared__ __device__"
)
# Candidates are Python with C++ or CUDA inside of strings, so both are read alike: the quotes of a
# long string are passed over, and what is inside is coloured as code.
_TOKEN = re.compile(
    r"(?P<note>//[^\n]*|(?<![\w\"'])#[^\n]*)"
    r"|(?P<text>\"{3}[^\n]*?\"{3}|\"(?:[^\"\\\n]|\\.)+\"|'(?:[^'\\\n]|\\.)+')"
    r"|(?P<number>\b\d[\w.]*)"
    rf"|(?P<word>\b(?:{'|'.join(_WORDS.split())})\b)"
)


# Long strings without code in them, such as docstrings, are prose.
_LONG = re.compile(r"(\"\"\"|''')(?P<inside>.*?)\1", re.DOTALL)
_CODE = re.compile(r";\s*$|[{}]|^\s*#", re.MULTILINE)


@dataclass(frozen=True)
class SourceFile:
    """A file as the page shows it: its name and its lines."""

    name: str
    lines: tuple[Markup, ...]
    left_out: int = 0


def source_files(candidate: Candidate, most: int = MOST_LINES) -> list[SourceFile]:
    """The files of a candidate, the main one first, at most `most` lines of each."""
    names = sorted(candidate.files, key=lambda name: (name != candidate.main, name))
    return [source_file(name, candidate.files[name], most) for name in names]


def source_file(name: str, content: str, most: int = MOST_LINES) -> SourceFile:
    """One file; what is past `most` lines is counted, not shown."""
    text = clean(content).expandtabs(4).rstrip("\n")
    lines, prose = text.split("\n"), _prose(text)
    shown = tuple(
        Markup('<i class="text">{}</i>').format(line[:WIDEST])
        if number in prose
        else _coloured(line[:WIDEST])
        for number, line in enumerate(lines[:most])
    )
    return SourceFile(one_line(name, 120), shown, max(len(lines) - most, 0))


def _prose(text: str) -> set[int]:
    """Numbers of the lines, from 0, that lie within long strings of prose; their ends included."""
    found: set[int] = set()
    for long in _LONG.finditer(text):
        if "\n" in long["inside"] and not _CODE.search(long["inside"]):
            first = text.count("\n", 0, long.start())
            found.update(range(first, first + long[0].count("\n") + 1))
    return found


def _coloured(line: str) -> Markup:
    parts: list[Markup] = []
    end = 0
    for found in _TOKEN.finditer(line):
        parts.append(escape(line[end : found.start()]))
        parts.append(Markup('<i class="{}">{}</i>').format(found.lastgroup, found[0]))
        end = found.end()
    return Markup("").join([*parts, escape(line[end:])])
