"""Does one call return the right kind of thing?"""

from __future__ import annotations

from toprung.errors import Refuted
from toprung.judge.oracle.values import CaseSpec
from toprung.judge.wire.protocol import Called
from toprung.model.tensor import Tree
from toprung.model.value import Json

from .base import Facts
from .subject import Subject

QUESTION = "Does one call return the right kind of thing?"
REFUTES = (
    "an exception, another shape, type or device, an output that overlaps itself or aliases what "
    "the reference does not alias, non-finite values where the truth is finite"
)
FACTS = "shapes and strides of the outputs, how parameters were shared"


def check(subject: Subject) -> Facts:
    """Build it, give it parameters, call it once on every case."""
    exchange = subject.exchange
    exchange.bring_up(subject.live, subject.task.train, min(60.0, subject.remaining()))
    facts: Facts = {"parameters": exchange.mode}
    for index, case in subject.cases:
        with subject.on(case):
            specs = _once(subject, index).returned.specs
        if not case.held_out:
            facts[f"{case.name}/shapes"] = [list(spec.shape) for spec in specs]
            facts[f"{case.name}/strides"] = [list(spec.strides) for spec in specs]
    return facts


def _once(subject: Subject, index: int) -> Called:
    exchange = subject.exchange
    content = exchange.stage(index, truth=True)
    outcome = exchange.call(subject.live, content)
    problem = wrong_kind(content.case, outcome.called)
    if problem:
        raise Refuted(problem)
    checked = exchange.check(outcome)
    exchange.forget(content)
    if checked.nonfinite:
        raise Refuted(f"non-finite values where the truth is finite: {checked.why}")
    return outcome.called


def wrong_kind(case: CaseSpec, called: Called) -> str | None:
    """What is wrong with the kind of thing that a call returned, or `None`."""
    if called.strange:
        return called.strange
    if _skeleton(called.returned.layout) != _skeleton(case.returned.layout):
        return (
            f"it returns {_words(called.returned.layout)} where the reference returns "
            f"{_words(case.returned.layout)}"
        )
    if case.plain_fixed and _plain_values(called.returned) != _plain_values(case.returned):
        return (
            f"the plain values it returns are {_plain_values(called.returned)[:5]}, not "
            f"{_plain_values(case.returned)[:5]}"
        )
    for leaf, (own, wanted) in enumerate(
        zip(called.returned.specs, case.returned.specs, strict=True)
    ):
        if own.shape != wanted.shape:
            return f"output {leaf} has shape {list(own.shape)}, not {list(wanted.shape)}"
        if own.dtype != wanted.dtype:
            return f"output {leaf} is {own.dtype}, not {wanted.dtype}"
    allowed = {(leaf, given) for leaf, given in case.aliases}
    for leaf, given in called.aliases:
        if (leaf, given) not in allowed:
            return f"output {leaf} shares memory with input {given}; the reference's does not"
    strange = set(called.overlapping) - set(case.overlapping)
    if strange:
        return f"output {min(strange)} overlaps itself or another output"
    if not called.filled:
        return "a buffer that the reference changes is missing, or has another type or shape"
    return None


def _skeleton(layout: Json) -> Json:
    """The nesting alone: lists and tuples are alike, plain values are alike."""
    ((kind, content),) = layout.items()
    if kind == "t":
        return "t"
    if kind in ("list", "tuple"):
        return [_skeleton(node) for node in content]
    if kind == "dict":
        return {key: _skeleton(node) for key, node in content}
    return "v"


def _plain_values(tree: Tree) -> list[Json]:
    """What a result holds beside tensors, in order."""
    found: list[Json] = []
    stack = [tree.layout]
    while stack:
        ((kind, content),) = stack.pop().items()
        if kind in ("list", "tuple"):
            stack += content[::-1]
        elif kind == "dict":
            stack += [node for _, node in content[::-1]]
        elif kind != "t":
            found.append(content)
    return found


def _words(layout: Json) -> str:
    skeleton = _skeleton(layout)
    if skeleton == "t":
        return "one tensor"
    if skeleton == "v":
        return f"a plain value ({next(iter(layout.values()))!r})"
    kind = "dict" if isinstance(skeleton, dict) else next(iter(layout))
    return f"a {kind} of {len(skeleton)}"
