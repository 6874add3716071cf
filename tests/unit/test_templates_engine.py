"""What the engine says before it looks at any graph, and what it reads from a history."""

from __future__ import annotations

import pytest

from samples import a_task, failed, passed
from toprung.model.candidate import Candidate
from toprung.model.run import Attempt, Proposal
from toprung.proposers import table
from toprung.proposers.base import NothingToPropose
from toprung.proposers.settings import ProposerSettings
from toprung.proposers.templates.axes import Axes
from toprung.proposers.templates.bounds import Bounds
from toprung.proposers.templates.choices import Choices
from toprung.proposers.templates.engine import TemplateEngine, _tried
from toprung.proposers.templates.ir import Apply, Const, Expression, Load, Node, Reduce
from toprung.proposers.templates.source import header_of

pytestmark = pytest.mark.unit


def test_other_languages_and_devices_are_refused_in_words() -> None:
    task = a_task()
    with pytest.raises(NothingToPropose, match="write cpp, not triton"):
        TemplateEngine(dsl="triton").propose(task, (), (), 1)
    with pytest.raises(NothingToPropose, match="toprung verify TASK KERNEL"):
        TemplateEngine(target="cuda:sm_90a").propose(task, (), (), 1)
    with pytest.raises(NothingToPropose, match="gradients"):
        TemplateEngine().propose(a_task(grad=("x",)), (), (), 1)


def test_the_engine_is_found_by_name() -> None:
    engine = table.create("templates", ProposerSettings(seed=4))
    assert isinstance(engine, TemplateEngine)
    after = table.create("templates", ProposerSettings(start=(Candidate.of_source("x"),)))
    assert after.name == "templates"
    assert after.propose(a_task(), (), (), 1)[0].author == "scripted"


def made(index: int, choices: Choices | None, verdict_of: str) -> Attempt:
    text = header_of(choices) if choices else "# by hand"
    candidate = Candidate.of_source(f"{text}\n# {index}\n", dsl="cpp")
    task = a_task()
    verdicts = {
        "passed": lambda: passed(task, candidate, median_us=500.0 + index, confirmed=False),
        "untimed": lambda: passed(task, candidate, measured=False),
        "refuted": lambda: failed("correct", task, candidate),
        "errored": lambda: failed(
            "bench", task, candidate, outcome="errored", blame="device", reason="gone"
        ),
        "climbing": lambda: None,
    }
    return Attempt(
        index=index, proposal=Proposal(candidate=candidate), verdict=verdicts[verdict_of]()
    )


def test_a_history_tells_what_was_tried() -> None:
    kinds = ("passed", "untimed", "refuted", "errored", "climbing")
    history = tuple(made(i, Choices(lanes=16 * 2**i), kind) for i, kind in enumerate(kinds))
    tried = _tried((*history, made(9, None, "passed")))
    assert [each.median_us for each in tried] == [500.0, None, None, None, None]
    assert [each.failed for each in tried] == [False, False, True, False, False]
    assert [each.choices.lanes for each in tried] == [16, 32, 64, 128, 256]


def test_reciprocals_only_where_a_divisor_cannot_be_tiny() -> None:
    x = Load("input.0", "float32", "0", (((0,), "1"),), "f32")
    nodes: tuple[Node, ...] = (
        x,
        Reduce("max", 0, (0,), (0,), "f32"),
        Apply("sub", (0, 1), "f32"),
        Apply("exp", (2,), "f32"),
        Reduce("sum", 3, (0,), (0,), "f32"),  # 4: one of its terms is 1
        Reduce("sum", 0, (0,), (0,), "f32"),  # 5: anything
        Apply("mul", (0, 0), "f32"),
        Const(1e-6, "f32"),
        Apply("add", (6, 7), "f32"),
        Apply("sqrt", (8,), "f32"),  # 9: at least 1e-3
        Apply("add", (0, 7), "f32"),  # 10: anything
        Apply("max", (5, 7), "f32"),  # 11: at least 1e-6
        Apply("exp", (0,), "f32"),
        Reduce("sum", 12, (0,), (0,), "f32"),  # 13: may be as small as it likes
        Apply("sub", (1, 0), "f32"),
        Apply("exp", (14,), "f32"),
        Reduce("sum", 15, (0,), (0,), "f32"),  # 16: also holds a 1, but is not recognised
    )
    bounds = Bounds(Expression(nodes, (), Axes({})))
    assert [n for n in range(len(nodes)) if bounds.safe(n)] == [4, 7, 8, 9, 11]


def test_safe_means_at_least_the_smallest_constant() -> None:
    nodes: tuple[Node, ...] = (Const(1e-35, "f32"), Const(1e-20, "f32"), Const(-1.0, "f32"))
    bounds = Bounds(Expression(nodes, (), Axes({})))
    assert [bounds.safe(n) for n in range(3)] == [False, True, False]
