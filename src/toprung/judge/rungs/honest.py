"""Does it compute, every time, what it seems to?"""

from __future__ import annotations

from toprung.errors import Refuted

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
    tried = 0
    for index, case in subject.open_cases:
        reused = 0
        for number in range(CALLS):
            subject.remaining()
            exchange = subject.exchange
            content = exchange.stage(index)
            outcome = exchange.call(subject.live, content)
            tried += 1
            problem = wrong_kind(case, outcome.called)
            if problem:
                raise subject.refute(case, problem)
            changed = exchange.changed_input(subject.live, outcome)
            if changed is not None and not subject.task.rules.in_place:
                raise subject.refute(
                    case,
                    f"it changed input {changed}, which the reference leaves alone",
                    hint="write to a tensor of your own",
                )
            checked = exchange.check(outcome)
            if not checked.ok:
                raise subject.refute(
                    case,
                    f"a result went wrong after {tried} right ones: {checked.why}",
                    hint="results must be computed from the inputs of this call, every time",
                )
            late = exchange.linger(subject.live, outcome, IDLE_S) if number % 2 else None
            if late is not None:
                raise subject.refute(
                    case,
                    f"output {late} changed after the call had returned",
                    hint="finish every thread before returning",
                )
            exchange.forget(content)
            reused += outcome.called.reused
        if reused:
            raise Refuted(
                "it returns the same memory from call to call: an earlier result changes under its "
                "owner's hands",
                hint="allocate each output afresh, as the reference does",
            )
    return {"calls": tried, "idle_seconds": IDLE_S, "frozen_outside_calls": True}
