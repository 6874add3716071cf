"""Which devices are here. Asks the kernel and the vendors' tools; never imports torch."""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from toprung.errors import DeviceError
from toprung.model.device import Device

from .peaks import peaks_of

ASK_SECONDS = 10.0
"""How long a vendor's tool may take to answer."""

# Instruction sets that decide how fast a kernel can be; x86 names first, Arm's after them.
FEATURES = (
    "sse4_2",
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "avx_vnni",
    "amx_tile",
    "amx_bf16",
    "amx_int8",
    "asimd",
    "asimdhp",
    "sve",
    "sve2",
    "bf16",
    "i8mm",
)

NVIDIA_FIELDS = ("index", "name", "memory.total", "clocks.max.sm", "compute_cap", "driver_version")

# Architectures whose full instruction set needs the target with the letter (PTX ISA, `.target`).
SPECIFIC = ("9.0", "10.0", "10.3", "12.0", "12.1")


def detect() -> list[Device]:
    """Every device of this machine: the CPU first, then GPUs in the order of their drivers."""
    return [detect_cpu(), *detect_nvidia(), *detect_amd()]


# --- CPU


def detect_cpu(root: Path = Path("/")) -> Device:
    """The cores that this process may use, their caches and the memory they may fill.

    `root` is where `proc` and `sys` lie. Raises `DeviceError` where there is no `/proc/meminfo`.
    """
    cores = sorted(os.sched_getaffinity(0)) if root == Path("/") else _all_cores(root)
    facts = _cpuinfo(root)
    caches = _caches(root, cores)
    deepest = max(caches, default=0)
    flags = set(facts.get("flags", facts.get("features", "")).split())
    return Device(
        kind="cpu",
        name=facts.get("model name") or _arm_name(facts) or platform.machine() or "CPU",
        target="cpu:native",
        memory_bytes=_memory(root),
        units=len(cores) or None,
        clock_mhz=_clock_mhz(root, cores, facts),
        l2_bytes=caches.get(2),
        llc_bytes=caches.get(deepest) if deepest > 1 else None,
        features=tuple(name for name in FEATURES if name in flags),
    )


def _all_cores(root: Path) -> list[int]:
    found = (root / "sys/devices/system/cpu").glob("cpu[0-9]*")
    return sorted(int(path.name[3:]) for path in found)


