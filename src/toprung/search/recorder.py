"""Recorder: what the search asks of a store."""

from __future__ import annotations

from typing import Protocol

from toprung.model.event import Event
from toprung.model.run import Run


class Recorder(Protocol):
    """Remembers events durably; a run is rebuilt from them alone.

    A verdict that is recorded for an attempt replaces the one before, and an attempt that was kept
    must be kept anew after that. An event after `done` opens the run again.
    """

    def append(self, run_id: str, event: Event, /) -> object:
        """Record `event`; it survives a crash once this returns."""
        ...

    def run(self, run_id: str, /) -> Run:
        """The run as its events tell it."""
        ...
