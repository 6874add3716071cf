"""KernelBench files: one Python file with `Model`, `get_inputs` and `get_init_inputs` is a task.

The format is that of https://github.com/ScalingIntelligence/KernelBench (`KernelBench/level*/`).
"""

from __future__ import annotations

from pathlib import Path

from toprung.errors import TaskError
from toprung.model.task import Task

from .reference import check_arguments, check_reference
from .source import is_folder, read_text, shown

PLAIN_NAMES = ("task", "reference")
"""File names that say nothing: the task is named after its folder."""


def read(path: Path) -> Task | None:
    """The task in the Python file `path`; `None` when `path` is not a `.py` file.

    The file is parsed and never executed: its constants, and what its functions return, are found
    out by the oracle worker. The task is named after the file and has one case, without arguments.
    """
    if path.suffix != ".py" or is_folder(path):
        return None
    text = read_text(path, "the task", TaskError)
    outline = check_reference(text, path)
    for function in ("get_inputs", "get_init_inputs"):
        check_arguments(outline, function, (), path, "a KernelBench file")
    plain = path.stem in PLAIN_NAMES
    name = path.resolve().parent.name if plain else path.stem
    return Task(name=shown(Path(name or path.stem)), reference=text, path=shown(path))
