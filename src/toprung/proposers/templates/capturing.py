"""Has a reference captured by a process of its own, which is thrown away afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

from pydantic import ValidationError

from toprung.errors import HarnessError, TaskError, UsageError
from toprung.model.task import Task

from .graph import Capture

TIMEOUT_S = 300.0
SHOWN = 4000
"""Characters of a failing reference's own words that are passed on."""


def captured(task: Task, target: str, timeout_s: float = TIMEOUT_S) -> list[Capture]:
    """What came of every open case of `task` on `target`; held-out cases are not looked at.

    Raises `TaskError` when the reference fails by itself or does not end, and `UsageError` when no
    case is asked on `target`.
    """
    cases = tuple(case for case in task.cases if case.fits(target) and not case.held_out)
    if not cases:
        raise UsageError(f"task {task.name} has no open case for {target}")
    shown = task.model_copy(update={"cases": cases})
    process = subprocess.Popen(
        [sys.executable, "-m", "toprung.proposers.templates.capture"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    )
    try:
        answer, said = process.communicate(shown.to_json(), timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise TaskError(
            f"the reference did not end within {timeout_s:g} s while its operators were recorded",
            hint="give the task a case that is small enough for this machine",
        ) from None
    finally:
        _end(process)
    if process.returncode != 0:
        raise TaskError(
            f"the reference fails: {_last_line(said) or f'exit code {process.returncode}'}",
            hint="run it on its own: Model(*get_init_inputs())(*get_inputs())",
            details=said[-SHOWN:],
        )
    try:
        return [Capture.model_validate(item) for item in json.loads(answer)]
    except (ValueError, ValidationError) as bad:
        raise HarnessError(f"the captured graph is not understood: {bad}") from bad


def _end(process: subprocess.Popen[str]) -> None:
    """Kill whatever is left of the process and its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
