"""Does it compute, every time, what it seems to?"""

from __future__ import annotations

from toprung.errors import Refuted
from toprung.judge.oracle.values import CaseSpec

from .base import Facts
from .run import wrong_kind
from .subject import Subject

QUESTION = "Does it compute, every time, what it seems to?"
REFUTES = (
    "an input changed that the reference leaves alone, an earlier result changed by a later call, "
    "an output written after the call returned, a wrong result on any of many fresh contents"
)
FACTS = "what was tried"

CALLS = 6
IDLE_S = 0.05


def check(subject: Subject) -> Facts:
    """Calls beyond those that checked correctness, indistinguishable from them."""
    for index, case in subject.open_cases:
        with subject.on(case):
            first = _probe(subject, index, keep=True)
            for number in range(1, CALLS):
                _probe(subject, index, linger=bool(number % 2))
            _hold_to(subject, case, first)
    return {
        "calls": CALLS * len(subject.open_cases),
        "idle_seconds": IDLE_S,
        "frozen_outside_calls": True,
    }


def _hold_to(subject: Subject, case: CaseSpec, taken: tuple[bytes, ...]) -> None:
    """An earlier result must still be what it was when it was returned."""
    held = subject.exchange.recalled(subject.live, case)
    borrowed = {leaf for leaf, _ in case.aliases}
    returned = [out.source == "return" and out.index not in borrowed for out in case.outputs]
    if held is None or any(
        own and now != then for own, now, then in zip(returned, held, taken, strict=True)
    ):
        raise Refuted(
            "it returns the same memory again and again: an earlier result has changed under its "
            "owner's hands",
            hint="allocate each output afresh, as the reference does",
        )


def _probe(
    subject: Subject, index: int, *, linger: bool = False, keep: bool = False
) -> tuple[bytes, ...]:
    """One more call, looked at from every side; fingerprints of its outputs."""
    subject.remaining()
    exchange = subject.exchange
    content = exchange.stage(index)
    outcome = exchange.call(subject.live, content, keep=keep)
    taken = exchange.fingerprint(outcome)
    problem = wrong_kind(content.case, outcome.called)
    if problem:
        raise Refuted(problem)
    changed = exchange.changed_input(subject.live, outcome)
    if changed is not None:
        raise Refuted(
            f"it changed input {changed}, which the reference leaves alone",
            hint="write to a tensor of your own",
        )
    checked = exchange.check(outcome)
    if not checked.ok:
        raise Refuted(
            f"a result went wrong after right ones: {checked.why}",
            hint="results must be computed from the inputs of this call, every time",
        )
    late = exchange.linger(subject.live, outcome, IDLE_S) if linger else None
    if late is not None:
        raise Refuted(
            f"output {late} changed after the call had returned",
            hint="finish every thread before returning",
        )
    exchange.forget(content)
    return taken
