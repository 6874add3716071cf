"""`toprung verify` over an app that answers with verdicts made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import samples
import toprung
from toprung.app import VerifySettings
from toprung.faces.cli.main import run
from toprung.model.verdict import CaseResult, Verdict

pytestmark = pytest.mark.unit


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Runs `verify` on a real task file with an app that answers `verdict`; keeps what it got."""
    task = tmp_path / "softmax.py"
    task.write_text(samples.REFERENCE)
    kernel = tmp_path / "kernel.py"
    kernel.write_text(samples.SOURCE)
    seen = SimpleNamespace(settings=None, task=task, kernel=kernel)

    def asked(verdict: Verdict, *options: str) -> int:
        def verify(task: Path, candidate: Path, settings: Any, progress: Any) -> Verdict:
            seen.settings = settings
            for rung in verdict.rungs[:3]:
                progress(rung)
            return verdict

        app = SimpleNamespace(VerifySettings=VerifySettings, verify=verify)
        monkeypatch.setattr(toprung, "app", app, raising=False)
        return run(["verify", str(task), str(kernel), *options])

    asked.seen = seen  # type: ignore[attr-defined]
    return asked


def test_json_is_one_verdict_and_nothing_else(ask, capsys):
    verdict = samples.passed()
    assert ask(verdict, "--json") == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert Verdict.from_json(out) == verdict
    assert json.loads(out)["schema"] == "toprung.verdict/1"
    assert "compile" in err


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (samples.passed(), 0),
        (samples.failed(), 1),
        (samples.failed(outcome="errored", blame="task"), 2),
        (samples.failed(outcome="errored", blame="harness"), 3),
        (samples.failed(outcome="errored", blame="device"), 3),
    ],
)
def test_exit_codes_are_the_verdicts(ask, capsys, verdict, code):
    assert ask(verdict) == code
    assert ask(verdict, "--json") == code
    capsys.readouterr()


def test_options_arrive_as_settings(ask, capsys):
    ask(
        samples.passed(),
        *("--dsl", "cpp", "--target", "cpu:native", "--upto", "roofline"),
        *("--with", "sanitize,profile", "--timeout", "20", "--seed", "7"),
        *("--no-confirm", "--store", "somewhere", "--rungs", "a.py", "--rungs", "b.py"),
    )
    capsys.readouterr()
    assert ask.seen.settings == VerifySettings(
        dsl="cpp",
        target="cpu:native",
        upto="roofline",
        extra=("sanitize", "profile"),
        timeout_s=20,
        seed=7,
        confirm=False,
        rungs=(Path("a.py"), Path("b.py")),
        store=Path("somewhere"),
    )


def test_without_options_the_settings_are_the_defaults(ask, capsys, monkeypatch):
    monkeypatch.delenv("TOPRUNG_STORE", raising=False)
    ask(samples.passed())
    capsys.readouterr()
    assert ask.seen.settings == VerifySettings()


def test_the_state_folder_may_come_from_the_environment(ask, capsys, monkeypatch):
    monkeypatch.setenv("TOPRUNG_STORE", "elsewhere")
    ask(samples.passed())
    assert ask.seen.settings.store == Path("elsewhere")
    capsys.readouterr()


def test_what_a_held_out_case_told_is_shown_nowhere(ask, capsys):
    task = samples.several_cases()
    secret = "case 'odd': output 0 has shape [37, 1009]"
    cases = tuple(
        CaseResult(name=c.name, held_out=c.held_out, outcome="refuted" if c.held_out else "passed")
        for c in task.cases
    )
    verdict = samples.failed("correct", task=task, reason=secret, traceback=secret, cases=cases)
    assert ask(verdict, "--json") == 1
    assert "1009" not in capsys.readouterr().out
    assert ask(verdict) == 1
    assert "1009" not in capsys.readouterr().out


def test_a_person_sees_every_rung_once_then_the_figures(ask, capsys):
    assert ask(samples.passed()) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for rung in ("static", "compile", "run", "correct", "honest", "bench", "plausible", "roofline"):
        lines = [line for line in out.splitlines() if line.startswith(f"  ✓ {rung} ")]
        assert len(lines) == 1, rung
    assert "– sanitize" in out
    assert "not asked: add --with sanitize" in out
    assert "Passed up to roofline" in out
    assert "600 µs" in out
    assert "2.33× (2.24–2.45×)" in out  # eager
    assert "1.87× (1.79–1.96×)" in out  # compile
    assert "85% of the roofline" in out
    assert "What next: toprung optimize" in out


def test_an_unconfirmed_speed_up_is_said_to_be_none(ask, capsys):
    ask(samples.passed(confirmed=False))
    assert "faster, not confirmed" in capsys.readouterr().out


def test_a_refuted_candidate_gets_the_feedback_and_a_command(ask, capsys):
    assert ask(samples.failed("run")) == 1
    out = capsys.readouterr().out
    assert "✗ run" in out
    assert "REFUTED at run" in out
    assert "not reached: correct, honest" in out
    assert out.count("name 'z' is not defined") >= 2  # on the ladder, and in the feedback
    assert "kernel.py --upto correct" in out


def test_what_was_skipped_is_never_shown_as_passed(ask, capsys):
    ask(samples.passed(measured=False))
    out = capsys.readouterr().out
    assert "✓ bench" not in out
    assert "no CUDA device on this machine" in out
    assert "Passed up to honest; not asked: sanitize, bench" in out


def test_hostile_text_from_a_candidate_is_shown_and_does_nothing(ask, capsys):
    evil = "\x1b[2J\x1b]0;owned\x07[bold red]x[/] \r\x9b31m :smile:"
    assert ask(samples.failed("run", reason=evil, traceback=evil * 3)) == 1
    out = capsys.readouterr().out
    assert not set(out) & {"\x1b", "\x07", "\x9b", "\r"}
    assert "[bold red]x[/]" in out
    assert ":smile:" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--dsl", "cp"], "did you mean cpp"),
        (["--upto", "benchh"], "did you mean bench"),
        (["--with", "sanitise"], "did you mean sanitize"),
        (["--timeout", "0"], "timeout"),
    ],
)
def test_wrong_names_are_refused_with_the_nearest(ask, capsys, options, said):
    assert ask(samples.passed(), *options) == 2
    assert said in capsys.readouterr().err
    assert ask.seen.settings is None
