"""Every example says of itself what becomes of it; the ladder must agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from toprung.judge.judge import Judge
from toprung.model.climb import ClimbOptions
from toprung.model.task import Task
from toprung.tasks import read_candidate, read_task

pytestmark = pytest.mark.cpu

EXAMPLES = Path(__file__).parents[2] / "examples"
TASKS = sorted(path.parent for path in EXAMPLES.glob("*/task.toml"))
# In the order of tasks, so that the judge opens each oracle once.
CANDIDATES = [
    path for task in TASKS for path in sorted(task.glob("*.py")) if path.name != "reference.py"
]


def named(path: Path) -> str:
    return str(path.relative_to(EXAMPLES))


def smaller(task: Task) -> Task:
    """The softmax of the demo is large for its time's sake; what is right shows on fewer rows."""
    if task.name != "softmax":
        return task
    cases = [
        case.model_copy(update={"args": {**case.args, "rows": min(case.args["rows"], 128)}})
        for case in task.cases
    ]
    return task.model_copy(update={"cases": tuple(cases)})


def announced(path: Path) -> str | None:
    """The rung at which a candidate says that it is refuted; honest ones say none."""
    said = re.search(r"Refuted at: (\w+)$", path.read_text(), re.MULTILINE)
    return said[1] if said else None


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """One judge for all: its nursery stays warm."""
    kept: dict = {}
    judge = Judge(kept.get, kept.__setitem__, tmp_path_factory.mktemp("builds"))
    yield judge
    judge.close()


@pytest.mark.parametrize("path", CANDIDATES, ids=named)
def test_a_candidate_ends_where_it_says(judge: Judge, path: Path) -> None:
    task = smaller(read_task(path.parent))
    options = ClimbOptions(upto="honest", confirm=False, baselines=())
    verdict = judge.climb(task, read_candidate(path), options)
    failed = verdict.failed_rung
    assert (failed and failed.name) == announced(path), failed
    if failed is None:
        assert verdict.outcome == "passed"
        passed = {case.name for case in verdict.cases if case.outcome == "passed"}
        assert passed == {case.name for case in task.cases if case.fits("cpu:native")}
    else:
        assert (verdict.outcome, verdict.blame) == ("refuted", "candidate")
        assert failed.reason


def test_names_tell_who_is_honest() -> None:
    for path in CANDIDATES:
        assert path.name.startswith("honest") == (announced(path) is None), path


@pytest.mark.parametrize("folder", TASKS, ids=named)
def test_tasks_are_shaped_alike(folder: Path) -> None:
    task = read_task(folder)
    assert task.name == folder.name
    assert task.description.strip()
    assert (folder / "honest.py").exists()
    on_cpu = [case for case in task.cases if not case.targets]
    assert [case.targets for case in task.cases if case.targets] == [("cuda",)]
    assert sum(not case.held_out for case in on_cpu) >= 2
    assert any(case.held_out for case in on_cpu)


def test_there_are_as_many_as_were_promised() -> None:
    assert len(TASKS) >= 8
    assert {"softmax", "relative_attention"} <= {task.name for task in TASKS}
    assert len({path.parent for path in CANDIDATES if path.name.startswith("wrong")}) >= 3
    readme = (EXAMPLES / "README.md").read_text()
    assert all(f"| `{task.name}` |" in readme for task in TASKS)
