"""What is shown while something is measured must not take time from it."""

from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from toprung.faces.cli.screen import Waiting

pytestmark = pytest.mark.unit


def test_the_waiting_line_moves_only_when_told_to():
    stream = io.StringIO()
    before = threading.active_count()
    waiting = Waiting(Console(file=stream, force_terminal=True, width=80))
    waiting.say("bench")
    assert threading.active_count() == before
    assert "… bench" in stream.getvalue()
    waiting.close()


def test_nothing_is_written_where_nobody_watches():
    stream = io.StringIO()
    waiting = Waiting(Console(file=stream, width=80))
    waiting.say("bench")
    waiting.close()
    assert stream.getvalue() == ""
