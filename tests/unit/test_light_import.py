"""What is heavy or optional stays unloaded until a verb needs it, and help answers at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

HEAVY = ("torch", "scipy", "numpy", "triton", "ray", "optuna", "jinja2", "tvm_ffi")

LOADED = "import json, sys; print(json.dumps(sorted({m.partition('.')[0] for m in sys.modules})))"

HELP = [sys.executable, "-m", "toprung.faces.cli.main", "--help"]
HELP_LIMIT_S = 0.3
"""What a person is promised. Asked of processor time: it waits for nothing, and is nearly alone,
while the wall time of a busy machine says little."""


def loaded_after(statement: str) -> set[str]:
    """Top-level modules that an interpreter has loaded once `statement` has run."""
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{LOADED}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_loads_nothing_heavy():
    loaded = loaded_after("import toprung")
    assert loaded.isdisjoint({*HEAVY, "pydantic", "typer", "rich"})


@pytest.mark.parametrize("arguments", ["['--help']", "['verify', '--help']", "['--version']"])
def test_help_loads_nothing_heavy(arguments: str):
    loaded = loaded_after(f"from toprung.faces.cli.main import run\nrun({arguments})")
    assert loaded.isdisjoint(HEAVY)


def test_a_mistyped_name_is_told_before_anything_heavy_is_loaded():
    loaded = loaded_after(
        "from toprung.faces.cli.main import run\n"
        "assert run(['verify', 'task.py', 'kernel.py', '--upto', 'corect']) == 2"
    )
    assert loaded.isdisjoint(HEAVY)


def help_seconds() -> float:
    """Processor time of one `toprung --help`."""
    process = subprocess.Popen(HELP, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def test_help_answers_at_once():
    took = min(help_seconds() for _ in range(5))
    assert took < HELP_LIMIT_S


def test_what_is_measured_really_prints_the_verbs():
    done = subprocess.run(HELP, capture_output=True, text=True, check=True, timeout=60)
    for verb in ("verify", "optimize", "runs", "report", "doctor"):
        assert verb in done.stdout
