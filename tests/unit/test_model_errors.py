"""Errors: each names who is to blame, and its exit code follows."""

from __future__ import annotations

import inspect

import pytest

from toprung import errors
from toprung.errors import Exit, Refuted, ToprungError, blame_of

pytestmark = pytest.mark.unit

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, ToprungError) and kind is not ToprungError
]
EXITS = {
    "candidate": Exit.REFUTED,
    "task": Exit.WRONG,
    "harness": Exit.FAILED,
    "device": Exit.FAILED,
}


@pytest.mark.parametrize("kind", KINDS)
def test_blame_and_exit_code_agree(kind: type[ToprungError]) -> None:
    error = kind("what happened", hint="what to do", details="what the tool said")
    assert blame_of(error) == error.blame
    assert error.exit_code == EXITS[error.blame]
    assert (str(error), error.hint, error.details) == (
        "what happened",
        "what to do",
        "what the tool said",
    )


def test_only_what_is_refuted_blames_the_candidate() -> None:
    assert all((kind.blame == "candidate") == issubclass(kind, Refuted) for kind in KINDS)


@pytest.mark.parametrize(
    "error", [ValueError("x"), KeyboardInterrupt(), MemoryError(), SystemExit(0)]
)
def test_what_nobody_foresaw_is_the_harness(error: BaseException) -> None:
    assert blame_of(error) == "harness"


def test_a_refutation_keeps_what_was_measured() -> None:
    assert Refuted("too far", facts={"max_abs": 0.1}).facts == {"max_abs": 0.1}
    assert Refuted("too far").facts == {}


def test_the_tree_at_the_top_of_the_file_is_the_tree() -> None:
    drawn = errors.__doc__ or ""
    for kind in [*KINDS, ToprungError]:
        assert kind.__name__ in drawn