def _cpuinfo(root: Path) -> dict[str, str]:
    """The first processor's entries, in lower case."""
    text = _text(root / "proc/cpuinfo")
    pairs = (line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    return {key.strip().lower(): value.strip() for key, value in pairs}


def _arm_name(facts: dict[str, str]) -> str | None:
    implementer, part = facts.get("cpu implementer"), facts.get("cpu part")
    return f"Arm implementer {implementer} part {part}" if implementer and part else None


def _memory(root: Path) -> int:
    """What this process may fill: the machine's memory, or less where a control group says so."""
    found = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    if found is None:
        raise DeviceError(
            "this machine does not say how much memory it has (/proc/meminfo)",
            hint="toprung needs Linux with /proc mounted",
        )
    limits = [int(found[1]) * 1024]
    for name in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _text(root / name).strip()
        if text.isdigit() and int(text) > 0:
            limits.append(int(text))
    return min(limits)


def _clock_mhz(root: Path, cores: list[int], facts: dict[str, str]) -> float | None:
    """The highest clock the cores may run at, else the one they run at now."""
    highest = []
    for core in cores:
        text = _text(root / f"sys/devices/system/cpu/cpu{core}/cpufreq/cpuinfo_max_freq").strip()
        if text.isdigit():
            highest.append(int(text) / 1000)
    if highest:
        return max(highest)
    now = facts.get("cpu mhz", "")
    return float(now) if re.fullmatch(r"\d+(\.\d+)?", now) and float(now) > 0 else None


def _caches(root: Path, cores: Iterable[int]) -> dict[int, int]:
    """Bytes of data cache per level, each cache counted once however many cores share it."""
    seen: set[tuple[int, str]] = set()
    sizes: dict[int, int] = {}
    for core in cores:
        for index in sorted((root / f"sys/devices/system/cpu/cpu{core}/cache").glob("index*")):
            level, size = _text(index / "level").strip(), _text(index / "size").strip()
            if _text(index / "type").strip() == "Instruction" or not level.isdigit():
                continue
            bytes_ = _size(size)
            place = (int(level), _text(index / "shared_cpu_list").strip() or str(core))
            if bytes_ and place not in seen:
                seen.add(place)
                sizes[int(level)] = sizes.get(int(level), 0) + bytes_
    return sizes


def _size(text: str) -> int | None:
    found = re.fullmatch(r"(\d+)([KMG]?)", text)
    if found is None:
        return None
    return int(found[1]) * {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[found[2]]


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


# --- GPUs


def detect_nvidia() -> list[Device]:
    """What `nvidia-smi` lists; nothing where it is missing or fails."""
    query = f"--query-gpu={','.join(NVIDIA_FIELDS)}"
    return parse_nvidia(_ask("nvidia-smi", query, "--format=csv,noheader,nounits"))


def parse_nvidia(text: str) -> list[Device]:
    """Devices from the CSV that `nvidia-smi` prints for `NVIDIA_FIELDS`, without units."""
    devices = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) != len(NVIDIA_FIELDS) or not row[0].isdigit() or not row[2].isdigit():
            continue
        index, name, mebibytes, clock, capability, driver = (cell.strip() for cell in row)
        known = peaks_of(name)
        devices.append(
            Device(
                kind="cuda",
                name=name,
                target=f"cuda:{nvidia_target(capability)}",
                index=int(index),
                memory_bytes=int(mebibytes) << 20,
                units=known.units if known else None,
                clock_mhz=float(clock) if clock.isdigit() else None,
                l2_bytes=known.l2_bytes if known else None,
                llc_bytes=known.l2_bytes if known else None,
                driver=driver or None,
            )
        )
    return devices


def nvidia_target(capability: str) -> str:
    """`9.0` is `sm_90a`, `8.9` is `sm_89`."""
    return f"sm_{capability.replace('.', '')}{'a' if capability in SPECIFIC else ''}"


def detect_amd() -> list[Device]:
    """What `rocm-smi` lists; nothing where it is missing or fails."""
    return parse_amd(_ask("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json"))


def parse_amd(text: str) -> list[Device]:
    """Devices from the JSON of `rocm-smi --showproductname --showmeminfo vram --json`.

    Cards without an architecture or a size of memory are left out.
    """
    start = text.find("{")  # warnings may precede it
    try:
        cards = json.loads(text[start:]) if start >= 0 else {}
    except ValueError:
        return []
    devices = []
    for card, facts in cards.items():
        found = re.fullmatch(r"card(\d+)", card)
        if found is None or not isinstance(facts, dict):
            continue
        named = {str(key).lower(): str(value) for key, value in facts.items()}
        name = named.get("card series") or named.get("card model") or "AMD GPU"
        known = peaks_of(name)
        architecture = named.get("gfx version") or (
            known.target.removeprefix("hip:") if known else ""
        )
        memory = named.get("vram total memory (b)", "")
        if not architecture or not memory.isdigit():
            continue
        devices.append(
            Device(
                kind="hip",
                name=name,
                target=f"hip:{architecture}",
                index=int(found[1]),
                memory_bytes=int(memory),
                units=known.units if known else None,
                clock_mhz=known.boost_clock_mhz if known else None,
                l2_bytes=known.l2_bytes if known else None,
                llc_bytes=(known.llc_bytes or known.l2_bytes) if known else None,
            )
        )
    return sorted(devices, key=lambda device: device.index)


def _ask(tool: str, *arguments: str) -> str:
    """What a tool prints; empty where it is missing, fails or hangs."""
    path = shutil.which(tool)
    if path is None:
        return ""
    try:
        answer = subprocess.run(
            [path, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout if answer.returncode == 0 else ""
