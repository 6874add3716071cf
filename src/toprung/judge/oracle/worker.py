"""The loop of the oracle's process: one request, one reply, until the judge hangs up."""

from __future__ import annotations

import os
import traceback
from typing import Any

from toprung.errors import TaskError, ToprungError
from toprung.judge.wire.arena import Arena
from toprung.judge.wire.channel import Channel, Closed
from toprung.model.task import Task
from toprung.model.value import Value

from .dialogue import hear, say
from .session import OPERATIONS


def serve(channel: Channel) -> None:
    """Answer until the other side closes or says `close`. Runs the task's code in this process."""
    import torch

    from .examiner import Examiner

    torch.exp(torch.zeros(1))  # the first vectorised call of a process must not be a parallel one
    examiner = Examiner()
    while True:
        try:
            request, fds = hear(channel)
        except Closed:
            return
        operation = request.pop("op", None)
        if operation == "close":
            return
        try:
            reply = {"ok": _answer(examiner, operation, request, fds)}
        except Exception as error:
            reply = {"error": _told(error)}
        try:
            say(channel, reply)
        except Closed:
            return


def _answer(examiner: Any, operation: Any, request: dict[str, Any], fds: list[int]) -> Any:
    if operation == "lend":
        return examiner.lend(Arena.borrow(fds[0], request["arena_bytes"]))
    for fd in fds:
        os.close(fd)
    if operation == "open":
        request["task"] = Task.model_validate(request["task"])
    if operation not in OPERATIONS:
        raise ValueError(f"the oracle knows no operation {operation!r}")
    result = getattr(examiner, operation)(**request)
    return result.to_dict() if isinstance(result, Value) else result


def _told(error: Exception) -> dict[str, Any]:
    """What the judge is told: an error on purpose as it is, any other as the harness's own."""
    known = isinstance(error, ToprungError)
    if isinstance(error, TaskError):
        details = error.details  # lines of the task's own, where there are any
    else:
        details = None if known else "".join(traceback.format_exception(error))
    return {
        "kind": type(error).__name__ if known else "HarnessError",
        "message": str(error) if known else f"the oracle failed: {type(error).__name__}: {error}",
        "hint": getattr(error, "hint", None),
        "details": details,
    }
