"""Detection from what the kernel and vendors' tools say, and the hardware report."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from toprung.devices import detect as module
from toprung.devices.detect import detect, detect_cpu, nvidia_target, parse_amd, parse_nvidia
from toprung.devices.hardware import HardwareReport, hardware_report
from toprung.errors import DeviceError
from toprung.model.device import Device

pytestmark = pytest.mark.unit

X86 = """\
processor\t: 0
model name\t: Example CPU 9000
cpu MHz\t\t: 2600.500
flags\t\t: fpu sse4_2 avx avx2 fma avx512f

processor\t: 1
model name\t: Another
"""
ARM = """\
processor\t: 0
Features\t: fp asimd sve bf16
CPU implementer\t: 0x41
CPU part\t: 0xd4f
"""


def machine(root: Path, *, cpuinfo: str = X86, cores: int = 4, clusters: int = 2) -> Path:
    """A tree as Linux shows it: private 1 MiB level 2, one 16 MiB level 3 per cluster."""

    def write(name: str, text: str) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write("proc/cpuinfo", cpuinfo)
    write("proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\n")
    for core in range(cores):
        cluster = core * clusters // cores
        shared = f"{cluster * cores // clusters}-{(cluster + 1) * cores // clusters - 1}"
        caches = [
            (1, "Data", "32K", str(core)),
            (1, "Instruction", "32K", str(core)),
            (2, "Unified", "1024K", str(core)),
            (3, "Unified", "16M", shared),
        ]
        for index, (level, kind, size, cpus) in enumerate(caches):
            base = f"sys/devices/system/cpu/cpu{core}/cache/index{index}/"
            write(base + "level", f"{level}\n")
            write(base + "type", f"{kind}\n")
            write(base + "size", f"{size}\n")
            write(base + "shared_cpu_list", f"{cpus}\n")
    return root


def test_a_cpu_is_read_from_the_kernel(tmp_path: Path) -> None:
    cpu = detect_cpu(machine(tmp_path))
    assert (cpu.kind, cpu.target, cpu.name, cpu.units) == (
        "cpu",
        "cpu:native",
        "Example CPU 9000",
        4,
    )
    assert cpu.memory_bytes == 16_000_000 * 1024
    assert (cpu.l2_bytes, cpu.llc_bytes) == (4 << 20, 32 << 20)  # shared caches once, not per core
    assert cpu.clock_mhz == 2600.5
    assert cpu.features == ("sse4_2", "avx", "avx2", "fma", "avx512f")


def test_the_highest_clock_wins_over_the_present_one(tmp_path: Path) -> None:
    root = machine(tmp_path)
    path = root / "sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq"
    path.parent.mkdir(parents=True)
    path.write_text("3700000\n")
    assert detect_cpu(root).clock_mhz == 3700


@pytest.mark.parametrize(
    "name", ["sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"]
)
def test_a_control_group_limits_memory(tmp_path: Path, name: str) -> None:
    path = machine(tmp_path) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("1073741824\n")
    assert detect_cpu(tmp_path).memory_bytes == 1 << 30
    path.write_text("max\n")
    assert detect_cpu(tmp_path).memory_bytes == 16_000_000 * 1024
    path.write_text(str(1 << 62))
    assert detect_cpu(tmp_path).memory_bytes == 16_000_000 * 1024


def test_an_arm_cpu_without_a_name_is_named_by_its_part(tmp_path: Path) -> None:
    cpu = detect_cpu(machine(tmp_path, cpuinfo=ARM))
    assert cpu.name == "Arm implementer 0x41 part 0xd4f"
    assert cpu.features == ("asimd", "sve", "bf16") and cpu.clock_mhz is None


def test_a_machine_that_shows_no_caches_has_none(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1000 kB\n")
    cpu = detect_cpu(tmp_path)
    assert (cpu.l2_bytes, cpu.llc_bytes, cpu.units) == (None, None, None)


def test_a_machine_without_proc_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="how much memory"):
        detect_cpu(tmp_path)


def test_this_machine_has_a_cpu_with_the_cores_of_this_process() -> None:
    cpu = detect()[0]
    assert cpu.kind == "cpu" and cpu.units == len(os.sched_getaffinity(0))


def test_the_digest_survives_a_reboot_and_not_another_cpu(tmp_path: Path) -> None:
    cpu = detect_cpu(machine(tmp_path))
    same = cpu.model_copy(update={"clock_mhz": 1.0, "memory_bytes": cpu.memory_bytes + 4096})
    other = cpu.model_copy(update={"units": 2})
    assert same.digest == cpu.digest != other.digest


NVIDIA = """\
0, NVIDIA H200, 143771, 1980, 9.0, 580.95.05
1, NVIDIA GeForce RTX 2080 Ti, 11264, [N/A], 7.5, 580.95.05
"""


def test_nvidia_gpus_are_read_from_csv() -> None:
    h200, old = parse_nvidia(NVIDIA)
    assert (h200.kind, h200.name, h200.target, h200.index) == (
        "cuda",
        "NVIDIA H200",
        "cuda:sm_90a",
        0,
    )
    assert h200.memory_bytes == 143771 << 20 and h200.units == 132 and h200.clock_mhz == 1980
    assert h200.llc_bytes == h200.l2_bytes == 50 << 20 and h200.driver == "580.95.05"
    assert (old.target, old.units, old.clock_mhz, old.l2_bytes) == ("cuda:sm_75", None, None, None)


@pytest.mark.parametrize(
    "text", ["", "No devices were found\n", "0, x, [N/A], 1, 9.0, 1\n", "a,b\n"]
)
def test_whatever_else_nvidia_smi_says_is_no_gpu(text: str) -> None:
    assert parse_nvidia(text) == []


def test_targets_carry_the_letter_of_architectures_that_have_one() -> None:
    assert [nvidia_target(c) for c in ("8.0", "8.9", "9.0", "10.0", "12.0")] == [
        "sm_80",
        "sm_89",
        "sm_90a",
        "sm_100a",
        "sm_120a",
    ]


AMD = {
    "card1": {"Card series": "AMD Instinct MI300X", "VRAM Total Memory (B)": "206141652992"},
    "card0": {
        "Card Series": "Radeon X",
        "GFX Version": "gfx1100",
        "VRAM Total Memory (B)": "1000",
    },
    "card2": {"Card Series": "nothing known", "VRAM Total Memory (B)": "1000"},
    "system": {"Driver version": "6.10"},
}


def test_amd_gpus_are_read_from_json() -> None:
    radeon, mi300x = parse_amd("WARNING: something\n" + json.dumps(AMD))
    assert (radeon.target, radeon.index, radeon.units) == ("hip:gfx1100", 0, None)
    assert (mi300x.target, mi300x.units, mi300x.llc_bytes) == ("hip:gfx942", 304, 256 << 20)
    assert mi300x.memory_bytes == 206141652992


@pytest.mark.parametrize("text", ["", "ERROR", "{not json", '{"card0": 3}'])
def test_whatever_else_rocm_smi_says_is_no_gpu(text: str) -> None:
    assert parse_amd(text) == []


def script(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_tools_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, "nvidia-smi", f'case "$*" in *compute_cap*noheader*) printf "{NVIDIA}";; esac')
    script(tmp_path, "rocm-smi", f"echo '{json.dumps(AMD)}'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert [device.kind for device in detect()] == ["cpu", "cuda", "cuda", "hip", "hip"]


@pytest.mark.parametrize("body", ["exit 9", "exec sleep 30", "printf '\\377'"])
def test_tools_that_fail_or_hang_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    script(tmp_path, "nvidia-smi", body)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(module, "ASK_SECONDS", 0.3)
    assert [device.kind for device in detect()] == ["cpu"]


def test_the_report_says_what_is_here_and_how_to_get_what_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path, "g++", "echo 'g++ (Debian 12.2.0-14) 12.2.0'")
    script(tmp_path, "nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr("toprung.devices.hardware.detect", lambda: [CPU])
    report = hardware_report()
    found = {tool.name: tool.version for tool in report.compilers if tool.path}
    assert found["g++"] == "12.2.0-14" and found["nvcc"] == "13.0.88"
    missing = {tool.name: tool.get for tool in report.missing}
    assert missing["clang++"] == "apt install clang"
    assert missing["ncu"].startswith("needs an NVIDIA GPU, and none is here")
    assert missing["rocprofv3"].startswith("needs an AMD GPU")
    assert report.devices[0].peaks is None
    assert HardwareReport.from_json(report.to_json()) == report


CPU = Device(kind="cpu", name="x", target="cpu:native", memory_bytes=1 << 30)
GPU = parse_nvidia(NVIDIA)[0]


def test_the_report_joins_a_gpu_with_its_peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toprung.devices.hardware.detect", lambda: [CPU, GPU])
    report = hardware_report(which=lambda _: None)
    peaks = report.devices[1].peaks
    assert peaks is not None and peaks.product == "NVIDIA H200 SXM 141GB"
    assert {t.name: t.get for t in report.missing}["ncu"].startswith("install Nsight Compute")


def test_looking_at_hardware_needs_no_torch() -> None:
    code = (
        "import sys; from toprung.devices.hardware import hardware_report; hardware_report();"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
