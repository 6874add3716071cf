"""Tables of a report: what each rung left, errors by input family, times beside baselines."""

from __future__ import annotations

from dataclasses import dataclass

from toprung.model.measurement import Measurement
from toprung.model.run import Attempt
from toprung.model.task import FAMILIES
from toprung.model.verdict import RungResult, Verdict
from toprung.outputs import figures
from toprung.outputs.claims import claim, name_of
from toprung.outputs.shown import shown
from toprung.outputs.text import clean, cut, one_line
from toprung.outputs.traces import trimmed

from .source import SourceFile, source_files

PASSED_WORDS = {
    "static": "It parses and has an entry",
    "compile": "It compiles for the target",
    "run": "A call returns the right kind of thing",
    "correct": "It is right on inputs nobody could guess",
    "honest": "It computes, every time, what it seems to",
    "sanitize": "No memory error and no race was found",
    "bench": "It was timed, and every timed call was right",
    "plausible": "Its time can be true",
    "profile": "Its counters were read",
    "roofline": "Its distance from the roof is known",
}
SIGNS = {"passed": "✓", "refuted": "✕", "errored": "!", "skipped": "–", "not_reached": ""}
METRICS = {
    "strict": "of what strict allows",
    "kernelbench": "of what kernelbench allows",
    "max_abs": "max abs",
    "max_rel": "max rel",
    "mae": "MAE",
    "mse": "MSE",
    "rmse": "RMSE",
    "reference_error": "the reference's RMSE",
    "error_ratio": "RMSE beside it",
    "psnr": "PSNR, dB",
    "cosine": "cosine",
}
SHARES = ("strict", "kernelbench")
"""Metrics that are shares of a limit."""
LEAST_SHARE = 1e-3
TRACE_LINES = 60
TEXT_LENGTH = 6000
REASON_LENGTH = 900
FACT_LENGTH = 300
MOST_FACTS = 80
ATTEMPT_LINES = 600
"""Of each attempt's source: a run may have hundreds."""


@dataclass(frozen=True)
class RungRow:
    """A rung as the page shows it."""

    name: str
    status: str
    sign: str
    said: str
    seconds: str
    facts: tuple[tuple[str, str], ...]
    traceback: str


@dataclass(frozen=True)
class ErrorTable:
    """Errors of one case: a row for each input family, a column for each metric."""

    case: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[tuple[str, str], ...]
    """Families that were skipped, and why."""


@dataclass(frozen=True)
class TimeRow:
    """A time, its interval, and what may be said beside the kernel."""

    name: str
    median: str
    interval: str
    speedup: str = ""
    said: str = ""


@dataclass(frozen=True)
class AttemptRow:
    """An attempt as the page shows it, folded or not."""

    index: int
    outcome: str
    kept: bool
    said: str
    median: str
    seconds: str
    author: str
    note: str
    digest: str
    parent: str
    rungs: tuple[RungRow, ...]
    files: tuple[SourceFile, ...]


def rung_rows(verdict: Verdict) -> tuple[RungRow, ...]:
    """Every rung, bottom first."""
    missed = "not asked" if verdict.outcome == "passed" else "not reached"
    return tuple(_rung_row(rung, missed) for rung in shown(verdict).rungs)


def _rung_row(rung: RungResult, missed: str) -> RungRow:
    told = [(n, v) for n, v in rung.facts.items() if rung.name != "correct" or not _family(n)]
    facts = [(one_line(n, 80), one_line(figures.fact(n, v), FACT_LENGTH)) for n, v in told]
    fallback = PASSED_WORDS.get(rung.name, "It passed") if rung.status == "passed" else missed
    return RungRow(
        name=one_line(rung.name, 40),
        status=rung.status,
        sign=SIGNS[rung.status],
        said=one_line(rung.reason or "", REASON_LENGTH) or fallback,
        seconds=figures.seconds(rung.seconds) if rung.seconds else "",
        facts=tuple(facts[:MOST_FACTS]),
        traceback=cut("\n".join(trimmed(rung.traceback or "", TRACE_LINES)), TEXT_LENGTH, "tail"),
    )


