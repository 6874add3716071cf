"""The quick start does what it says: its files are taken from the page and climb real ladders."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu

PAGE = Path(__file__).resolve().parents[2] / "docs" / "quickstart.md"
FILES = re.compile(r"as `([\w.]+)`[^\n]*:\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page."""
    folder = tmp_path_factory.mktemp("quickstart")
    for name, text in FILES.findall(PAGE.read_text()):
        (folder / name).write_text(text)
    assert {path.name for path in folder.iterdir()} == {"task.py", "kernel.py", "wrong.py"}
    return folder


def verify(folder: Path, kernel: str) -> tuple[int, dict]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "toprung.faces.cli.main"),
            *("verify", "task.py", kernel, "--upto", "correct", "--json"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_the_kernel_of_the_page_is_right(folder: Path):
    code, verdict = verify(folder, "kernel.py")
    assert (code, verdict["outcome"]) == (0, "passed"), verdict


def test_the_mistake_of_the_page_is_found_at_the_rung_it_names(folder: Path):
    code, verdict = verify(folder, "wrong.py")
    assert code == 1
    refuted = [rung["name"] for rung in verdict["rungs"] if rung["status"] == "refuted"]
    assert refuted == ["correct"], verdict
