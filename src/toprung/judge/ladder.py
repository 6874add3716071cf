"""The ladder: rungs asked in order, until one refutes. One climb makes one verdict."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points

from toprung.errors import (
    Blame,
    Refuted,
    ToprungError,
    Unavailable,
    UsageError,
    blame_of,
)
from toprung.model.environment import Environment
from toprung.model.verdict import (
    NEEDS,
    RUNGS,
    CandidateRef,
    CaseResult,
    Outcome,
    RungName,
    RungResult,
    TaskRef,
    Verdict,
)

from .rungs import bench, compile, correct, honest, plausible, roofline, run, static
from .rungs.base import Rung
from .rungs.mean import mean_measurement, mean_roofline
from .rungs.subject import Subject

_MODULES = {
    "static": static,
    "compile": compile,
    "run": run,
    "correct": correct,
    "honest": honest,
    "bench": bench,
    "plausible": plausible,
    "roofline": roofline,
}

RUNG_TABLE: tuple[Rung, ...] = tuple(
    Rung(name, module.check, module.QUESTION, module.REFUTES, module.FACTS)
    for name, module in _MODULES.items()
)
"""The rungs that this version can ask, bottom first."""

GROUP = "toprung.rungs"

Progress = Callable[[RungResult], None]


def user_rungs() -> list[Rung]:
    """Rungs that installed packages offer."""
    return [point.load() for point in entry_points(group=GROUP)]


def check_upto(upto: RungName | None, extra: Sequence[RungName], own: Sequence[Rung] = ()) -> None:
    """Raise for a rung that does not exist, or that this version cannot ask."""
    here = [r.name for r in RUNG_TABLE]
    known = [*RUNGS, *(r.name for r in own)]
    for name in [*([upto] if upto else []), *extra]:
        if name not in known:
            raise UsageError(f"no rung is called {name!r}", hint=f"choose among {', '.join(known)}")
        if name in RUNGS and name not in here:
            raise Unavailable(
                f"the rung {name!r} cannot be asked by this version",
                hint=f"it asks {', '.join(here)}",
            )


def rungs_for(subject: Subject, own: Sequence[Rung]) -> list[Rung]:
    """The rungs of this climb, in order: built-in ones up to `--upto`, users' where they belong."""
    order: list[Rung] = []
    for built_in in RUNG_TABLE:
        order.append(built_in)
        order += [r for r in own if r.after == built_in.name]
        if subject.options.upto == built_in.name:
            break
    return order


def climb(
    subject: Subject,
    environment: Callable[[Subject], Environment],
    own: Sequence[Rung] = (),
    progress: Progress | None = None,
) -> Verdict:
    """Ask rung after rung. Never raises for what a candidate, a task or a device does."""
    asked = rungs_for(subject, own)
    results = {name: RungResult(name=name) for name in _all_names(asked)}
    outcome: Outcome = "passed"
    blame: Blame | None = None
    try:
        for rung in asked:
            result, blame = _without_its_need(rung, results), None
            if result is None:
                result, blame = _ask(rung, subject)
            results[rung.name] = result
            if progress:
                progress(result)
            if result.status in ("refuted", "errored"):
                outcome = result.status
                break
        verdict_environment = environment(subject)
    finally:
        subject.close()
    return _verdict(subject, outcome, blame, results, verdict_environment)


def _all_names(asked: list[Rung]) -> list[RungName]:
    """Every built-in rung, with the users' rungs where they were asked."""
    names = list(RUNGS)
    for rung in asked:
        if rung.after:
            names.insert(names.index(rung.after) + 1, rung.name)
    return names


def _without_its_need(rung: Rung, results: dict[RungName, RungResult]) -> RungResult | None:
    """Skipped, when the rung that it stands on was skipped."""
    need = NEEDS.get(rung.name, "")
    if need not in results or results[need].status != "skipped":
        return None
    return RungResult(name=rung.name, status="skipped", reason=f"{need} was skipped")


def _ask(rung: Rung, subject: Subject) -> tuple[RungResult, Blame | None]:
    """One rung's result, and who is to blame when it did not pass."""
    start = time.monotonic()

    def result(status: str, **more: object) -> RungResult:
        seconds = round(time.monotonic() - start, 4)
        return RungResult.model_validate(
            {"name": rung.name, "status": status, "seconds": seconds, **more}
        )

    try:
        return result("passed", facts=rung.check(subject)), None
    except Unavailable as missing:
        required = subject.options.upto is not None or rung.name == "static"
        status, blame = ("errored", "device") if required else ("skipped", None)
        return result(status, reason=_reason(missing)), blame
    except Refuted as wrong:
        return result(
            "refuted", reason=_reason(wrong), traceback=wrong.details, facts=wrong.facts
        ), "candidate"
    except ToprungError as failed:
        return result("errored", reason=_reason(failed), traceback=failed.details), blame_of(failed)
    except Exception as broken:
        text = traceback.format_exc()
        if rung.after:  # a user's rung refutes by any exception
            reason = f"{type(broken).__name__}: {broken}"
            return result("refuted", reason=reason, traceback=text), "candidate"
        reason = f"toprung failed: {type(broken).__name__}: {broken}"
        return result("errored", reason=reason, traceback=text), "harness"


def _reason(error: ToprungError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def _verdict(
    subject: Subject,
    outcome: Outcome,
    blame: Blame | None,
    results: dict[RungName, RungResult],
    environment: Environment,
) -> Verdict:
    benched = results["bench"].status == "passed"
    roofed = results["roofline"].status == "passed"
    figures = list(subject.figures.values())
    return Verdict(
        task=TaskRef(name=subject.task.name, digest=subject.task.digest),
        candidate=CandidateRef(
            digest=subject.candidate.digest,
            dsl=subject.dsl or None,
            entry=_entry(results["compile"]),
            labels=tuple(subject.labels),
        ),
        target=subject.options.target,
        outcome=outcome,
        blame=blame,
        rungs=tuple(results.values()),
        measurement=mean_measurement([f.measurement for f in figures]) if benched else None,
        roofline=mean_roofline([f.roofline for f in figures if f.roofline]) if roofed else None,
        cases=tuple(_cases(subject, outcome, benched=benched, roofed=roofed)),
        environment=environment,
        seed=subject.options.seed,
    )


def _entry(compiled: RungResult) -> str | None:
    entry = compiled.facts.get("entry")
    return entry if isinstance(entry, str) else None


def _cases(subject: Subject, outcome: Outcome, *, benched: bool, roofed: bool) -> list[CaseResult]:
    found = []
    for case in subject.task.cases:
        if not case.fits(subject.options.target):
            continue
        own: Outcome | None = None
        if case.name == subject.failed_case:
            own = "refuted"
        elif case.name in subject.passed_cases:
            own = "passed" if outcome == "passed" or subject.failed_case else None
        figures = subject.figures.get(case.name)
        found.append(
            CaseResult(
                name=case.name,
                held_out=case.held_out,
                outcome=own,
                measurement=figures.measurement if figures and benched else None,
                roofline=figures.roofline if figures and roofed else None,
            )
        )
    return found
