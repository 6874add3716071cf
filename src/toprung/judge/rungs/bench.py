"""How fast is it, beside what?"""

from __future__ import annotations

from statistics import median
from typing import cast

from toprung.errors import Refuted
from toprung.judge.clock.statistics import drift, sample_count
from toprung.judge.oracle.values import CaseSpec
from toprung.judge.sandbox.session import Session
from toprung.judge.timing.baselines import NAMES, baseline
from toprung.judge.timing.calibration import Calibration, calibrate
from toprung.judge.timing.confirmation import confirm
from toprung.judge.timing.samples import Samples, sample
from toprung.model.candidate import Candidate
from toprung.model.measurement import Measurement, Speedup, Timing
from toprung.model.value import digest_of

from .base import Facts
from .subject import CaseFigures, Subject

QUESTION = "How fast is it, beside what?"
REFUTES = "a wrong output of any timed call"
FACTS = "raw samples, median and interval, busy and wall time, memory peak, baselines, speed-ups"

CONFIRMED = "eager"
"""The baseline that fresh paired rounds are run against."""


def check(subject: Subject) -> Facts:
    """Time the candidate and its baselines on every open case, then confirm."""
    facts: Facts = {"cache": "cold", "clock": "monotonic"}
    for index, case in subject.open_cases:
        prefix = "" if len(subject.open_cases) == 1 else f"{case.name}."
        with subject.on(case):
            figures, said = _case(subject, index, case)
        subject.figures[case.name] = figures
        facts |= {f"{prefix}{name}": value for name, value in said.items()}
    return facts


def _case(subject: Subject, index: int, case: CaseSpec) -> tuple[CaseFigures, Facts]:
    count = sample_count(case.reference_us)
    calibration = calibrate(
        subject.exchange, index, lambda: subject.services.start(subject.candidate, "null")
    )
    process = subject.live.process
    process.reset_peak()
    rest, _ = process.memory()
    samples = _sample(subject, subject.live, index, count, calibration)
    _, peak = process.memory()
    facts: Facts = {"samples": count, "drift": drift(samples.credited_us)}
    baselines = _baselines(subject, index, case, count, calibration, facts)
    speedup = {name: _screened(baselines[name], samples.timing) for name in baselines}
    confirmed = False
    if subject.options.confirm and CONFIRMED in baselines:
        speedup[CONFIRMED] = _confirmed(subject, index, calibration, facts)
        confirmed = True
    measurement = Measurement(
        **samples.timing.model_dump(),
        busy_us=min(median(samples.busy_us), samples.timing.median_us),
        wall_us=samples.wall_us,
        resolution_us=calibration.resolution_us,
        samples_us=tuple(samples.credited_us),
        clock="monotonic",
        cache="cold",
        confirmed=confirmed,
        peak_bytes=max(0, peak - rest),
        baselines=baselines,
        speedup=speedup,
    )
    return CaseFigures(calibration, samples, measurement), facts


def _sample(
    subject: Subject, session: Session, index: int, count: int, calibration: Calibration
) -> Samples:
    subject.remaining()
    return sample(subject.exchange, session, index, count, calibration, subject.services.cores)


def _baselines(
    subject: Subject,
    index: int,
    case: CaseSpec,
    count: int,
    calibration: Calibration,
    facts: Facts,
) -> dict[str, Timing]:
    """Timings of every baseline that was asked for; what cannot be timed says why in `facts`."""
    wanted = [name for name in NAMES if name in (*subject.options.baselines, "vendor")]
    found: dict[str, Timing] = {}
    for name in wanted:
        other = baseline(subject.task, name)
        if other is None:
            continue
        key = digest_of(
            [subject.task.digest, case.name, name, subject.services.device, subject.options.target]
        )
        known = subject.services.recall(key)
        if known is not None:
            found[name] = Timing.model_validate(known)
            continue
        try:
            session = _bring_up(subject, other)
        except Refuted as broken:
            facts[f"{name}_missing"] = broken.message
            continue
        try:
            found[name] = _sample(subject, session, index, count, calibration).timing
            subject.services.remember(key, found[name].to_dict())
        except Refuted as broken:
            facts[f"{name}_missing"] = broken.message
        finally:
            session.close()
    return found


def _bring_up(subject: Subject, candidate: Candidate) -> Session:
    """A fresh process with `candidate` loaded, built and frozen, ready to be called."""
    dsl = candidate.dsl or subject.dsl
    session = subject.services.start(candidate, dsl)
    try:
        limit = min(120.0, subject.remaining())
        session.load(candidate, dsl, subject.options.target, limit)
        subject.exchange.bring_up(session, subject.task.train, limit)
    except BaseException:
        session.close()
        raise
    return session


def _confirmed(subject: Subject, index: int, calibration: Calibration, facts: Facts) -> Speedup:
    other = cast("Candidate", baseline(subject.task, CONFIRMED))
    result = confirm(
        subject.exchange,
        index,
        lambda: _bring_up(subject, other),
        lambda: _bring_up(subject, subject.candidate),
        calibration,
    )
    facts["confirmed_over"] = len(result.candidate_us)
    facts["paired_baseline_us"] = [round(median(times), 2) for times in result.baseline_us]
    facts["paired_candidate_us"] = [round(median(times), 2) for times in result.candidate_us]
    return result.speedup


def _screened(other: Timing, own: Timing) -> Speedup:
    """The ratio of two medians from one process each; its interval is the widest they allow."""
    tiny = 1e-3  # a nanosecond, where an interval that includes the resolution reaches zero
    low, high = other.ci_us[0] / own.ci_us[1], other.ci_us[1] / max(own.ci_us[0], tiny)
    ratio = other.median_us / max(own.median_us, tiny)
    return Speedup(ratio=max(ratio, 1e-9), ci=(max(min(low, ratio), 1e-9), max(high, ratio, 1e-9)))
