"""Failures on the way out: what happened, whose fault, what to do next, and an exit code."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import typer

from toprung.errors import Blame, Exit, ToprungError

from .pipe import write

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells give it (128 + SIGINT)."""

# typer keeps the class of its usage errors private; a bad parameter is the public one of its kind.
USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]


class Interrupted(Exception):
    """A person pressed Ctrl-C."""


WHOSE = {
    "candidate": "the candidate",
    "task": "the command or the task",
    "harness": "toprung itself",
    "device": "this machine",
}

MAX_DETAILS = 4000
"""Characters of a compiler's or reference's output that are shown."""


@dataclass(frozen=True)
class Failure:
    """What is told about an exception that ended a command."""

    message: str
    exit_code: int
    blame: Blame | None = None
    hint: str | None = None
    details: str | None = None
    trace: str | None = None

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Attribute `error`; what nobody foresaw is the harness's own fault."""
        trace = "".join(traceback.format_exception(error))
        if isinstance(error, ToprungError):
            return cls(
                error.message, error.exit_code, error.blame, error.hint, error.details, trace
            )
        if isinstance(error, Interrupted):
            return cls("stopped by Ctrl-C", INTERRUPTED)
        if isinstance(error, USAGE_ERROR):
            said = error.format_message()  # type: ignore[attr-defined]
            return cls(said, Exit.WRONG, "task", "add --help to see what it takes", trace=trace)
        what = traceback.format_exception_only(error)[-1].strip()
        hint = "run it again with --debug to see the traceback, and report it"
        return cls(f"toprung failed: {what}", Exit.FAILED, "harness", hint, trace=trace)


@dataclass(frozen=True)
class Manner:
    """How failures are told. Read off the bare arguments, because parsing may be what failed."""

    as_json: bool
    debug: bool

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Manner:
        """`--json` and `--debug` anywhere before `--`, or TOPRUNG_DEBUG in the environment."""
        end = arguments.index("--") if "--" in arguments else len(arguments)
        options = arguments[:end]
        debug = "--debug" in options or os.environ.get("TOPRUNG_DEBUG", "0") not in ("", "0")
        return cls(as_json="--json" in options, debug=debug)


def tell(failure: Failure, manner: Manner, command: str = "toprung") -> int:
    """Say it on standard error, or as one JSON object on standard output; returns the exit code."""
    if manner.debug and failure.trace:
        sys.stderr.write(_clean(failure.trace))
    if manner.as_json:
        write(json.dumps(_as_json(failure), ensure_ascii=False) + "\n")
    else:
        sys.stderr.write(_as_text(failure, command))
    return failure.exit_code


def _as_json(failure: Failure) -> dict[str, object]:
    return {
        "schema": "toprung.error/1",
        "error": failure.message,
        "blame": failure.blame,
        "hint": failure.hint,
        "details": failure.details,
    }


def _as_text(failure: Failure, command: str) -> str:
    lines = [f"{command}: {failure.message}"]
    if failure.details:
        lines.append(_clean(failure.details.strip("\n"), MAX_DETAILS))
    if failure.blame:
        lines.append(f"  at fault: {WHOSE[failure.blame]}")
    if failure.hint:
        lines.append(f"  what next: {failure.hint}")
    return _clean("\n".join(lines)) + "\n"


def _clean(text: str, limit: int | None = None) -> str:
    """Safe to show; past `limit` its tail, where compilers and tracebacks put what matters."""
    from toprung.outputs.text import clean

    return clean(text, limit, keep="tail")
