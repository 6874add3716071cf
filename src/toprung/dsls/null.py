"""DSL `null`: does what it is told, so that every layer can be tested without hardware.

Its source is JSON: `{"load": BEHAVIOUR, "call": BEHAVIOUR}`, each optional. Behaviours: `echo`
(return the first input), `zeros` (return zeros of the reference's shapes), `fail` (raise),
`compile_error`, `sleep` (for an hour), `exit` (end the process with status 0), `crash` (a
segmentation fault), `abort`, `flood` (write to standard output without end), `hog` (allocate
without end), `forks` (start processes without end), `files` (write a file without end).
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toprung.errors import CompileError, Refuted
from toprung.model.candidate import Candidate

from .base import Availability, Loaded

SUFFIX = ".null"


def _fail() -> None:
    raise RuntimeError("told to fail")


def _compile_error() -> None:
    raise CompileError("told not to compile", details="kernel.null:1: error: told to")


def _crash() -> None:
    ctypes.string_at(0)


def _flood() -> None:
    line = b"x" * 4096
    while True:
        os.write(1, line)


def _hog() -> None:
    held = []
    while True:
        held.append(b"x" * (1 << 24))


def _forks() -> None:
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)


def _files() -> None:
    with Path("big").open("wb") as out:
        while True:
            out.write(b"x" * (1 << 20))


BEHAVIOURS: dict[str, Callable[[], None]] = {
    "fail": _fail,
    "compile_error": _compile_error,
    "sleep": lambda: time.sleep(3600),
    "exit": lambda: os._exit(0),
    "crash": _crash,
    "abort": lambda: os.kill(os.getpid(), signal.SIGABRT),
    "flood": _flood,
    "hog": _hog,
    "forks": _forks,
    "files": _files,
    "echo": lambda: None,
    "zeros": lambda: None,
}


class Null:
    """Echoes, fails, sleeps or crashes on request."""

    name = "null"

    def available(self) -> Availability:
        return Availability(name=self.name, version="1", targets=("cpu", "null"))

    def claims(self, candidate: Candidate) -> bool:
        return candidate.main.endswith(SUFFIX)

    def precheck(self, candidate: Candidate) -> None:
        _orders(candidate)

    def load(self, candidate: Candidate, folder: Path, target: str) -> Loaded:
        orders = _orders(candidate)
        BEHAVIOURS[orders.get("load", "zeros")]()
        return Loaded(
            entry="null", build=lambda *_: NullEntry(orders.get("call", "zeros")), is_module=False
        )


class NullEntry:
    """Obeys, then returns the first input or zeros."""

    wants_like = True

    def __init__(self, order: str):
        self._order = order

    def __call__(self, *inputs: Any, like: list[Any], **params: Any) -> Any:
        BEHAVIOURS[self._order]()
        if self._order == "echo":
            return inputs[0].clone()
        outputs = [tensor.new_zeros(tensor.shape) for tensor in like]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _orders(candidate: Candidate) -> dict[str, str]:
    try:
        orders = json.loads(candidate.source or "{}")
    except (ValueError, RecursionError) as bad:
        raise Refuted(f"{candidate.main} is not JSON: {bad}") from None
    if not isinstance(orders, dict) or not set(orders) <= {"load", "call"}:
        raise Refuted(f'{candidate.main} must be a JSON object with "load" and "call"')
    unknown = sorted(str(o) for o in orders.values() if o not in BEHAVIOURS)
    if unknown:
        raise Refuted(
            f"{candidate.main}: unknown behaviour {', '.join(unknown)}",
            hint=f"choose among {', '.join(BEHAVIOURS)}",
        )
    return orders
