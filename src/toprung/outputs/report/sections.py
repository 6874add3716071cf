"""What the sections of a page show, worked out from a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from toprung.model.measurement import Measurement
from toprung.model.roofline import Roofline
from toprung.model.run import Attempt, Run
from toprung.model.verdict import RUNGS, CaseResult, Verdict
from toprung.outputs import figures
from toprung.outputs.claims import main_claim, name_of
from toprung.outputs.shown import shown
from toprung.outputs.text import one_line

from .history import Kind, Mark, history_chart
from .roofline import Point, Roofs, roofline_chart
from .tables import TimeRow, attempt_said, time_rows
from .timing import sample_chart, timing_chart

NAME = 60
MOST_BLOCKS = 12


@dataclass(frozen=True)
class Tile:
    """A figure that stands out: what it is, the figure, and how sure it is."""

    name: str
    figure: str
    note: str


@dataclass(frozen=True)
class TimingBlock:
    """The times of one case, or of all of them together."""

    case: str
    chart: Markup
    samples: Markup | None
    rows: list[TimeRow]
    measured: Measurement
    notes: str


@dataclass(frozen=True)
class CaseRow:
    """A case; a held-out one has no figures."""

    name: str
    held_out: bool
    outcome: str
    median: str
    speedup: str
    bound: str
    attained: str


@dataclass(frozen=True)
class RooflineBlock:
    """The plot, where flops were counted, and one sentence."""

    chart: Markup | None
    said: str


def header_facts(run: Run, verdict: Verdict | None, *, single: bool) -> list[tuple[str, str]]:
    """The small print under the headline."""
    device = verdict.environment.device if verdict else ""
    facts = [("device", device), ("target", run.target)]
    if run.created:
        facts.append(("begun", run.created[:16].replace("T", " ") + " UTC"))
    if not single:
        ceilings = {"attempts": "attempts", "minutes": "minutes", "usd": "US dollars"}
        budget = [
            f"{getattr(run.budget, name):g} {unit}"
            for name, unit in ceilings.items()
            if getattr(run.budget, name) is not None
        ]
        facts += [
            ("proposer", f"{run.proposer}, {run.strategy}"),
            ("budget", ", ".join(budget) or "none"),
            ("ended", run.reason or "not yet: going on, or killed"),
            ("run", run.id),
        ]
    return [(name, one_line(value, 120)) for name, value in facts if value]


def tiles(run: Run, verdict: Verdict | None) -> list[Tile]:
    """The few figures that a reader looks for first."""
    found: list[Tile] = []
    measured = verdict.measurement if verdict else None
    if measured:
        note = f"{figures.interval_us(measured)}, {measured.cache} cache"
        found.append(Tile("time", figures.time_us(measured.median_us), note))
        claimed = main_claim(measured)
        if claimed:
            sure = claimed.word if claimed.confirmed else "by screening alone"
            note = f"{figures.times_interval(claimed.speedup)}, {sure}"
            over = f"over {one_line(name_of(claimed.baseline), 30)}"
            found.append(Tile(over, figures.times(claimed.speedup.ratio), note))
    if verdict and verdict.roofline:
        note = f"goal {figures.percent(run.goal.attained)}, set by {verdict.roofline.limiter}"
        found.append(Tile("of the roofline", figures.percent(verdict.roofline.attained), note))
    if len(run.attempts) > 1:
        judged = [a.verdict.outcome for a in run.attempts if a.verdict]
        note = f"{judged.count('passed')} passed, {judged.count('refuted')} refuted"
        if "errored" in judged:
            note += f", {judged.count('errored')} errored"
        found.append(Tile("attempts", str(len(run.attempts)), note))
    return found


def timing_blocks(verdict: Verdict) -> list[TimingBlock]:
    """All cases together first, then, where there are several, each open one."""
    if verdict.measurement is None:
        return []
    open_cases = [case for case in verdict.cases if case.measurement]
    whole = "all cases, geometric mean" if len(open_cases) > 1 else ""
    blocks = [_timing_block(whole, verdict.measurement)]
    if len(open_cases) > 1:
        blocks += [
            _timing_block(c.name, c.measurement) for c in open_cases[:MOST_BLOCKS] if c.measurement
        ]
    return blocks


def _timing_block(case: str, measured: Measurement) -> TimingBlock:
    names = {key: one_line(name_of(key), 40) for key in measured.baselines}
    notes = (
        f"{measured.cache} cache, {measured.clock} clock, resolution "
        f"{figures.time_us(measured.resolution_us)}; device busy for "
        f"{figures.time_us(measured.busy_us)}, seen from outside "
        f"{figures.time_us(measured.wall_us)}; {figures.size(measured.peak_bytes)} of memory at the peak"
    )
    samples = sample_chart(measured) if len(measured.samples_us) > 1 else None
    chart = timing_chart(measured, names)
    return TimingBlock(one_line(case, NAME), chart, samples, time_rows(measured), measured, notes)


def case_rows(verdict: Verdict) -> list[CaseRow]:
    """Every case, when there is more than one or one that is held out."""
    if len(verdict.cases) < 2:
        return []
    return [_case_row(case) for case in verdict.cases]


def _case_row(case: CaseResult) -> CaseRow:
    claimed = main_claim(case.measurement) if case.measurement else None
    return CaseRow(
        name=one_line(case.name, NAME),
        held_out=case.held_out,
        outcome=case.outcome or "not asked",
        median=figures.time_us(case.measurement.median_us) if case.measurement else "",
        speedup=figures.times(claimed.speedup.ratio) if claimed else "",
        bound=figures.time_us(case.roofline.bound_us) if case.roofline else "",
        attained=figures.percent(case.roofline.attained) if case.roofline else "",
    )


def roofline(run: Run, main: Attempt | None) -> RooflineBlock | None:
    """Every attempt that was measured, under the roofs of the device."""
    verdict = main.verdict if main else None
    if main is None or verdict is None or verdict.roofline is None:
        return None
    said = _bound_said(verdict, verdict.roofline)
    points = [p for a in run.attempts for p in _points(a, best=a is main)]
    roofs = _roofs(verdict)
    if not points:
        return RooflineBlock(None, said)
    return RooflineBlock(roofline_chart(points, roofs), said)


def _bound_said(verdict: Verdict, roof: Roofline) -> str:
    bound, attained = figures.time_us(roof.bound_us), figures.percent(roof.attained)
    several = sum(case.roofline is not None for case in verdict.cases)
    if several > 1:
        return (
            f"As geometric means over {several} cases: no less than {bound} on this device, set by "
            f"{roof.limiter} in most of them, and the kernel attains {attained} of its bounds."
        )
    return (
        f"The task moves at least {figures.size(roof.min_bytes)} and takes "
        f"{figures.count(roof.flops)} floating-point operations: no less than {bound} on this "
        f"device, set by {roof.limiter}. The kernel attains {attained} of that bound."
    )


def _points(attempt: Attempt, *, best: bool) -> Iterator[Point]:
    verdict = attempt.verdict
    if verdict is None or verdict.outcome != "passed":
        return
    each = [
        (c.name, c.measurement, c.roofline) for c in verdict.cases if c.measurement and c.roofline
    ]
    for case, measured, roof in each or [("", verdict.measurement, verdict.roofline)]:
        if (
            measured
            and roof
            and roof.flops
            and roof.min_bytes
            and roof.bound_us
            and measured.median_us
        ):
            name = one_line(case, NAME) if len(each) > 1 else ""
            yield _point(attempt.index, name, measured, roof, best=best)


def _point(index: int, case: str, measured: Measurement, roof: Roofline, *, best: bool) -> Point:
    attained = figures.percent(roof.attained)
    where = f", {case}" if case else ""
    return Point(
        intensity=roof.flops / roof.min_bytes,
        flops_per_s=roof.flops / measured.median_us * 1e6,
        bound_flops_per_s=roof.flops / roof.bound_us * 1e6,
        label=f"{attained}{where}" if best else "",
        tip=f"attempt {index}{where}: {figures.time_us(measured.median_us)}, {attained} of the bound",
        best=best,
    )


def _roofs(verdict: Verdict) -> Roofs:
    """The ceilings that the rung `roofline` says it used: facts in `…bytes_per_s`, `…flops_per_s`.

    Where it does not say, those that follow from the bounds of the cases.
    """
    found: dict[str, dict[tuple[str, float], None]] = {"bytes_per_s": {}, "flops_per_s": {}}
    for rung in shown(verdict).rungs:
        for fact, value in rung.facts.items() if rung.name == "roofline" else ():
            name = fact.rpartition("/")[2].rpartition(".")[2]
            for unit, roofs in found.items():
                if name.endswith(unit) and isinstance(value, int | float) and value > 0:
                    label = one_line(name.removesuffix(unit).strip("_").replace("_", " "), 30)
                    roofs[(label, float(value))] = None
    if not any(found.values()):
        return _implied_roofs([c.roofline for c in verdict.cases] or [verdict.roofline])
    return Roofs(tuple(found["bytes_per_s"]), tuple(found["flops_per_s"]))


def _implied_roofs(bounds: Sequence[Roofline | None]) -> Roofs:
    """A bound that memory sets is bytes over bandwidth, one that arithmetic sets is flops over rate."""
    rates: dict[str, set[float]] = {"memory": set(), "compute": set(), "latency": set()}
    for bound in bounds:
        if bound and bound.bound_us:
            moved = bound.min_bytes if bound.limiter == "memory" else bound.flops
            rates[bound.limiter].add(moved / bound.bound_us * 1e6)
    memory, compute = (sorted(rate for rate in rates[k] if rate) for k in ("memory", "compute"))
    return Roofs(tuple(("", rate) for rate in memory), tuple(("", rate) for rate in compute))


def history(run: Run) -> Markup:
    """Every attempt in order."""
    marks = [_mark(attempt) for attempt in run.attempts]
    lanes = sorted({mark.lane for mark in marks if mark.lane}, key=_lane_order)
    baselines: dict[str, float] = {}
    for attempt in run.attempts:
        measured = attempt.verdict.measurement if attempt.verdict else None
        for name, timing in (measured.baselines if measured else {}).items():
            baselines[one_line(name_of(name), 30)] = timing.median_us
    return history_chart(marks, lanes, baselines)


def _lane_order(lane: str) -> tuple[int, str]:
    """The highest rung on top, like a ladder; what is no rung below."""
    return (-RUNGS.index(lane) if lane in RUNGS else 1, lane)


def _mark(attempt: Attempt) -> Mark:
    verdict = attempt.verdict
    tip = f"attempt {attempt.index}: {attempt_said(attempt)}"
    if verdict is None:
        return Mark(attempt.index, "waiting", tip, lane="no verdict")
    failed = verdict.failed_rung
    if failed or verdict.outcome == "errored":
        kind: Kind = "errored" if verdict.outcome == "errored" else "refuted"
        return Mark(
            attempt.index, kind, tip, lane=one_line(failed.name, 14) if failed else "skipped"
        )
    kind = "kept" if attempt.kept else "passed"
    if verdict.measurement is None or not verdict.measurement.median_us:
        return Mark(attempt.index, kind, tip, lane="not timed")
    timed = f"{figures.time_us(verdict.measurement.median_us)}, "
    return Mark(
        attempt.index, kind, tip.replace(": ", f": {timed}", 1), verdict.measurement.median_us
    )


def walls(verdict: Verdict | None) -> list[tuple[str, bool]]:
    """Which walls stood around the candidate's process."""
    return list(verdict.environment.walls.to_dict().items()) if verdict else []
