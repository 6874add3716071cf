"""Text from strangers, made safe to show in terminals, prompts and pages, and bounded.

What a candidate's process says is hostile: it may move the cursor, recolour the screen, reverse the
direction of writing, or be endless. Markup is no concern here: pages escape what they show.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from toprung.model.value import whole_text

# Terminal sequences (ECMA-48): control sequences, strings up to their terminator, short escapes.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
_NEWLINES = re.compile(r"\r\n?|[\u2028\u2029\x85]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# Control, format (direction marks, zero-width), surrogate, private use, unassigned.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn")


def clean(text: str, limit: int | None = None, keep: Literal["head", "tail"] = "head") -> str:
    """`text` without anything that cannot be seen, except newlines and tabs.

    With `limit`, at most so many characters: the head or the tail, and how much was left out.
    """
    text = _CONTROLS.sub("", _NEWLINES.sub("\n", _ESCAPES.sub("", text)))
    if not text.isascii():
        text = "".join(c for c in whole_text(text) if c in "\n\t" or _seen(c))
    return text if limit is None else cut(text, limit, keep)


def _seen(character: str) -> bool:
    return unicodedata.category(character) not in _UNSEEN


def cut(text: str, limit: int, keep: Literal["head", "tail"] = "head") -> str:
    """At most `limit` characters of `text`: its head or its tail, and how much was left out."""
    if len(text) <= limit:
        return text
    # The note is at most as long as one that leaves everything out.
    room = limit - len(_left_out(len(text)))
    if room <= 0:
        return text[:limit] if keep == "head" else text[len(text) - limit :]
    note = _left_out(len(text) - room)
    return f"{text[:room]}{note}" if keep == "head" else f"{note}{text[-room:]}"


def _left_out(count: int) -> str:
    return f" […{count} characters left out…] "


def one_line(text: str, limit: int | None = None) -> str:
    """`text`, cleaned, with every run of white space as one space, and an ellipsis past `limit`."""
    line = " ".join(clean(text).split())
    return line if limit is None or len(line) <= limit else f"{line[: max(limit - 1, 0)]}…"
