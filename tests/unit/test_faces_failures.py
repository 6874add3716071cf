"""Failures on the way out: words, exit codes, JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

import toprung
from toprung.errors import (
    DeviceError,
    HarnessError,
    TaskError,
    ToprungError,
    Unavailable,
    UsageError,
)
from toprung.faces.cli.failures import Failure, Manner
from toprung.faces.cli.main import run
from toprung.faces.cli.names import check_name, split_names

pytestmark = pytest.mark.unit


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let `toprung runs` meet `error`."""

    def runs(store: object) -> list[object]:
        raise error

    monkeypatch.setattr(toprung, "app", SimpleNamespace(runs=runs), raising=False)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no such run"), 2),
        (TaskError("the task has no Model"), 2),
        (HarnessError("the nursery did not start"), 3),
        (DeviceError("out of memory"), 3),
        (Unavailable("no compiler"), 3),
    ],
)
def test_errors_on_purpose_say_what_whose_and_what_next(monkeypatch, capsys, error, code):
    error.hint = "do this instead"
    raising(monkeypatch, error)
    assert run(["runs"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert f"toprung runs: {error.message}" in err
    assert "at fault: " in err
    assert "what next: do this instead" in err


def test_json_errors_are_one_object_on_standard_output(monkeypatch, capsys):
    raising(monkeypatch, TaskError("no Model", hint="define one", details="line 3"))
    assert run(["runs", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "schema": "toprung.error/1",
        "error": "no Model",
        "blame": "task",
        "hint": "define one",
        "details": "line 3",
    }
    assert err == ""


@pytest.mark.parametrize("arguments", [["verify"], ["verify", "--jsn"], ["nosuchverb"]])
def test_usage_errors_exit_2_in_words_and_in_json(capsys, arguments):
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "--help" in err
    assert run([*arguments, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["blame"] == "task"


def test_the_unforeseen_is_the_harness_fault_and_its_traceback_is_one_flag_away(
    monkeypatch, capsys
):
    raising(monkeypatch, ZeroDivisionError("division by zero"))
    assert run(["runs"]) == 3
    err = capsys.readouterr().err
    assert "toprung failed: ZeroDivisionError: division by zero" in err
    assert "--debug" in err
    assert "Traceback" not in err

    assert run(["runs", "--debug"]) == 3
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("TOPRUNG_DEBUG", "1")
    assert run(["runs"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_exits_130(monkeypatch, capsys):
    raising(monkeypatch, KeyboardInterrupt())
    assert run(["runs"]) == 130
    assert "Ctrl-C" in capsys.readouterr().err
    assert run(["runs", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["blame"] is None


def test_hostile_text_in_an_error_cannot_steer_the_terminal(monkeypatch, capsys):
    raising(monkeypatch, ToprungError("a \x1b[2Jb [red]c[/red]", details="\x1b]0;title\x07"))
    run(["runs"])
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\x07" not in err
    assert "[red]c[/red]" in err


def test_long_details_keep_their_end():
    failure = Failure.of(ToprungError("m", details="x" * 100_000 + "the end"))
    from toprung.faces.cli import failures

    text = failures._as_text(failure, "toprung")
    assert "the end" in text
    assert len(text) < failures.MAX_DETAILS + 200


@pytest.mark.parametrize(
    ("arguments", "as_json", "debug"),
    [([], False, False), (["--json"], True, False), (["--", "--json", "--debug"], False, False)],
)
def test_manner_is_read_off_the_arguments(monkeypatch, arguments, as_json, debug):
    monkeypatch.delenv("TOPRUNG_DEBUG", raising=False)
    assert Manner.of(arguments) == Manner(as_json, debug)


def test_a_reader_that_leaves_ends_the_command_without_a_word():
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m toprung.faces.cli.main runs --json | true"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "BrokenPipe" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_name_is_answered_with_the_nearest_and_all():
    with pytest.raises(UsageError) as told:
        check_name("rung", "corect", ("static", "correct"))
    assert told.value.hint == "did you mean correct? choose among: static, correct"
    with pytest.raises(UsageError) as told:
        check_name("rung", "zzz", ("static", "correct"))
    assert told.value.hint == "choose among: static, correct"
    assert check_name("rung", "static", ("static", "correct")) == "static"


def test_lists_of_names_are_split_and_each_kept_once():
    assert split_names(["a, b", "b,c", ""]) == ["a", "b", "c"]
