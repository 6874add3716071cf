"""The part of a traceback or of compiler output that matters to whoever wrote the candidate."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .text import clean

WIDEST = 200
"""Characters of a line that are shown."""

_FRAME = re.compile(r'^(\s*)File "(?P<path>[^"]+)", line (?P<line>\d+)(?P<rest>.*)$')
# Frames that the candidate's author can do nothing about: ours, the libraries', Python's own.
_FOREIGN = re.compile(
    r"(?:^|/)toprung/(?:judge|dsls|model|tasks|pool|errors)[/.]|/(?:site|dist)-packages/"
    r"|/lib(?:64)?/python3|^<frozen "
)
_COMPLAINT = re.compile(r"\berror\b|\bfatal\b|undefined reference|ptxas", re.IGNORECASE)


def trimmed(text: str, lines: int) -> list[str]:
    """At most `lines` lines of `text`: the candidate's own frames, or the first complaints."""
    given = [line.rstrip()[:WIDEST] for line in clean(text).splitlines() if line.strip()]
    if any(_FRAME.match(line) for line in given):
        return _middle_out(list(_own_frames(given)), lines, head=lines // 3)
    if any(_COMPLAINT.search(line) for line in given):
        return _middle_out(list(_complaints(given)), lines, head=lines - 1)
    return _middle_out(given, lines, head=lines // 3)


def _own_frames(given: list[str]) -> Iterator[str]:
    """Every line but those of foreign frames; the last frame stays when all are foreign."""
    frames = [place for place, line in enumerate(given) if _FRAME.match(line)]
    foreign = {place for place in frames if _FOREIGN.search(_path(given[place]))}
    if len(foreign) == len(frames):
        foreign.discard(frames[-1])
    dropping = False
    for place, line in enumerate(given):
        found = _FRAME.match(line)
        if found:
            dropping = place in foreign
        elif not line.startswith((" ", "\t")):
            dropping = False
        if not dropping:
            yield _short(found) if found else line


def _path(line: str) -> str:
    found = _FRAME.match(line)
    return found["path"] if found else ""


def _short(frame: re.Match[str]) -> str:
    """A frame with the file's own name: where a scratch folder lies is nobody's business."""
    path = frame["path"]
    name = path if path.startswith("<") else path.rsplit("/", 1)[-1]
    return f'{frame[1]}File "{name}", line {frame["line"]}{frame["rest"]}'


def _complaints(given: list[str]) -> Iterator[str]:
    """Each complaint with the line before it and the two after it, which point at the place."""
    near = {
        place + step
        for place, line in enumerate(given)
        if _COMPLAINT.search(line)
        for step in (-1, 0, 1, 2)
    }
    last = -1
    for place in sorted(near):
        if 0 <= place < len(given):
            if place > last + 1 and last >= 0:
                yield "…"
            yield given[place]
            last = place


def _middle_out(found: list[str], lines: int, head: int) -> list[str]:
    if len(found) <= lines:
        return found
    tail = lines - head - 1
    note = f"… {len(found) - head - tail} lines left out …"
    return [*found[:head], note, *(found[-tail:] if tail else [])]
