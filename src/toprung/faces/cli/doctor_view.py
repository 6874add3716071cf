"""The state of a machine for a person: what it is, what it can do, how to get what is missing."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from toprung.app import DoctorReport
from toprung.devices.hardware import DeviceReport
from toprung.judge.clock.ceilings import BUSY
from toprung.model.device import Ceilings
from toprung.outputs import figures
from toprung.outputs.text import one_line

HERE, MISSING = "✓", "–"

WALLS = {
    "limits": "memory, processes, time, files and output of a candidate are bounded",
    "namespaces": "it sees no other process, and mounts and IPC of its own",
    "network": "it reaches no network",
    "landlock": "it reads and writes only what it needs",
    "seccomp": "it may make only the system calls it needs",
}


def doctor_parts(found: DoctorReport) -> Iterable[RenderableType]:
    """The report, section by section."""
    yield Text(f"toprung {found.toprung}, Python {found.python}, torch {found.torch}", style="bold")
    for device in found.hardware.devices:
        yield _section("Device", _device_rows(device))
    yield _section("Measured ceilings", _ceiling_rows(found.ceilings))
    yield _section(
        "Languages",
        [
            (d.name, _present(d.version, d.missing), f"for {', '.join(d.targets)}")
            for d in found.dsls
        ],
    )
    tools = [*found.hardware.compilers, *found.hardware.profilers]
    yield _section(
        "Compilers and profilers",
        [(t.name, _present(t.version or t.path), t.purpose) for t in tools],
    )
    yield _section(
        "Walls around a candidate",
        [
            (name, f"{HERE} stands" if stands else f"{MISSING} does not stand", WALLS[name])
            for name, stands in found.walls
        ],
    )
    yield _section(
        "Folders",
        [("state", found.store, ""), ("caches", found.cache, "may be deleted at any time")],
    )
    advice = list(_advice(found))
    if advice:
        yield _section("To get what is missing", advice)


def _section(title: str, rows: Iterable[tuple[str, str, str]]) -> Table:
    table = Table(
        title=f"\n{title}",
        title_justify="left",
        title_style="bold",
        box=None,
        show_header=False,
        padding=(0, 2, 0, 2),
    )
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold", style="dim")
    for row in rows:
        table.add_row(*map(one_line, row))
    return table


def _present(version: str | None, missing: str | None = None) -> str:
    return f"{MISSING} {missing or 'not here'}" if version is None else f"{HERE} {version}"


def _device_rows(report: DeviceReport) -> Iterable[tuple[str, str, str]]:
    device, peaks = report.device, report.peaks
    yield device.name, device.target, ""
    if device.units:
        clock = f" at up to {device.clock_mhz:.0f} MHz" if device.clock_mhz else ""
        yield ("cores" if device.kind == "cpu" else "units"), f"{device.units}{clock}", ""
    yield "memory", figures.size(device.memory_bytes), ""
    if device.llc_bytes:
        yield "last-level cache", figures.size(device.llc_bytes), ""
    if device.features:
        yield "instructions", ", ".join(device.features), ""
    if peaks is None:
        return
    yield "data sheet", figures.rate(peaks.memory_bytes_per_s, "B/s"), peaks.source
    rates = {**peaks.vector_flops_per_s, **peaks.matrix_flops_per_s}
    for unit, rate in rates.items():
        yield f"data sheet, {unit}", figures.rate(rate, "FLOP/s"), ""


def _ceiling_rows(ceilings: Ceilings) -> Iterable[tuple[str, str, str]]:
    for level in ceilings.levels:
        copy = figures.rate(level.copy_bytes_per_s, "B/s")
        read = figures.rate(level.read_bytes_per_s, "B/s")
        yield level.name, f"copy {copy}, read {read}", ""
    for precision, rate in ceilings.matrix_flops_per_s.items():
        yield f"matrix product, {precision}", figures.rate(rate, "FLOP/s"), ""
    yield "a call that does nothing", figures.time_us(ceilings.launch_us), ""
    if ceilings.load > BUSY:
        busy = f"the machine was busy (load {ceilings.load:.1f} a core)"
        yield "take care", f"{busy}: ask again with --refresh when it is idle", ""


def _advice(found: DoctorReport) -> Iterable[tuple[str, str, str]]:
    for dsl in found.dsls:
        if dsl.version is None and dsl.install:
            yield dsl.name, dsl.install, ""
    for tool in found.hardware.missing:
        yield tool.name, tool.get, ""
    if not found.walls.namespaces:
        yield (
            "namespaces, network",
            "run as a user who may create namespaces; containers need the right to unshare",
            "",
        )
