"""Names for what a judge leaves on disk while it lives, and the removal of what a killed one left."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

from .cgroup import PIDS, own_unified

PREFIX = "toprung-"


def new_scratch() -> Path:
    """A fresh folder for one process, named after this judge."""
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))


def remove(folder: Path) -> None:
    """Remove a folder that hostile code has filled, however deep it is nested."""
    subprocess.run(["rm", "-rf", "--", str(folder)], capture_output=True, check=False)


def sweep() -> None:
    """Remove scratch folders and control groups whose judge is no more."""
    temporary = Path(tempfile.gettempdir())
    for folder in temporary.glob(f"{PREFIX}*-*"):
        if _orphaned(folder):
            remove(folder)
    for parent in (PIDS, own_unified()):
        for group in parent.glob(f"{PREFIX}*-*") if parent else ():
            if _orphaned(group):
                with contextlib.suppress(OSError):
                    group.rmdir()


def _orphaned(path: Path) -> bool:
    """Whether `path` is this user's, and the process it is named after has ended."""
    word = path.name.removeprefix(PREFIX).partition("-")[0]
    with contextlib.suppress(OSError):
        return (
            word.isdigit()
            and path.lstat().st_uid == os.geteuid()
            and not Path(f"/proc/{word}").exists()
        )
    return False
