"""The report's first words: what was verified, how sure that is, and what was left unasked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toprung.model.run import Attempt, Run
from toprung.model.verdict import Verdict
from toprung.outputs import figures
from toprung.outputs.claims import Claim, main_claim, name_of
from toprung.outputs.text import one_line

Tone = Literal["good", "mixed", "bad", "quiet"]
REASON = 240
FASTER_BADGE, PASSED_BADGE, REFUTED_BADGE = "Verified and faster", "Verified", "Refuted"


@dataclass(frozen=True)
class Story:
    """A badge, one sentence, and a few more on how sure it is."""

    badge: str
    tone: Tone
    headline: str
    sure: tuple[str, ...]
    warning: str | None = None


def main_attempt(run: Run) -> Attempt | None:
    """The attempt that a report is about: the best, or the one that got furthest."""
    judged = [attempt for attempt in run.attempts if attempt.verdict]
    return run.best or max(judged, key=_height, default=None)


def _height(attempt: Attempt) -> tuple[bool, int]:
    verdict = attempt.verdict
    assert verdict is not None
    passed = sum(rung.status == "passed" for rung in verdict.rungs)
    return verdict.outcome == "passed", passed


def tell(run: Run, *, single: bool = False) -> Story:
    """The story of a run, or of a `single` verdict."""
    main = main_attempt(run)
    task = one_line(run.task.name, 80)
    if main is None or main.verdict is None:
        return _nothing_yet(run, task)
    verdict = main.verdict
    if verdict.outcome == "passed":
        story = _passed(verdict, task)
    else:
        story = _failed(run, verdict, task, single=single)
    seeded = (
        "The judge's secrets were fixed with --seed, for debugging: this proves nothing to others."
    )
    return story if verdict.seed is None else _with(story, seeded)


def _with(story: Story, warning: str) -> Story:
    return Story(story.badge, "mixed", story.headline, story.sure, warning)


def _nothing_yet(run: Run, task: str) -> Story:
    if run.attempts:
        said = "Its first candidate has no verdict yet: it is being judged, or the run was killed."
        return Story("No verdict yet", "quiet", f"Nothing is known of {task} yet.", (said,))
    said = one_line(run.message, REASON) or "The run has no attempts."
    return Story("No attempts", "quiet", f"Nothing has been tried on {task}.", (said,))


def _passed(verdict: Verdict, task: str) -> Story:
    if not any(rung.name == "correct" and rung.status == "passed" for rung in verdict.rungs):
        headline = (
            f"A kernel for {task} passed up to {verdict.height}; its results are not checked."
        )
        return Story("Not verified", "quiet", headline, tuple(_unasked(verdict)))
    measured = verdict.measurement
    claimed = main_claim(measured) if measured else None
    sure = [_climbed(verdict)]
    if measured is None:
        headline = f"A kernel for {task} is right as far as it was asked; its speed is not known."
        return Story(PASSED_BADGE, "mixed", headline, (*sure, *_unasked(verdict)))
    if claimed is None:
        headline = f"A verified kernel computes {task} in {figures.time_us(measured.median_us)}."
        badge, tone = PASSED_BADGE, "good"
    else:
        badge, tone, headline = _compared(claimed, task)
        sure.append(_how_sure(claimed))
    if verdict.roofline:
        roof = verdict.roofline
        sure.append(
            f"It attains {figures.percent(roof.attained)} of the roofline, which {roof.limiter} sets."
        )
    return Story(badge, tone, headline, (*sure, *_unasked(verdict)))


def _compared(claimed: Claim, task: str) -> tuple[str, Tone, str]:
    times, other = figures.times(claimed.speedup.ratio), name_of(claimed.baseline)
    if claimed.faster:
        return (
            FASTER_BADGE,
            "good",
            f"A verified kernel computes {task} {times} as fast as {other}.",
        )
    if claimed.word == "faster":
        headline = f"A verified kernel computes {task}, at first sight {times} as fast as {other}."
        return "Verified, speed unconfirmed", "mixed", headline
    low, high = (figures.digits(end) for end in claimed.speedup.ci)
    headline = {
        "slower": f"A verified kernel computes {task}, but more slowly than {other}.",
        "no difference can be told": f"A verified kernel computes {task}. Whether it is faster than "
        f"{other} is not known: {low} to {high} times as fast.",
    }[claimed.word]
    return PASSED_BADGE, "mixed", headline


def _how_sure(claimed: Claim) -> str:
    low, high = (figures.digits(end) for end in claimed.speedup.ci)
    if claimed.confirmed:
        return (
            f"Fresh paired rounds over several processes put that between {low} and {high} times."
        )
    return (
        f"That is from screening alone ({low} to {high} times); no paired rounds have confirmed it."
    )


def _climbed(verdict: Verdict) -> str:
    held_out = sum(case.held_out and case.outcome == "passed" for case in verdict.cases)
    also = f", {figures.plural(held_out, 'held-out case')} included" if held_out else ""
    passed = {rung.name for rung in verdict.rungs if rung.status == "passed"}
    said = [f"It gives right results on secret inputs{also}"]
    if "honest" in passed:
        said.append("it computes them afresh in every call")
    if "bench" in passed:
        said.append("every timed call was checked")
    return f"{', and '.join([', '.join(said[:-1]), said[-1]] if said[1:] else said)}."


def _unasked(verdict: Verdict) -> list[str]:
    """Which rungs were not asked, together with the reason that they share."""
    groups: dict[str, list[str]] = {}
    for rung in verdict.rungs:
        if rung.status in ("skipped", "not_reached"):
            reason = one_line(rung.reason or "", 120)
            known = "" if reason.startswith("not asked") else reason
            groups.setdefault(known, []).append(one_line(rung.name, 40))
    said = [f"{', '.join(names)}{f' ({why})' if why else ''}" for why, names in groups.items()]
    return [f"Not asked: {'; '.join(said)}."] if said else []


def _failed(run: Run, verdict: Verdict, task: str, *, single: bool) -> Story:
    failed = verdict.failed_rung
    where = failed.name if failed else "a rung that this machine cannot ask"
    reason = one_line(failed.reason or "", REASON) if failed else ""
    if verdict.outcome == "errored":
        headline = f"No verdict on {task}: the {verdict.blame} failed at {where}."
        sure = (reason, "That is not the candidate's fault, and spends no attempt.")
        return Story("Not judged", "quiet", headline, tuple(s for s in sure if s))
    if single:
        headline = f"The kernel for {task} is refuted at {where}."
        return Story(REFUTED_BADGE, "bad", headline, (f"Reason: {reason}",))
    refuted = sum(1 for a in run.attempts if a.verdict and a.verdict.outcome == "refuted")
    headline = (
        f"The only candidate for {task} is refuted."
        if refuted == 1
        else f"None of {refuted} candidates for {task} passed."
    )
    return Story(REFUTED_BADGE, "bad", headline, (f"The furthest got to {where}: {reason}",))
