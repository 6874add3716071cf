"""`toprung doctor` over a report made by hand."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

import toprung
from toprung.app import DoctorReport
from toprung.devices.hardware import DeviceReport, HardwareReport, Tool
from toprung.dsls.base import Availability
from toprung.faces.cli.main import run
from toprung.model.device import Ceilings, Device, MemoryLevel
from toprung.model.environment import Walls

pytestmark = pytest.mark.unit

DEVICE = Device(
    kind="cpu",
    name="Example CPU \x1b[2J",
    target="cpu:native",
    memory_bytes=8 << 30,
    units=4,
    clock_mhz=3000,
    llc_bytes=32 << 20,
    features=("avx2", "fma"),
)
LEVEL = MemoryLevel(
    name="memory",
    read_bytes_per_s=20e9,
    write_bytes_per_s=15e9,
    copy_bytes_per_s=25e9,
    triad_bytes_per_s=22e9,
)


def a_report(*, load: float = 0.0, walls: Walls | None = None) -> DoctorReport:
    return DoctorReport(
        toprung="0.1.0",
        python="3.11.7",
        torch="2.13.0",
        hardware=HardwareReport(
            devices=(DeviceReport(device=DEVICE),),
            compilers=(
                Tool(name="g++", kind="compiler", purpose="C++", path="/usr/bin/g++", get="x"),
                Tool(name="nvcc", kind="compiler", purpose="CUDA", get="install the toolkit"),
            ),
            profilers=(),
        ),
        ceilings=Ceilings(
            target="cpu:native",
            device=DEVICE.digest,
            name=DEVICE.name,
            software="torch 2.13.0",
            levels=(LEVEL,),
            cache_bytes=0,
            matrix_flops_per_s={"fp32": 120e9},
            launch_us=0.6,
            load=load,
        ),
        dsls=(
            Availability(name="cpp", version="g++ 12", targets=("cpu",)),
            Availability(name="other", missing="no compiler", install="apt install other"),
        ),
        walls=walls or Walls(namespaces=True, network=True, limits=True),
        store="/somewhere/.toprung",
        cache="/somewhere/cache",
    )


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch):
    asked: list[bool] = []

    def doctor(report: DoctorReport, *options: str) -> int:
        def answer(refresh: bool) -> DoctorReport:
            asked.append(refresh)
            return report

        monkeypatch.setattr(toprung, "app", SimpleNamespace(doctor=answer), raising=False)
        return run(["doctor", *options])

    doctor.asked = asked  # type: ignore[attr-defined]
    return doctor


def test_a_person_sees_what_is_here_and_how_to_get_the_rest(ask, capsys):
    assert ask(a_report()) == 0
    out = capsys.readouterr().out
    for part in ("Example CPU", "4 at up to 3000 MHz", "8.00 GiB", "avx2, fma", "copy 25.0 GB/s"):
        assert part in out
    assert "120 GFLOP/s" in out
    assert "✓ g++ 12" in out
    assert "– no compiler" in out
    assert "apt install other" in out
    assert "install the toolkit" in out
    assert "busy" not in out
    assert "\x1b" not in out


def test_walls_are_said_to_stand_only_where_they_do(ask, capsys):
    ask(a_report(walls=Walls(limits=True)))
    lines = capsys.readouterr().out.splitlines()
    said = {words[0]: line for line in lines if (words := line.split())}
    assert "✓ stands" in said["limits"]
    for wall in ("namespaces", "network", "landlock", "seccomp"):
        assert "– does not stand" in said[wall]


def test_ceilings_from_a_busy_machine_carry_a_warning(ask, capsys):
    ask(a_report(load=3.0))
    assert "busy (load 3.0 a core)" in capsys.readouterr().out


def test_json_is_the_whole_report_and_refresh_is_passed_on(ask, capsys):
    report = a_report()
    assert ask(report, "--json", "--refresh") == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == report.to_dict()
    assert err == ""
    assert ask.asked == [True]
