"""What of a verdict may be shown to whoever writes kernels: nothing that tells of held-out cases."""

from __future__ import annotations

import re

from toprung.model.verdict import RungResult, Verdict

WITHHELD = "withheld: it tells of a held-out case"
FAILS_HELD_OUT = "fails on a held-out case, whose shapes and values are not shown"


def shown(verdict: Verdict) -> Verdict:
    """The verdict without facts and text about held-out cases; their outcomes stay."""
    hidden = [case for case in verdict.cases if case.held_out]
    if not hidden:
        return verdict
    names = "|".join(re.escape(case.name) for case in hidden)
    told = re.compile(
        rf"case\s+['\"`]?(?:{names})(?!\w)|(?<!\w)(?:{names})[/.]|held-out case", re.IGNORECASE
    )
    failed = {case.held_out for case in verdict.cases if case.outcome in ("refuted", "errored")}
    # The text of a failure may tell shapes and values without naming the case.
    about_hidden = failed == {True}
    rungs = tuple(_shown(rung, told, about_hidden) for rung in verdict.rungs)
    return verdict.model_copy(update={"rungs": rungs})


def _shown(rung: RungResult, told: re.Pattern[str], about_hidden: bool) -> RungResult:
    facts = {
        name: value
        for name, value in rung.facts.items()
        if not told.search(name) and not told.search(str(value))
    }
    reason, traceback = rung.reason, rung.traceback
    if rung.status in ("refuted", "errored") and about_hidden:
        facts, reason, traceback = {}, FAILS_HELD_OUT, None
    elif reason and told.search(reason):
        reason = WITHHELD
    if traceback and told.search(traceback):
        traceback = None
    return rung.model_copy(update={"facts": facts, "reason": reason, "traceback": traceback})
