"""Every exception toprung raises on purpose, and who is to blame for it.

ToprungError
├── Refuted            blame: candidate   the candidate is wrong; exit 1
│   ├── CompileError                      its source does not compile
│   └── ChildFault                        its process crashed, hung, or broke a limit
├── UsageError         blame: task        the command is wrong; exit 2
├── TaskError          blame: task        the task is wrong; exit 2
├── HarnessError       blame: harness     toprung is wrong; exit 3
│   └── WireError                         a message broke the protocol
├── DeviceError        blame: device      the machine cannot do what was asked; exit 3
└── Unavailable        blame: device      a rung or tool is not here; the rung is skipped

A failure is attributed once, at the boundary it crossed, by `blame_of`. Whatever the candidate's
process does is `Refuted`; no candidate buys a retry by looking like an infrastructure fault.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

Blame = Literal["candidate", "task", "harness", "device"]


class Exit(IntEnum):
    """Exit codes of every command."""

    PASSED = 0
    REFUTED = 1
    WRONG = 2
    FAILED = 3


class ToprungError(Exception):
    """Base of all; `hint` says what to do next, `details` is text such as compiler output."""

    blame: Blame = "harness"
    exit_code: Exit = Exit.FAILED

    def __init__(self, message: str, *, hint: str | None = None, details: str | None = None):
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details


class Refuted(ToprungError):
    """The candidate is wrong. `facts` are kept beside the failure (what was measured so far)."""

    blame: Blame = "candidate"
    exit_code = Exit.REFUTED

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        details: str | None = None,
        facts: dict | None = None,
    ):
        super().__init__(message, hint=hint, details=details)
        self.facts = facts or {}


class CompileError(Refuted):
    """A compiler refused the candidate; `details` is what the compiler printed."""


class ChildFault(Refuted):
    """The candidate's process crashed, hung, ended early or went over a limit."""


class UsageError(ToprungError):
    """The command line or a file it names is wrong."""

    blame: Blame = "task"
    exit_code = Exit.WRONG


class TaskError(ToprungError):
    """The task file is wrong or its reference fails."""

    blame: Blame = "task"
    exit_code = Exit.WRONG


class HarnessError(ToprungError):
    """toprung itself failed."""

    blame: Blame = "harness"
    exit_code = Exit.FAILED


class WireError(HarnessError):
    """A message was too long, not JSON, or not of the protocol."""


class DeviceError(ToprungError):
    """The device or the machine failed."""

    blame: Blame = "device"
    exit_code = Exit.FAILED


class Unavailable(ToprungError):
    """Something that is asked for is not on this machine (a compiler, a GPU, a profiler)."""

    blame: Blame = "device"
    exit_code = Exit.FAILED


def blame_of(error: BaseException) -> Blame:
    """Who is to blame for `error`; what nobody foresaw is the harness's own fault."""
    return error.blame if isinstance(error, ToprungError) else "harness"
