"""`toprung optimize` over an app that plays a recorded run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import samples
import toprung
from toprung.app import OptimizeSettings
from toprung.faces.cli.main import run
from toprung.model.event import AttemptStarted, Done, Event, Hinted, Judged, Kept
from toprung.model.run import Run

pytestmark = pytest.mark.unit


def events_of(run_: Run) -> list[Event]:
    """What such a run would have told."""
    told: list[Event] = [samples.a_creation()]
    for attempt in run_.attempts:
        told.append(AttemptStarted(index=attempt.index, proposal=attempt.proposal))
        if attempt.verdict:
            told.append(Judged(index=attempt.index, verdict=attempt.verdict, seconds=1.0))
        if attempt.kept:
            told.append(Kept(index=attempt.index, verdict=attempt.verdict))
    told += [Hinted(text=text) for text in run_.hints]
    return [*told, Done(reason=run_.reason or "stopped", message=run_.message)]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch):
    """Runs `optimize` with an app that plays `recorded`; keeps what it got."""
    seen = SimpleNamespace(settings=None, task=None)

    def played(recorded: Run, *arguments: str, more: Sequence[Event] = ()) -> int:
        def optimize(task: Path | None, settings: Any, on_event: Any) -> Run:
            seen.task, seen.settings = task, settings
            for event in [*events_of(recorded), *more]:
                on_event(event)
            return recorded

        app = SimpleNamespace(
            OptimizeSettings=OptimizeSettings,
            optimize=optimize,
            best_file=lambda run, store: Path("kept/kernel.py") if run.best else None,
        )
        monkeypatch.setattr(toprung, "app", app, raising=False)
        return run(["optimize", *arguments])

    played.seen = seen  # type: ignore[attr-defined]
    return played


def a_finished_climb() -> Run:
    return samples.a_climb().model_copy(update={"reason": "goal", "message": "near enough"})


def test_json_is_one_event_a_line_and_done_comes_last(play, capsys):
    recorded = a_finished_climb()
    assert play(recorded, "task.py", "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = [line["event"] for line in lines]
    assert set(kinds) == {"attempt", "verdict", "kept", "hint", "done"}
    assert kinds.count("attempt") == 9
    best = recorded.best
    assert best is not None
    assert lines[-1] == {
        "event": "done",
        "run": recorded.id,
        "best": {
            "candidate": best.proposal.candidate.digest,
            "attempt": 7,
            "speedup": pytest.approx(1400 / 590),
            "attained": pytest.approx(508.4 / 590),
        },
        "reason": "goal",
        "message": "near enough",
    }


def test_a_run_that_kept_nothing_ends_with_1_and_says_why(play, capsys):
    nothing = samples.a_run(
        samples.an_attempt(0, samples.failed("run", candidate=samples.a_candidate("0"))),
        reason="plateau",
        message="no family covers cumsum: write a first kernel and pass it with --from",
    )
    assert play(nothing, "task.py", "--json") == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["best"] is None
    assert play(nothing, "task.py") == 1
    out = capsys.readouterr().out
    assert "No kernel was kept" in out
    assert "no family covers cumsum" in out
    assert "0 of 1 candidates passed" in out


def test_a_run_that_was_stopped_says_how_to_go_on(play, capsys):
    stopped = samples.a_climb().model_copy(update={"reason": "stopped"})
    assert play(stopped, "task.py") == 130
    out, err = capsys.readouterr()
    assert f"toprung optimize --resume {stopped.id}" in out
    assert err == ""


def test_a_person_sees_one_line_an_attempt_and_what_was_kept(play, capsys):
    play(a_finished_climb(), "task.py", "--attempts", "20", "--minutes", "2.5")
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0] == "task.py: goal 90% of the roofline, at most 20 attempts, 2.5 minutes"
    assert lines[1].split() == ["#", "outcome", "median", "vs", "eager", "roofline", "note"]
    for index in range(8):
        assert sum(line.startswith(f"{index:>4}  ") for line in lines) == 1, index
    assert "refuted at compile" in out
    assert "errored at bench" in out
    assert out.count("▲ best so far") == 3
    assert "590 µs" in out
    assert "2.37×" in out
    assert "hint: try one pass over the row" in out
    assert "4 of 8 candidates passed" in out
    assert "kept/kernel.py" in out
    assert "near enough" in out
    assert "toprung report" in out


def test_a_confirmation_is_told_as_such(play, capsys):
    first = samples.an_attempt(0, samples.passed(candidate=samples.a_candidate("0")), kept=True)
    recorded = samples.a_run(first)
    play(recorded, "task.py")
    assert "paired rounds" not in capsys.readouterr().out
    confirmed = Judged(index=0, verdict=first.verdict, seconds=1.0)
    play(recorded, "task.py", more=[confirmed])
    assert "once more, beside its baselines in paired rounds" in capsys.readouterr().out


def test_options_arrive_as_settings(play, capsys):
    play(
        a_finished_climb(),
        *("task.py", "--dsl", "cpp", "--target", "cpu:native", "--from", "k.py"),
        *("--goal", "0.8", "--attempts", "5", "--minutes", "2.5", "--usd", "1"),
        *("--seed", "3", "--store", "s", "--strategy", "best_of_n"),
    )
    capsys.readouterr()
    assert play.seen.task == Path("task.py")
    assert play.seen.settings == OptimizeSettings(
        target="cpu:native",
        dsl="cpp",
        start=Path("k.py"),
        strategy="best_of_n",
        goal=0.8,
        attempts=5,
        minutes=2.5,
        usd=1,
        seed=3,
        store=Path("s"),
    )


def test_without_options_the_settings_are_the_defaults(play, capsys, monkeypatch):
    monkeypatch.delenv("TOPRUNG_STORE", raising=False)
    play(a_finished_climb(), "task.py")
    capsys.readouterr()
    assert play.seen.settings == OptimizeSettings()


def test_a_run_to_resume_needs_no_task_and_nothing_at_all_is_refused(play, capsys):
    assert play(a_finished_climb(), "--resume", "abc") == 0
    assert (play.seen.task, play.seen.settings.resume) == (None, "abc")
    assert play(a_finished_climb()) == 2
    assert "--resume" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--dsl", "cpq"], ["--strategy", "greedi"]])
def test_wrong_names_are_refused_with_the_nearest(play, capsys, wrong):
    assert play(a_finished_climb(), "task.py", *wrong) == 2
    assert "did you mean" in capsys.readouterr().err


def test_hostile_notes_do_nothing(play, capsys):
    evil = samples.a_run(samples.an_attempt(0, note="\x1b[2J[red]\nsecond line" + "x" * 300))
    play(evil, "task.py")
    assert "\x1b" not in capsys.readouterr().out
