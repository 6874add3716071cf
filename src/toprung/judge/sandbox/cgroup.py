"""A control group of one process tree, where this user may make one: a hard ceiling on processes.

A fork bomb outruns any watchdog, and rlimits on processes do not bind root.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PIDS = ROOT / "pids"


class Cgroup:
    """`procs` is the file a process joins by; `close` removes the group once it is empty."""

    def __init__(self, folder: Path):
        self.folder = folder

    @property
    def procs(self) -> Path:
        """Writing a process id here moves that process and its later children in."""
        return self.folder / "cgroup.procs"

    @property
    def tasks(self) -> int:
        """How many processes and threads are in it now; one read, however many they are."""
        return int((self.folder / "pids.current").read_text())

    @classmethod
    def create(cls, max_processes: int) -> Cgroup | None:
        """A new group with room for `max_processes` tasks, or `None` where none can be made."""
        for parent in (PIDS, own_unified()):
            if parent is None or not os.access(parent, os.W_OK):
                continue
            folder = parent / f"toprung-{os.getpid()}-{secrets.token_hex(4)}"
            try:
                folder.mkdir()
            except OSError:
                continue
            try:
                (folder / "pids.max").write_text(str(max_processes))
                return cls(folder)
            except OSError:  # the pids controller is not enabled here
                folder.rmdir()
        return None

    def close(self) -> None:
        """Remove the group; a process that is just ending holds it for a moment."""
        for _ in range(50):
            with contextlib.suppress(FileNotFoundError):
                try:
                    self.folder.rmdir()
                except OSError:
                    time.sleep(0.01)
                    continue
            return


def own_unified() -> Path | None:
    """This process's own group in the unified hierarchy."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return ROOT / line[3:].lstrip("/")
    return None
