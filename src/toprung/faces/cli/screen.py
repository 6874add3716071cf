"""The screen: the answer goes to standard output, what accompanies it to standard error.

With `--json` the answer is JSON and every word for a person moves to standard error.
"""

from __future__ import annotations

import json
import sys
from typing import IO, NoReturn

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from toprung.model.value import Json

from .pipe import ReaderGone, write

WIDTH_OF_A_FILE = 100
"""Columns when the output is no terminal: rich would take 80."""
WIDEST_TABLE = 1000


class _Console(Console):
    """A console that takes text as it is: no markup, no guessing of highlights or emoji."""

    def __init__(self, stream: IO[str], width: int = WIDTH_OF_A_FILE):
        super().__init__(
            file=stream,
            markup=False,
            highlight=False,
            emoji=False,
            width=None if stream.isatty() else width,
        )

    def on_broken_pipe(self) -> NoReturn:
        raise ReaderGone


class Waiting:
    """A last line that says what is being waited for; only on a terminal, gone when closed.

    It moves only when told to: an animation would take time from what is being measured.
    """

    def __init__(self, console: Console):
        self._live: Live | None = None
        if console.is_terminal:
            self._live = Live(console=console, auto_refresh=False, transient=True)

    def say(self, for_what: str) -> None:
        """What is being waited for from now on."""
        if self._live:
            self._live.start()
            self._live.update(Text(f"  … {for_what}", style="dim"), refresh=True)

    def close(self) -> None:
        """Nothing is being waited for any more."""
        if self._live:
            self._live.stop()


class Screen:
    """Where one verb speaks."""

    def __init__(self, *, as_json: bool = False):
        self.as_json = as_json
        self.people = _Console(sys.stderr if as_json else sys.stdout)
        self._warnings = _Console(sys.stderr)

    def line(self, text: Text | str = "") -> None:
        """A line for a person, however long: a terminal folds it, a file keeps it whole."""
        self.people.print(text, soft_wrap=True)

    def show(self, renderable: RenderableType) -> None:
        """A panel or another block for a person, as wide as the screen."""
        self.people.print(renderable)

    def table(self, table: Table) -> None:
        """A table for a person; in a file as wide as it needs, so that nothing is left out."""
        if self.people.is_terminal:
            self.people.print(table)
            return
        wide = _Console(self.people.file, width=WIDEST_TABLE)
        needed = table.__rich_measure__(wide, wide.options).maximum
        _Console(self.people.file, width=max(needed, WIDTH_OF_A_FILE)).print(table)

    def warn(self, text: str) -> None:
        """One line on standard error in either mode."""
        self._warnings.print(text, style="yellow", soft_wrap=True)

    @staticmethod
    def json(answer: Json) -> None:
        """One object on one line of standard output."""
        write(json.dumps(answer, ensure_ascii=False, allow_nan=False) + "\n")
