"""Namespaces around a process, through the system calls themselves: best effort, and said so."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from toprung.model.environment import Walls

_libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_REC_PRIVATE = 0x4000 | 0x40000
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38


def prctl(option: int, value: int) -> None:
    """Set one attribute of the calling process; raises `OSError`."""
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def unshare_namespaces() -> Walls:
    """Leave the caller's namespaces; its next child is the first process of a new PID namespace.

    Returns what stands; without the right to do so, nothing does and nothing changes.
    """
    flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
    user = os.geteuid()
    group = os.getegid()
    if user != 0:
        flags |= CLONE_NEWUSER
    if _libc.unshare(flags) != 0:
        return Walls(limits=True)
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return Walls(namespaces=True, network=True, limits=True)


def mount_fresh_proc() -> None:
    """Inside a new PID namespace: a `/proc` that shows this namespace alone."""
    private = _libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None)
    if private != 0 or _libc.mount(b"proc", b"/proc", b"proc", 0, None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
