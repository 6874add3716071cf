"""`toprung runs` and `toprung report` over an app that remembers what it is given."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import toprung
from toprung.faces.cli.main import run
from toprung.store import RunSummary

pytestmark = pytest.mark.unit

BEST = RunSummary(
    id="20260301-softmax-k3f9q",
    task="softmax \x1b[2J[red]",
    target="cpu:native",
    created="2026-03-01T12:00:00+00:00",
    touched="2026-03-01T12:05:00+00:00",
    state="goal",
    attempts=9,
    passed=4,
    best=7,
    speedup={"eager": 2.37, "compile": 1.9},
    attained=0.86,
    seconds=75.0,
)
KILLED = BEST.model_copy(
    update={"id": "20260301-softmax-aaaaa", "state": "going", "best": None, "speedup": {}}
    | {"attained": None}
)


def with_runs(monkeypatch: pytest.MonkeyPatch, *found: RunSummary) -> SimpleNamespace:
    seen = SimpleNamespace(stores=[])

    def runs(store: Path | None) -> list[RunSummary]:
        seen.stores.append(store)
        return list(found)

    monkeypatch.setattr(toprung, "app", SimpleNamespace(runs=runs), raising=False)
    return seen


def test_a_person_sees_one_run_a_line(monkeypatch, capsys):
    with_runs(monkeypatch, BEST, KILLED)
    assert run(["runs"]) == 0
    head, *lines = capsys.readouterr().out.rstrip().splitlines()
    assert "vs eager" in head
    assert len(lines) == 2
    for part in (BEST.id, "4 of 9", "goal", "2.37×", "86%", "1 min 15 s", "[red]"):
        assert part in lines[0]
    assert "\x1b" not in lines[0]
    assert "going" in lines[1]
    assert lines[1].count("–") == 2


def test_no_runs_yet_says_how_to_make_one(monkeypatch, capsys):
    with_runs(monkeypatch)
    assert run(["runs"]) == 0
    assert "toprung optimize TASK" in capsys.readouterr().out


def test_json_is_one_object_with_every_field(monkeypatch, capsys):
    seen = with_runs(monkeypatch, BEST)
    assert run(["runs", "--json", "--store", "there"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"schema": "toprung.runs/1", "runs": [BEST.to_dict()]}
    assert seen.stores == [Path("there")]


def test_report_names_the_file_it_wrote(monkeypatch, capsys):
    asked: list[tuple[str | None, Path, Path | None]] = []

    def report(run_id: str | None, out: Path, store: Path | None) -> Path:
        asked.append((run_id, out, store))
        return out

    monkeypatch.setattr(toprung, "app", SimpleNamespace(report=report), raising=False)
    assert run(["report"]) == 0
    assert "report.html" in capsys.readouterr().out
    assert run(["report", "abc", "-o", "x.html", "--store", "s", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"schema": "toprung.report/1", "path": "x.html"}
    assert asked == [(None, Path("report.html"), None), ("abc", Path("x.html"), Path("s"))]
