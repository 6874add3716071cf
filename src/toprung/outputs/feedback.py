"""Feedback: a verdict as short text for whoever writes the next candidate, agent or engineer.

It holds no seeds, and nothing of held-out cases but their outcome. Lines that begin with `|` are
text from the candidate's own process.
"""

from __future__ import annotations

from toprung.model.measurement import Measurement
from toprung.model.run import Goal
from toprung.model.task import Task
from toprung.model.verdict import CaseResult, RungResult, Verdict

from . import figures
from .advice import AFTER_BLAME, AFTER_FAMILY, AFTER_LIMITER, AFTER_RUNG
from .claims import claim
from .shown import shown
from .text import one_line
from .traces import trimmed

MAX_LINES = 60
MAX_CHARACTERS = 6000
REASON_LENGTH = 700
TRACE_LINES = 22
TRACE_CHARACTERS = 2400
FACT_LINES = 12
FACT_LENGTH = 110
CASE_LINES = 6
BASELINE_LINES = 5
NAME_LENGTH = 60


def feedback(verdict: Verdict, task: Task | None = None, goal: Goal | None = None) -> str:
    """`verdict` in at most 60 lines and 6,000 characters.

    With `task` and `goal`, figures stand beside the limits that they must keep.
    """
    verdict = shown(verdict)
    lines = [_headline(verdict), *_climbed(verdict)]
    failed = verdict.failed_rung
    if failed:
        lines += _failure(failed)
    if verdict.measurement:
        lines += _timing(verdict.measurement, task)
    if verdict.roofline:
        aim = f"; the goal is {figures.percent(goal.attained)}" if goal else ""
        roof = verdict.roofline
        lines.append(
            f"roofline: {figures.percent(roof.attained)} attained: the bound is "
            f"{figures.time_us(roof.bound_us)}, set by {roof.limiter}{aim}"
        )
    lines += _cases(verdict.cases)
    lines.append(f"next: {_next(verdict, goal)}")
    return "\n".join(lines)


def _headline(verdict: Verdict) -> str:
    failed = verdict.failed_rung
    name, dsl = _name(verdict.task.name), _name(verdict.candidate.dsl or "unknown DSL")
    about = f"{name} in {dsl} on {_name(verdict.target)}"
    if failed is None and verdict.outcome == "errored":
        return f"ERRORED: {about}: a rung that was required cannot be asked on this machine"
    if failed:
        blame = "" if verdict.blame == "candidate" else f" (blame: {verdict.blame})"
        return f"{verdict.outcome.upper()} at {_name(failed.name)}{blame}: {about}"
    return f"PASSED up to {_name(verdict.height or 'nothing')}: {about}"


def _name(text: str) -> str:
    return one_line(text, NAME_LENGTH)


def _climbed(verdict: Verdict) -> list[str]:
    """The ladder in a few lines: what passed, what was skipped and why, what was not reached."""
    passed = [_name(r.name) for r in verdict.rungs if r.status == "passed"]
    lines = [f"passed: {one_line(', '.join(passed), 300) or 'nothing'}"]
    reasons: dict[str, list[str]] = {}
    for rung in verdict.rungs:
        if rung.status == "skipped":
            reasons.setdefault(one_line(rung.reason or "", 160), []).append(_name(rung.name))
    for reason, names in list(reasons.items())[:4]:
        lines.append(f"skipped: {one_line(', '.join(names), 200)} ({reason})")
    missed = [_name(r.name) for r in verdict.rungs if r.status == "not_reached"]
    return [*lines, f"not reached: {one_line(', '.join(missed), 300)}"] if missed else lines


def _failure(rung: RungResult) -> list[str]:
    lines = [f"reason: {one_line(rung.reason or '', REASON_LENGTH)}"]
    facts = _facts(rung)
    if facts:
        lines += ["facts:", *facts]
    if rung.traceback:
        lines += ["output:", *_trace(rung.traceback)]
    return lines


def _facts(rung: RungResult) -> list[str]:
    """What the failing rung measured, what its reason names first, and short of the rest."""
    told = [(n, v) for n, v in rung.facts.items() if "seed" not in n.lower()]
    told.sort(key=lambda fact: _unnamed(fact[0], rung.reason or ""))
    lines = [one_line(f"{name}: {figures.fact(name, value)}", FACT_LENGTH) for name, value in told]
    rest = len(lines) - FACT_LINES
    return [f"  {line}" for line in lines[:FACT_LINES]] + ([f"  … {rest} more"] if rest > 0 else [])


def _unnamed(fact: str, reason: str) -> tuple[bool, bool]:
    """Whether the reason is silent about the family and the case of a fact `case/family.metric`."""
    case, _, rest = fact.rpartition("/")
    family = rest.partition(".")[0]
    return family not in AFTER_FAMILY or family not in reason, repr(case) not in reason


def _trace(text: str) -> list[str]:
    """Trimmed from the middle until it is short enough in characters too."""
    lines = TRACE_LINES
    while True:
        found = [f"  | {line}" for line in trimmed(text, lines)]
        if lines <= 4 or sum(len(line) + 1 for line in found) <= TRACE_CHARACTERS:
            return found
        lines -= 1


def _timing(measured: Measurement, task: Task | None) -> list[str]:
    lines = [
        f"time: {figures.time_us(measured.median_us)} ({figures.interval_us(measured)}), "
        f"{measured.cache} cache, {measured.clock} clock; busy {figures.time_us(measured.busy_us)}, "
        f"wall {figures.time_us(measured.wall_us)}"
    ]
    for name, baseline in list(measured.baselines.items())[:BASELINE_LINES]:
        beside = f"  beside {_name(name)}: {figures.time_us(baseline.median_us)}"
        claimed = claim(measured, name)
        if claimed:
            ratio = figures.times(claimed.speedup.ratio)
            sure = "" if claimed.confirmed else ", not confirmed"
            beside += (
                f" → {ratio} ({figures.times_interval(claimed.speedup)}): {claimed.word}{sure}"
            )
        lines.append(beside)
    most = task.objective.max_peak_bytes if task else 0
    limit = f", at most {figures.size(most)} allowed" if most else ""
    return [*lines, f"memory: {figures.size(measured.peak_bytes)} at its peak{limit}"]


def _cases(cases: tuple[CaseResult, ...]) -> list[str]:
    if len(cases) < 2:
        return []
    lines = ["cases:"]
    for case in cases[:CASE_LINES]:
        held_out = " (held out)" if case.held_out else ""
        line = f"  {_name(case.name)}{held_out}: {case.outcome or 'not asked'}"
        if case.measurement:
            line += f", {figures.time_us(case.measurement.median_us)}"
        if case.roofline:
            line += f", {figures.percent(case.roofline.attained)} of the roofline"
        lines.append(line)
    rest = len(cases) - CASE_LINES
    return [*lines, f"  … {rest} more"] if rest > 0 else lines


def _next(verdict: Verdict, goal: Goal | None) -> str:
    failed = verdict.failed_rung
    if verdict.blame and verdict.blame != "candidate":
        return AFTER_BLAME[verdict.blame]
    if failed:
        family = next((family for family in AFTER_FAMILY if family in (failed.reason or "")), None)
        more = f" {AFTER_FAMILY[family]}" if family else ""
        return AFTER_RUNG.get(failed.name, "Mend what the reason names.") + more
    roof = verdict.roofline
    if roof is None:
        return "It is right as far as it was asked. Its speed was not measured here."
    if goal and roof.attained >= goal.attained:
        return "The goal is reached."
    return AFTER_LIMITER[roof.limiter]
