"""The loop of a candidate's process: one request, one reply, until the judge hangs up."""

from __future__ import annotations

import traceback
from typing import Any

from pydantic import TypeAdapter

from toprung.errors import CompileError, Refuted, WireError
from toprung.judge.wire.arena import Arena
from toprung.judge.wire.channel import Channel, Closed
from toprung.judge.wire.protocol import (
    MAX_LINE,
    MAX_TEXT,
    Adopt,
    Call,
    Construct,
    Done,
    Failure,
    Lend,
    Load,
    Recall,
    Request,
)
from toprung.model.value import Value

REQUEST: TypeAdapter[Request] = TypeAdapter(Request)


def serve(channel: Channel) -> None:
    """Answer until the other side closes. Everything candidate code raises becomes a `Failure`."""
    import torch

    from .program import Program

    torch.set_grad_enabled(False)
    program = Program()
    while True:
        try:
            message, fds = channel.receive()
        except Closed:
            return
        request = REQUEST.validate_python(message)
        try:
            reply = _answer(program, request, fds)
        except BaseException as error:  # SystemExit and KeyboardInterrupt are the candidate's too
            reply = _failure(error)
        try:
            channel.send(reply.to_dict())
        except (WireError, ValueError) as unsendable:
            text = f"its answer cannot be sent: {type(unsendable).__name__}"
            channel.send(Failure(kind="exception", message=text).to_dict())


def _answer(program: Any, request: Request, fds: list[int]) -> Value:
    if isinstance(request, Lend):
        program.arena = Arena.borrow(fds[0], request.arena_bytes)
    if isinstance(request, Load):
        return program.load(request)
    if isinstance(request, Construct):
        return program.construct(request)
    if isinstance(request, Adopt):
        program.adopt(request)
    if isinstance(request, Call):
        return program.call(request)
    if isinstance(request, Recall):
        return program.recall(request)
    return Done()


def _failure(error: BaseException) -> Failure:
    kind = "exception"
    if isinstance(error, Refuted):
        kind = "compile" if isinstance(error, CompileError) else "refuted"
    details = getattr(error, "details", None)
    text = details or "".join(traceback.format_exception(error))
    name = "" if isinstance(error, Refuted) else f"{type(error).__name__}: "
    return Failure(
        kind=kind,
        message=f"{name}{error}"[:MAX_LINE],
        hint=(getattr(error, "hint", None) or "")[:MAX_LINE] or None,
        traceback=text[-MAX_TEXT:],
    )
