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
MOST_FILES = 50_000


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
        self.lent_bytes = 0
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
            try:
                reason = self._look(every_half_second=round_ % 25 == 0)
            except Exception as blind:  # a watchdog that cannot see lets nobody pass
                reason = f"its limits could not be watched ({type(blind).__name__})"
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
        limit += self.lent_bytes
        memory = sum(map(_resident_bytes, pids))
        if memory > limit and sum(map(_proportional_bytes, pids)) > limit:
            return f"it used more than {self._limits.memory_bytes / 2**30:.1f} GiB of memory"
        if every_half_second and not _fits(self._scratch, self._limits.file_bytes):
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


def _resident_bytes(pid: int) -> int:
    """Anonymous and shared memory in use; what is backed by files left out."""
    return _kilobytes(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:"))


def _proportional_bytes(pid: int) -> int:
    """The same, each page divided among the processes that share it."""
    return _kilobytes(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:"))


def _kilobytes(path: str, fields: tuple[str, ...]) -> int:
    with contextlib.suppress(OSError):
        lines = [line.split() for line in Path(path).read_text().splitlines()]
        return 1024 * sum(int(line[1]) for line in lines if line and line[0] in fields)
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


def _fits(folder: Path, nbytes: int) -> bool:
    """Whether a folder holds at most so many bytes, in at most `MOST_FILES` files and folders."""
    total = count = 0
    stack = [str(folder)]
    while stack:
        with contextlib.suppress(OSError):  # gone meanwhile, or too deep to be named
            for entry in os.scandir(stack.pop()):
                count += 1
                total += entry.stat(follow_symlinks=False).st_blocks * 512
                if total > nbytes or count > MOST_FILES:
                    return False
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
    return True
