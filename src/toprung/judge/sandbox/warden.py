"""Two processes between the nursery and one sandboxed process: the warden and the first process.

    nursery -> warden -> first -> the sandboxed process

The warden builds the walls and, at the end, sweeps what is left. `first` is process 1 of the new PID
namespace: when it goes, the kernel ends everything inside. It is not the sandboxed process itself,
because process 1 is deaf to signals that it has not asked for, `abort()` among them. Neither runs
candidate code and the candidate never holds the reporting socket, so what they report (walls, exit
status) can be believed.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from toprung.judge.wire.channel import Channel
from toprung.model.environment import Walls

from .limits import Limits, tree_of
from .walls import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    mount_fresh_proc,
    prctl,
    unshare_namespaces,
)


def run(order: dict, channel: Channel, output: int, report: Channel) -> None:
    """Start the process that `order` describes, wait for its end. Runs in a fresh fork.

    `order`: `serve` ("module:function", called with the channel), `scratch` (its working folder),
    `env`, `walled` (false for trusted code), `limits`, `cgroup` (the file to join one, or null).
    """
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    if order["cgroup"]:
        Path(order["cgroup"]).write_text(str(os.getpid()))
    walls = unshare_namespaces() if order["walled"] else Walls(limits=True)
    first = os.fork()
    if first == 0:
        _first(order, walls, channel, output, report)
    channel.close()
    os.close(output)
    report.send({"warden": os.getpid(), "walls": walls.to_dict()}, (os.pidfd_open(first),))
    os.waitpid(first, 0)
    _sweep()


def _first(order: dict, walls: Walls, channel: Channel, output: int, report: Channel) -> None:
    """Fork the sandboxed process, bury whatever ends here, report its end, and end."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if walls.namespaces:
        mount_fresh_proc()
    pid = os.fork()
    if pid == 0:
        report.close()
        _become(order, channel, output)
    channel.close()
    os.close(output)
    while True:
        ended, status, usage = os.wait4(-1, 0)
        if ended == pid:
            break
    report.send({"exit": os.waitstatus_to_exitcode(status), "peak_bytes": usage.ru_maxrss * 1024})
    os._exit(0)


def _become(order: dict, channel: Channel, output: int) -> None:
    """The sandboxed process: its own output, folder, environment and limits, then `serve`."""
    code = 1
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        _close_others(channel.fileno())
        os.chdir(order["scratch"])
        _move_in(order["env"], order["scratch"])
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        Limits.model_validate(order["limits"]).apply()
        serve = _function(order["serve"])
        serve(channel)
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _function(path: str) -> Callable[[Channel], None]:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _move_in(extra: dict[str, str], scratch: str) -> None:
    os.environ.update({"HOME": scratch, "TMPDIR": scratch, **extra})


def _close_others(keep: int) -> None:
    os.closerange(3, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))


def _sweep() -> None:
    """End what the process left behind. In a PID namespace the kernel has done so already."""
    while True:
        left = list(tree_of(os.getpid()))
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
