"""The tuner: what it proposes first, that it never repeats itself, and that it has no memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from toprung.proposers.templates import tuner as tuning
from toprung.proposers.templates.choices import Choices
from toprung.proposers.templates.prelude import pieces, text_of
from toprung.proposers.templates.scalar import FUNCTIONS
from toprung.proposers.templates.source import choices_of, header_of
from toprung.proposers.templates.space import Space
from toprung.proposers.templates.tuner import Exhausted, Tried, Tuner

pytestmark = pytest.mark.unit

SPACE: Space = {
    "stream": (False, True),
    "lanes": (32, 64, 16),
    "keep": ("scratch", "output", "recompute"),
    "share": (1, 2),
}
SMALL: Space = {"stream": (False, True), "lanes": (32, 64)}


def cost(choices: Choices) -> float:
    """Streaming helps, sharing hurts, 64 lanes help a little."""
    return 600.0 - 200 * choices.stream + 300 * (choices.share - 1) - 10 * (choices.lanes == 64)


def run(
    space: Space, count: int, seed: int = 1, time: Callable[[Choices], float | None] = cost
) -> list[Tried]:
    """A search whose tuner is built anew for every proposal."""
    tried: list[Tried] = []
    for _ in range(count):
        choices = Tuner(space, Choices(), tried, seed).next()
        found = time(choices)
        tried.append(Tried(choices, found, failed=found is None))
    return tried


def points(tried: Sequence[Tried]) -> list[Choices]:
    return [each.choices for each in tried]


def test_the_first_choice_is_the_default() -> None:
    assert points(run(SPACE, 1)) == [Choices()]


def test_moves_start_from_the_best_so_far() -> None:
    tried = points(run(SPACE, 4))
    assert tried[1] == Choices(stream=True)
    assert tried[2] == Choices(stream=True, lanes=64)
    assert tried[3].stream


def test_nothing_is_proposed_twice_and_the_end_is_told() -> None:
    # Four points, and nothing that is streamed is also read back.
    tried = run(SMALL, 4)
    assert len(set(map(header_of, points(tried)))) == 4
    with pytest.raises(Exhausted, match="has been tried"):
        Tuner(SMALL, Choices(), tried, 1).next()


def test_a_whole_space_is_walked_without_repetition() -> None:
    tried = run(SPACE, 30, time=lambda choices: random.Random(str(choices)).uniform(1, 2))
    assert len(set(map(header_of, points(tried)))) == 30
    with pytest.raises(Exhausted):
        Tuner(SPACE, Choices(), tried, 1).next()


def test_the_same_history_and_seed_give_the_same_proposal() -> None:
    assert points(run(SPACE, 20, seed=7)) == points(run(SPACE, 20, seed=7))
    # Single moves are the same for all; where optuna draws, the seed counts.
    assert points(run(SPACE, 20, seed=7)) != points(run(SPACE, 20, seed=8))


def test_refuted_points_are_failed_trials() -> None:
    tried = run(SPACE, 14, time=lambda choices: None if choices.stream else cost(choices))
    assert not any(each.choices.stream for each in tried if each.median_us)
    assert min(each.median_us or 1e9 for each in tried) == 590.0


def test_a_batch_holds_different_points() -> None:
    tuner = Tuner(SPACE, Choices(), [], 1)
    batch = [tuner.next() for _ in range(12)]
    assert len(set(map(header_of, batch))) == 12


def test_without_optuna_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "find_spec", lambda name: None)
    assert len(run(SPACE, 6)) == 6  # single moves need no optuna
    with pytest.raises(Exhausted, match=r"pip install 'toprung\[tune\]'"):
        run(SPACE, 10)


def test_choices_stand_in_the_source() -> None:
    choices = Choices(lanes=64, keep="output")
    source = f'"""x"""\n{header_of(choices)}\nimport torch\n'
    assert choices_of(source) == choices
    assert choices_of("import torch\n") is None
    assert choices_of("# toprung-templates: {broken\n") is None
    assert choices_of('# toprung-templates: {"lanes": "many"}\n') is None


def test_a_kernel_carries_only_what_it_uses() -> None:
    text = text_of(["sigmoid"])
    assert "float sigmoid(float x)" in text
    assert "exponential_tail" in text
    assert "logarithm" not in text
    needed = {name for function in FUNCTIONS.values() for name in function.needs}
    assert needed <= pieces().keys()
    for _, needs in pieces().values():
        assert set(needs) <= pieces().keys()
