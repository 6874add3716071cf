"""Standard output, whose reader may leave early (`toprung runs | head -1`)."""

from __future__ import annotations

import os
import sys

BROKEN_PIPE = 141
"""Exit code when the reader has gone, as shells give it (128 + SIGPIPE)."""


class ReaderGone(Exception):
    """Nobody reads the output any more."""


def write(text: str) -> None:
    """`text` to standard output at once; raises `ReaderGone`."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGone from None


def silence() -> None:
    """Let the interpreter flush into nothing after the reader has gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    finally:
        os.close(nowhere)
