"""The hardware report: devices, and the compilers and profilers for them, with what is missing."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from toprung.model.device import Device, Peaks
from toprung.model.value import Value

from .detect import detect
from .peaks import peaks_of

Kind = Literal["compiler", "profiler"]


class Tool(Value):
    """A program that toprung can use; `path` and `version` are `None` where it is missing."""

    name: str
    kind: Kind
    purpose: str
    path: str | None = None
    version: str | None = None
    get: str
    """How to get it, for this machine or in general."""


class DeviceReport(Value):
    """A device and what its data sheet says; `peaks` is `None` for products not in the table."""

    device: Device
    peaks: Peaks | None = None


class HardwareReport(Value):
    """What this machine has; the measured ceilings stand elsewhere, since measuring takes seconds."""

    devices: tuple[DeviceReport, ...]
    compilers: tuple[Tool, ...]
    profilers: tuple[Tool, ...]

    @property
    def missing(self) -> tuple[Tool, ...]:
        """Tools that are not here, in the order of the report."""
        return tuple(tool for tool in (*self.compilers, *self.profilers) if tool.path is None)


@dataclass(frozen=True)
class _Known:
    name: str
    kind: Kind
    purpose: str
    get: str
    needs: Literal["cuda", "hip"] | None = None
    version: tuple[str, ...] = ("--version",)


CUDA = "install the CUDA toolkit: https://developer.nvidia.com/cuda-downloads"
ROCM = "install ROCm: https://rocm.docs.amd.com/projects/install-on-linux"

TOOLS = (
    _Known("g++", "compiler", "C++ kernels", "apt install g++"),
    _Known("clang++", "compiler", "C++ kernels, second opinion", "apt install clang"),
    _Known("nvcc", "compiler", "CUDA kernels", CUDA),
    _Known("hipcc", "compiler", "HIP kernels", ROCM, "hip"),
    _Known("perf", "profiler", "CPU counters", "apt install linux-perf"),
    _Known(
        "ncu",
        "profiler",
        "GPU counters of one kernel",
        "install Nsight Compute: https://developer.nvidia.com/nsight-compute",
        "cuda",
    ),
    _Known(
        "nsys",
        "profiler",
        "GPU timeline of a program",
        "install Nsight Systems: https://developer.nvidia.com/nsight-systems",
        "cuda",
    ),
    _Known("compute-sanitizer", "profiler", "out-of-bounds and races on the GPU", CUDA, "cuda"),
    _Known("rocprofv3", "profiler", "GPU counters on AMD", ROCM, "hip"),
)

VERSION = re.compile(r"\d+\.\d+[\w.+-]*")
VERSION_SECONDS = 10.0


def hardware_report(which: Callable[[str], str | None] = shutil.which) -> HardwareReport:
    """Look at the machine: devices, compilers, profilers. Takes about as long as `nvcc --version`."""
    devices = detect()
    kinds = {device.kind for device in devices}
    with ThreadPoolExecutor() as threads:
        tools = list(threads.map(lambda known: _tool(known, kinds, which), TOOLS))
    return HardwareReport(
        devices=tuple(DeviceReport(device=d, peaks=peaks_of(d)) for d in devices),
        compilers=tuple(tool for tool in tools if tool.kind == "compiler"),
        profilers=tuple(tool for tool in tools if tool.kind == "profiler"),
    )


def _tool(known: _Known, kinds: set, which: Callable[[str], str | None]) -> Tool:
    path = which(known.name)
    get = known.get
    if known.needs and known.needs not in kinds:
        maker = {"cuda": "an NVIDIA", "hip": "an AMD"}[known.needs]
        get = f"needs {maker} GPU, and none is here; then: {known.get}"
    return Tool(
        name=known.name,
        kind=known.kind,
        purpose=known.purpose,
        path=path,
        version=_version(path, known.version) if path else None,
        get=get,
    )


def _version(path: str, arguments: tuple[str, ...]) -> str | None:
    """The last line with a version number usually has the program's own; `None` if none does."""
    try:
        answer = subprocess.run(
            [path, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    release = re.search(r"release (\S+), V(\S+)", answer.stdout)  # nvcc prints its banner first
    if release:
        return release[2]
    found = VERSION.search(answer.stdout + answer.stderr)
    return found[0] if found else None
