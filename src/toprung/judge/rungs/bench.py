"""How fast is it, beside what?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from toprung.errors import Refuted, Unavailable
from toprung.judge.clock.statistics import drift, sample_count
from toprung.judge.oracle.values import CaseSpec
from toprung.judge.sandbox.session import Session
from toprung.judge.timing.baselines import NAMES, baseline
from toprung.judge.timing.calibration import Calibration, calibrate
from toprung.judge.timing.confirmation import Paired, confirm
from toprung.judge.timing.samples import Samples, sample
from toprung.model.candidate import Candidate
from toprung.model.measurement import Measurement, Speedup, Timing
from toprung.model.value import digest_of

from .base import Facts
from .subject import CaseFigures, Subject

QUESTION = "How fast is it, beside what?"
REFUTES = "a wrong output of any timed call, more memory than the task allows"
FACTS = "raw samples, median and interval, busy and wall time, memory peak, baselines, speed-ups"

CONFIRMED = "eager"
"""The baseline that fresh paired rounds are run against."""

BUILD_S = 120.0


@dataclass(frozen=True)
class Plan:
    """How one case is timed; fixed before the candidate is called."""

    index: int
    case: CaseSpec
    count: int
    calibration: Calibration


def check(subject: Subject) -> Facts:
    """Time the candidate and its baselines on every open case, then confirm."""
    facts: Facts = {"cache": "cold", "clock": "monotonic"}
    plans = [plan_case(subject, index, case) for index, case in subject.timed_cases]
    if not plans:
        raise Unavailable(f"no open case of this task is timed on {subject.options.target}")
    peaks: dict[str, int] = {}
    own = _own_samples(subject, plans, peaks)
    others = {
        name: timings
        for name in _wanted(subject)
        if (timings := _baseline(subject, name, plans, facts))
    }
    paired = _confirm(subject, plans) if subject.options.confirm and CONFIRMED in others else {}
    for plan in plans:
        name = plan.case.name
        baselines = {other: timings[name] for other, timings in others.items()}
        measurement = _measurement(own[name], baselines, paired.get(plan.index), peaks[name])
        subject.figures[name] = CaseFigures(plan.calibration, own[name], measurement)
        prefix = "" if len(plans) == 1 else f"{name}/"
        said = _said(plan, own[name], paired.get(plan.index))
        facts |= {f"{prefix}{key}": value for key, value in said.items()}
    return facts


def plan_case(subject: Subject, index: int, case: CaseSpec) -> Plan:
    """Calibrate the clock on a case, and fix how often it is called."""
    subject.remaining()
    calibration = calibrate(
        subject.exchange, index, lambda: subject.services.start(subject.candidate, "null")
    )
    return Plan(index, case, sample_count(case.reference_us), calibration)


def _own_samples(subject: Subject, plans: list[Plan], peaks: dict[str, int]) -> dict[str, Samples]:
    """The candidate's samples by case; `peaks` gets the memory it took beyond what it held."""
    found: dict[str, Samples] = {}
    process = subject.live.process
    for plan in plans:
        process.reset_peak()
        rest, _ = process.memory()
        with subject.on(plan.case):
            found[plan.case.name] = sample_case(subject, subject.live, plan)
            _, peak = process.memory()
            peaks[plan.case.name] = max(0, peak - rest)
            _hold_to(subject.task.objective.max_peak_bytes, peaks[plan.case.name])
    return found


def _hold_to(limit: int, peak: int) -> None:
    """Raise where a task limits memory and a call took more of it."""
    if limit and peak > limit:
        raise Refuted(
            f"a call takes {peak} bytes beyond what it holds; this task allows {limit}",
            hint="use fewer or smaller temporaries",
        )


def sample_case(
    subject: Subject, session: Session, plan: Plan, *, trusted: bool = False
) -> Samples:
    """Time `session` as planned; of `trusted` code fewer outputs are checked."""
    return sample(
        subject.exchange,
        session,
        plan.index,
        plan.count,
        plan.calibration,
        subject.services.cores,
        subject.remaining,
        trusted=trusted,
    )


