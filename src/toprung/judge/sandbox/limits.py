"""What a candidate's process may use: rlimits set in it, and a watchdog for what they cannot say.

Address-space limits break CUDA and rlimits on processes do not bind root, so memory, processes and
disk are watched from outside.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from toprung.model.value import Value

from .cgroup import Cgroup

PAGE = os.sysconf("SC_PAGE_SIZE")
POLL_S = 0.02


def total_memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * PAGE


class Limits(Value):
    """Ceilings of one process tree."""

    memory_bytes: int
    processes: int = 256 + 4 * (os.cpu_count() or 1)
    """Processes and threads together; a thread pool or two, and compilers."""
    file_bytes: int = 2 << 30
    """One file, and all of the scratch folder."""
    open_files: int = 1024
    output_bytes: int = 16 << 20
    """Standard output and error together."""

    @classmethod
    def for_footprint(cls, footprint_bytes: int = 0) -> Limits:
        """Room for compilers and for eight times what the task itself holds, within the machine."""
        return cls(memory_bytes=min((4 << 30) + 8 * footprint_bytes, total_memory() * 3 // 4))

    def apply(self) -> None:
        """Set the rlimits of the calling process; they can only be lowered from then on."""
        ceilings = [
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, self.file_bytes),
            (resource.RLIMIT_NOFILE, self.open_files),
        ]
        if os.geteuid() != 0:  # counts all that this user runs, and does not bind root
            ceilings.append((resource.RLIMIT_NPROC, self.processes + _tasks_of_user()))
        for kind, value in ceilings:
            _, hard = resource.getrlimit(kind)
            lowered = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (lowered, lowered))


class Watchdog:
    """Looks at a process tree every 20 ms; calls `kill` once, with the reason in `broken`."""

    def __init__(
        self,
        root: int,
        scratch: Path,
        limits: Limits,
        cgroup: Cgroup | None,
        kill: Callable[[], None],
    ):
        self.broken: str | None = None
        self._cgroup = cgroup
        self._root = root
        self._scratch = scratch
        self._limits = limits
        self._kill = kill
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="watchdog")
        self._thread.start()

    def break_limit(self, reason: str) -> None:
        """Kill the tree for `reason`, unless it has been killed for another."""
        if self.broken is None:
            self.broken = reason
            self._kill()

    def stop(self) -> None:
        """Stop looking."""
        self._stop.set()
        self._thread.join(timeout=2)

    @property
    def _too_many(self) -> str:
        return f"it started more than {self._limits.processes} processes and threads"

    def _watch(self) -> None:
        round_ = 0
        while not self._stop.wait(POLL_S) and self.broken is None:
            reason = self._look(every_half_second=round_ % 25 == 0)
            if reason:
                self.break_limit(reason)
            round_ += 1

    def _look(self, *, every_half_second: bool) -> str | None:
        # A bomb starves the watchdog of time: look first at what one read tells.
        if self._cgroup and self._cgroup.tasks > self._limits.processes:
            return self._too_many
        pids = list(tree_of(self._root))
        if sum(map(_threads, pids)) > self._limits.processes:
            return self._too_many
        # Forked processes share pages: the exact sum is slow, so it is asked only when in doubt.
        limit = self._limits.memory_bytes
        memory = sum(map(_private_bytes, pids))
        if memory > limit and sum(map(_proportional_bytes, pids)) > limit:
            return f"it used more than {self._limits.memory_bytes / 2**30:.1f} GiB of memory"
        if every_half_second and _folder_bytes(self._scratch) > self._limits.file_bytes:
            return f"it wrote more than {self._limits.file_bytes / 2**30:.1f} GiB of files"
        return None


def tree_of(root: int) -> Iterator[int]:
    """Every descendant of the process `root`, itself not included."""
    stack = [root]
    while stack:
        pid = stack.pop()
        try:
            for task in os.scandir(f"/proc/{pid}/task"):
                text = Path(task.path, "children").read_text()
                found = [int(word) for word in text.split()]
                stack += found
                yield from found
        except OSError:  # it has ended meanwhile
            continue


def _private_bytes(pid: int) -> int:
    """Resident memory less what is backed by files and shared memory (the lent arena)."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * PAGE


def _proportional_bytes(pid: int) -> int:
    """Anonymous memory, each page divided among the processes that share it."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss_Anon:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0


def _threads(pid: int) -> int:
    try:
        return len(list(os.scandir(f"/proc/{pid}/task")))
    except OSError:
        return 0


def _tasks_of_user() -> int:
    user = os.geteuid()
    total = 0
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == user:
                total += _threads(int(entry.name))
    return total


def _folder_bytes(folder: Path) -> int:
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += Path(root, name).lstat().st_blocks * 512
    return total
