"""Is it right on inputs nobody could guess?"""

from __future__ import annotations

from toprung.errors import Refuted
from toprung.judge.oracle.values import CaseSpec, Checked
from toprung.model.task import Family

from .base import Facts
from .run import wrong_kind
from .subject import Subject

QUESTION = "Is it right on inputs nobody could guess?"
REFUTES = "an error beyond tolerance on any input family and any case"
FACTS = "per family: max abs, max rel, MAE, MSE, RMSE, PSNR, cosine, error beside the reference's"

DRAWS: dict[Family, int] = {"as_given": 3}
"""Draws of a family; one for those not named."""


def check(subject: Subject) -> Facts:
    """Every case, every family, fresh content for each call, against the fp64 truth."""
    facts: Facts = {"preset": subject.task.tolerance.preset, "calls": 0}
    for index, case in subject.cases:
        for family in subject.task.inputs.wanted:
            for _ in range(DRAWS.get(family, 1)):
                subject.remaining()
                with subject.on(case):
                    asked = _family(subject, facts, index, case, family)
                if not asked:
                    break
        subject.passed_cases.add(case.name)
    return facts


def _family(subject: Subject, facts: Facts, index: int, case: CaseSpec, family: Family) -> bool:
    """One call on one family; false when the family is skipped."""
    exchange = subject.exchange
    content = exchange.stage(index, family, truth=True)
    key = family if len(subject.open_cases) == 1 else f"{case.name}/{family}"
    if content.staged.skipped:
        if not case.held_out:
            facts[f"{key}.skipped"] = content.staged.skipped
        return False
    outcome = exchange.call(subject.live, content)
    facts["calls"] += 1
    problem = wrong_kind(case, outcome.called)
    if problem:
        raise Refuted(f"on {family} inputs: {problem}", facts=facts)
    checked = exchange.check(outcome)
    exchange.forget(content)
    if not case.held_out:
        _note(facts, key, checked)
    if not checked.ok:
        raise Refuted(f"wrong on {family} inputs: {checked.why}", facts=facts)
    limit, worst = subject.task.objective.max_error, checked.metrics.get("max_abs")
    if limit and family == "as_given" and worst is not None and worst > limit:
        raise Refuted(
            f"its largest error is {worst:.3g}, and this task allows {limit:.3g}", facts=facts
        )
    return True


def _note(facts: Facts, key: str, checked: Checked) -> None:
    """Keep the worst over the draws of a family."""
    for name, value in checked.metrics.items():
        old = facts.get(f"{key}.{name}")
        if value is None:
            continue
        worse = min if name in ("psnr", "cosine") else max
        facts[f"{key}.{name}"] = value if old is None else worse(old, value)
