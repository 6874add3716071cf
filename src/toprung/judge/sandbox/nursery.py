"""A process that has the frameworks imported, and forks a clean copy of itself on demand.

It runs nothing that starts a thread pool (a pool does not survive a fork: every child would hang in
its first parallel region) and holds no secret, no device context and no tensor.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback

from toprung.judge.wire.channel import Channel, Closed


def main(fd: int) -> None:
    """Serve spawn orders from the judge until it hangs up."""
    # The judge ends this process; a Ctrl-C in the terminal is the judge's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    judge = Channel.of_fd(fd)
    _warm_up()
    try:
        judge.send({"ready": True, "torch": _torch_version()})
    except Closed:
        return
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    while True:
        try:
            order, fds = judge.receive()
        except Closed:
            return
        _spawn(judge, order, fds)


def _warm_up() -> None:
    import torch
    import tvm_ffi.cpp  # noqa: F401

    # Cures a race in torch's first multi-threaded transcendental call; small means one thread.
    torch.exp(torch.zeros(4))
    threads = sum(1 for _ in os.scandir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"the nursery has {threads} threads; forking it would be unsound")


def _torch_version() -> str:
    import torch

    return torch.__version__


def _spawn(judge: Channel, order: dict, fds: list[int]) -> None:
    channel_fd, output_fd, report_fd = fds
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork() == 0:
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            judge.close()
            from . import warden

            warden.run(order, Channel.of_fd(channel_fd), output_fd, Channel.of_fd(report_fd))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    for fd in fds:
        os.close(fd)


def _reap() -> None:
    """Bury wardens that have ended."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


if __name__ == "__main__":
    main(int(sys.argv[1]))