def _wanted(subject: Subject) -> Iterable[str]:
    return [name for name in NAMES if name in (*subject.options.baselines, "vendor")]


def _baseline(
    subject: Subject, name: str, plans: list[Plan], facts: Facts
) -> dict[str, Timing] | None:
    """Timings of a baseline by case, remembered ones where all are; `facts` say what is missing."""
    other = baseline(subject.task, name)
    if other is None:
        return None
    services, options = subject.services, subject.options
    keys = {
        plan.case.name: digest_of(
            [subject.task.digest, plan.case.name, name, services.device, options.target]
        )
        for plan in plans
    }
    known = {case: services.recall(key) for case, key in keys.items()}
    if all(value is not None for value in known.values()):
        return {case: Timing.model_validate(value) for case, value in known.items()}
    try:
        session = _bring_up(subject, other)
        try:
            found = {
                plan.case.name: sample_case(subject, session, plan, trusted=True) for plan in plans
            }
        finally:
            session.close()
    except Refuted as broken:
        facts[f"{name}_missing"] = broken.message
        return None
    for case, samples in found.items():
        if samples.steady:
            services.remember(keys[case], samples.timing.to_dict())
    return {case: samples.timing for case, samples in found.items()}


def _bring_up(subject: Subject, candidate: Candidate) -> Session:
    """A fresh process with `candidate` loaded, built and frozen, ready to be called."""
    dsl = candidate.dsl or subject.dsl
    session = subject.services.start(candidate, dsl)
    try:
        limit = min(BUILD_S, subject.remaining())
        session.load(candidate, dsl, subject.options.target, limit)
        subject.exchange.bring_up(session, subject.task.train, limit)
    except BaseException:
        session.close()
        raise
    return session


def _confirm(subject: Subject, plans: list[Plan]) -> dict[int, Paired]:
    other = baseline(subject.task, CONFIRMED)
    assert other is not None
    return confirm(
        subject.exchange,
        {plan.index: plan.calibration for plan in plans},
        lambda: _bring_up(subject, other),
        lambda: _bring_up(subject, subject.candidate),
        subject.remaining,
    )


def _measurement(
    samples: Samples, baselines: dict[str, Timing], paired: Paired | None, peak_bytes: int
) -> Measurement:
    timing, shown = samples.timing, samples.credited_us
    speedup = {name: _screened(other, timing) for name, other in baselines.items()}
    if paired:  # what many processes say stands before what one said
        speedup[CONFIRMED] = paired.speedup
        confirmed, timing = paired.timings
        baselines = {**baselines, CONFIRMED: confirmed}
        shown = [us for process in paired.candidate_us for us in process]
    return Measurement(
        **timing.model_dump(),
        busy_us=min(median(samples.busy_us), timing.median_us),
        wall_us=samples.wall_us,
        resolution_us=samples.calibration.resolution_us,
        samples_us=tuple(shown),
        clock="monotonic",
        cache="cold",
        confirmed=paired is not None,
        peak_bytes=peak_bytes,
        baselines=baselines,
        speedup=speedup,
    )


def _said(plan: Plan, samples: Samples, paired: Paired | None) -> Facts:
    said: Facts = {"samples": plan.count, "drift": drift(samples.credited_us)}
    if paired:
        said["confirmed_over"] = len(paired.candidate_us)
        said["paired_baseline_us"] = [round(median(us), 2) for us in paired.baseline_us]
        said["paired_candidate_us"] = [round(median(us), 2) for us in paired.candidate_us]
    return said


def _screened(other: Timing, own: Timing) -> Speedup:
    """The ratio of two medians from one process each; its interval is the widest they allow.

    Where an interval of a time reaches zero, a hundredth of the median stands for its end.
    """
    least = 1e-3  # a nanosecond
    low, high = max(own.ci_us[0], own.median_us / 100, least), max(own.ci_us[1], least)
    ratio = max(other.median_us, least) / max(own.median_us, least)
    slowest = max(other.ci_us[0], other.median_us / 100, least) / high
    return Speedup(ratio=ratio, ci=(min(slowest, ratio), max(other.ci_us[1] / low, ratio)))
