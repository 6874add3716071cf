"""The judge's handles: a nursery that is up, and one sandboxed process forked from it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from toprung.errors import ChildFault, HarnessError, WireError
from toprung.judge.wire.channel import Channel, Closed, Message, Silent
from toprung.model.environment import Walls

from .cgroup import Cgroup
from .leftovers import new_scratch, remove, sweep
from .limits import Limits, Watchdog, tree_of

START_S = 120.0
"""Importing torch from a cold disk can take long; a process that is not up by then never will be."""

FREEZE_S = 5.0
SETTLE_S = 1e-4
LATE_NS = 20_000

KEPT_OUTPUT = 8_000

KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "PYTHONPATH")
"""What candidate code may see of the user's environment; never keys or tokens."""

NURSERY_ENV = {
    "OMP_WAIT_POLICY": "passive",  # a busy neighbour must not make a barrier spin
    "OPENBLAS_NUM_THREADS": "1",  # numpy's pool would start on import
    "PYTHONDONTWRITEBYTECODE": "1",
    # Before torch 2.12 tvm-ffi would compile an extension on import, and wake the GPU's driver.
    "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",
}


class Nursery:
    """Starts on construction; `spawn` waits until it is ready."""

    def __init__(self) -> None:
        sweep()
        self._channel, theirs = Channel.pair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "toprung.judge.sandbox.nursery", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            env=_scrubbed(),
        )
        theirs.close()
        self._torch: str | None = None
        self._lock = threading.Lock()

    @property
    def torch(self) -> str:
        """Version of torch in the nursery; waits until it is ready."""
        with self._lock:
            if self._torch is None:
                try:
                    message, _ = self._channel.receive(START_S)
                except (Closed, Silent) as gone:
                    raise HarnessError(
                        "the nursery did not start", hint="run `toprung doctor`"
                    ) from gone
                self._torch = str(message["torch"])
            return self._torch

    def spawn(
        self,
        serve: str,
        *,
        walled: bool = True,
        limits: Limits | None = None,
        env: dict[str, str] | None = None,
    ) -> Process:
        """Fork a process that calls `serve` ("module:function") with its end of a channel."""
        assert self.torch
        limits = limits or Limits.for_footprint()
        scratch = new_scratch()
        ours, theirs = Channel.pair()
        report, reporter = Channel.pair()
        reader, writer = os.pipe()
        cgroup = Cgroup.create(limits.processes + 64)  # beyond what the watchdog allows
        order = {
            "cgroup": str(cgroup.procs) if cgroup else None,
            "serve": serve,
            "scratch": str(scratch),
            "walled": walled,
            "limits": limits.to_dict(),
            "env": env or {},
        }
        self._channel.send(order, (theirs.fileno(), writer, reporter.fileno()))
        os.close(writer)
        for end in (theirs, reporter):
            end.close()
        return Process(ours, report, reader, scratch, limits, cgroup)

    def close(self) -> None:
        """End the nursery and, with it, everything it forked."""
        self._channel.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Process:
    """One sandboxed process: ask it, see it die, end it. Ended processes leave nothing behind."""

    def __init__(
        self,
        channel: Channel,
        report: Channel,
        output: int,
        scratch: Path,
        limits: Limits,
        cgroup: Cgroup | None,
    ):
        self.channel = channel
        self._cgroup = cgroup
        self.scratch = scratch
        self._report = report
        self._closed = False
        self._frozen: set[int] = set()
        self._ran_ns: dict[str, int] = {}
        try:
            message, fds = report.receive(START_S)
        except (Closed, Silent) as gone:
            raise HarnessError("a sandboxed process did not start") from gone
        self.walls = Walls.model_validate(message["walls"])
        self._pidfd = fds[0]
        warden: int = message["warden"]
        self._first = next(iter(tree_of(warden)), warden)
        self._exit: Message = {}
        self._tail = b""
        self._watchdog = Watchdog(warden, scratch, limits, cgroup, self.kill)
        self._drain = threading.Thread(
            target=self._read_output, args=(output, limits.output_bytes), daemon=True
        )
        self._drain.start()

    def ask(self, message: Message, timeout: float, fds: tuple[int, ...] = ()) -> Message:
        """Send, and wait for the answer; raises `ChildFault` when it dies, hangs or babbles."""
        self.post(message, fds)
        return self.hear(timeout)

    def post(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        """Send; a frozen process finds the message when it is thawed."""
        try:
            self.channel.send(message, fds)
        except Closed:
            raise ChildFault(self.epitaph(), details=self.output_tail() or None) from None

    def hear(self, timeout: float) -> Message:
        """Wait for the answer."""
        try:
            reply, extra = self.channel.receive(timeout)
        except Silent:
            self.kill()
            raise ChildFault(
                f"it did not answer within {timeout:.0f} s and was ended",
                hint="look for a loop that does not end, or a deadlock",
            ) from None
        except Closed:
            raise ChildFault(self.epitaph(), details=self.output_tail() or None) from None
        except WireError as nonsense:
            self.kill()
            raise ChildFault(f"its process sent nonsense: {nonsense}") from None
        for fd in extra:  # nobody asked for descriptors
            os.close(fd)
        return reply

    def epitaph(self) -> str:
        """How it ended, in words; ends it when it has only hung up."""
        end = self._wait(2)
        if not end and not self._watchdog.broken:
            self.kill()
            self._wait(30)
            return "it closed its connection to the judge"
        if self._watchdog.broken:
            return self._watchdog.broken
        code = int(end.get("exit", 0))
        if code >= 0:
            return f"its process ended by itself with exit code {code}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"its process was killed by {name}"

    def output_tail(self) -> str:
        """The end of what it wrote to standard output and error. Hostile text."""
        self._drain.join(timeout=1)
        return self._tail.decode("utf-8", "replace")

    def allow_shared(self, nbytes: int) -> None:
        """Shared memory that the judge lends does not count as the process's own."""
        self._watchdog.lent_bytes = nbytes

    def freeze(self) -> None:
        """Stop every thread of it and wait until all stand still."""
        self._frozen = seen = set[int]()
        while (found := set(tree_of(self._first))) - seen:
            for pid in found - seen:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            seen |= found
        deadline = time.monotonic() + FREEZE_S
        while not all(map(_stands_still, seen)):
            if time.monotonic() > deadline:
                self.kill()
                raise ChildFault(
                    "it could not be stopped after its call",
                    hint="end every process and thread before returning",
                )

    def settle(self) -> None:
        """After `freeze`: wait until the kernel has booked what ran before, and take it down.

        What `thaw` finds beyond that was done by waking up unseen.
        """
        before: dict[str, int] = {}
        while (now := _processor_time(self._frozen)) != before:
            before = now
            time.sleep(SETTLE_S)
        self._ran_ns = now

    def thaw(self) -> None:
        """Let it run on; raises `ChildFault` when it has not stood still since it was frozen."""
        if self._ran_ns and not _same_time(self._ran_ns, _processor_time(self._frozen)):
            self.kill()
            raise ChildFault(
                "it ran while it was frozen between two calls",
                hint="do all work inside the call; no timers and no helpers that wake it",
            )
        self._ran_ns = {}
        for pid in self._frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def reset_peak(self) -> None:
        """Forget the peak of resident memory so far."""
        for pid in tree_of(self._first):
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5")

    def memory(self) -> tuple[int, int]:
        """Resident bytes now, and at the peak since `reset_peak`, of every process in it."""
        now = peak = 0
        for pid in tree_of(self._first):
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                    if line.startswith("VmRSS:"):
                        now += int(line.split()[1]) * 1024
                    elif line.startswith("VmHWM:"):
                        peak += int(line.split()[1]) * 1024
        return now, peak

    def kill(self) -> None:
        """End it now, and everything it started."""
        with contextlib.suppress(ProcessLookupError, OSError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        """End it, wait until nothing of it is left, remove its scratch folder."""
        if self._closed:
            return
        self._closed = True
        self.kill()
        self._wait(30)
        self._watchdog.stop()
        self._drain.join(timeout=2)
        self.channel.close()
        self._report.close()
        os.close(self._pidfd)
        if self._cgroup:
            self._cgroup.close()
        remove(self.scratch)

    def _wait(self, seconds: float) -> Message:
        """What the warden reported of the end; empty while there is no report."""
        if not self._exit:
            with contextlib.suppress(Closed, Silent):
                self._exit, _ = self._report.receive(seconds)
        return self._exit

    def _read_output(self, fd: int, limit: int) -> None:
        total = 0
        with os.fdopen(fd, "rb", buffering=0) as pipe:
            while chunk := pipe.read(65536):
                total += len(chunk)
                self._tail = (self._tail + chunk)[-KEPT_OUTPUT:]
                if total > limit:
                    self._watchdog.break_limit(
                        f"it wrote more than {limit / 2**20:.0f} MiB to standard output"
                    )


def _processor_time(pids: set[int]) -> dict[str, int]:
    """Time on a processor of every thread, as the kernel counts it in nanoseconds."""
    found: dict[str, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in os.scandir(f"/proc/{pid}/task"):
                found[task.path] = int(Path(task.path, "schedstat").read_bytes().split(None, 1)[0])
    return found


def _same_time(before: dict[str, int], after: dict[str, int]) -> bool:
    """Whether no thread came, went, or ran longer than booking it late could explain."""
    return before.keys() == after.keys() and all(
        after[task] - before[task] <= LATE_NS for task in before
    )


def _scrubbed() -> dict[str, str]:
    """The nursery's environment. What is not in it cannot be read from `/proc` by its forks."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    return {**kept, **NURSERY_ENV, "PATH": path}


def _stands_still(pid: int) -> bool:
    """Whether every thread of the process is stopped or gone."""
    try:
        for task in os.scandir(f"/proc/{pid}/task"):
            stat = Path(task.path, "stat").read_bytes()
            if stat.rpartition(b")")[2].split(None, 1)[0] not in b"TtZX":
                return False
    except OSError:
        return True
    return True