def _family(fact: str) -> tuple[str, str, str] | None:
    """Case, family and metric of a fact `case/family.metric`; the case may be missing."""
    case, _, rest = fact.rpartition("/")
    family, _, metric = rest.partition(".")
    return (case, family, metric) if metric and family in FAMILIES else None


def error_tables(verdict: Verdict) -> list[ErrorTable]:
    """Errors by case and input family, from the facts of `correct`, as far as it got."""
    correct = next((rung for rung in shown(verdict).rungs if rung.name == "correct"), None)
    cases: dict[str, dict[str, dict[str, object]]] = {}
    for fact, value in (correct.facts if correct else {}).items():
        found = _family(fact)
        if found:
            case, family, metric = found
            cases.setdefault(case, {}).setdefault(family, {})[metric] = value
    return [_error_table(case, families) for case, families in cases.items()]


def _error_table(case: str, families: dict[str, dict[str, object]]) -> ErrorTable:
    skipped = {f: str(m["skipped"]) for f, m in families.items() if "skipped" in m}
    measured = {f: m for f, m in families.items() if f not in skipped}
    seen = {metric for metrics in measured.values() for metric in metrics}
    columns = [m for m in METRICS if m in seen] + sorted(seen - set(METRICS))
    return ErrorTable(
        case=one_line(case, 60),
        columns=tuple(METRICS.get(m, m.replace("_", " ")) for m in columns),
        rows=tuple(
            (f.replace("_", " "), tuple(_metric(m, metrics.get(m)) for m in columns))
            for f, metrics in measured.items()
        ),
        notes=tuple((f.replace("_", " "), one_line(why, 200)) for f, why in skipped.items()),
    )


def _metric(name: str, value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float) and name in SHARES:
        return _share(value)
    if isinstance(value, float) and name not in ("psnr", "cosine"):
        return figures.digits(value, 2)
    return one_line(figures.fact(name, value), 40)


def _share(value: float) -> str:
    if value >= 10:
        return figures.times(value)
    return figures.percent(value) if value >= LEAST_SHARE else "<0.1%"


def time_rows(measured: Measurement) -> list[TimeRow]:
    """The kernel first, then every baseline with what may be said of the speed-up."""
    rows = [
        TimeRow("this kernel", figures.time_us(measured.median_us), figures.interval_us(measured))
    ]
    for name, timing in measured.baselines.items():
        claimed = claim(measured, name)
        speedup = said = ""
        if claimed:
            interval = figures.times_interval(claimed.speedup)
            speedup = f"{figures.times(claimed.speedup.ratio)} ({interval})"
            said = claimed.word + ("" if claimed.confirmed else ", by screening alone")
        times = figures.time_us(timing.median_us), figures.interval_us(timing)
        rows.append(TimeRow(one_line(name_of(name), 40), *times, speedup, said))
    return rows


def attempt_row(attempt: Attempt) -> AttemptRow:
    """One attempt with its ladder and its source."""
    verdict, proposal = attempt.verdict, attempt.proposal
    measured = verdict.measurement if verdict else None
    return AttemptRow(
        index=attempt.index,
        outcome=verdict.outcome if verdict else "waiting",
        kept=attempt.kept,
        said=attempt_said(attempt),
        median=figures.time_us(measured.median_us) if measured else "",
        seconds=figures.seconds(attempt.seconds) if attempt.seconds else "",
        author=one_line(proposal.author, 80),
        note=clean(proposal.note, REASON_LENGTH),
        digest=proposal.candidate.digest[:12],
        parent=one_line(proposal.parent or "", 12),
        rungs=rung_rows(verdict) if verdict else (),
        files=tuple(source_files(proposal.candidate, ATTEMPT_LINES)),
    )


def attempt_said(attempt: Attempt) -> str:
    """What became of an attempt, in a few words."""
    if attempt.verdict is None:
        return "no verdict: in flight, or cut off"
    verdict = shown(attempt.verdict)
    failed = verdict.failed_rung
    if failed:
        return f"{verdict.outcome} at {one_line(failed.name, 40)}: {one_line(failed.reason or '', 160)}"
    if verdict.outcome == "errored":
        return "a rung that was required cannot be asked on this machine"
    return "passed, kept as the best" if attempt.kept else f"passed up to {verdict.height}"
