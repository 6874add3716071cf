"""Measured ceilings of the device at hand: measured in a process of its own, kept in the user's cache.

    python -m toprung.judge.clock.ceilings      measures this CPU and prints `Ceilings` as JSON

A ceiling is the best ever seen: measuring again can only raise it. What was measured on a busy machine
is measured again as soon as the machine is quiet, so that a neighbour does not lower the roof for good.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pydantic import ValidationError

from toprung.caches import cache_folder
from toprung.devices.detect import detect_cpu
from toprung.errors import HarnessError, Unavailable
from toprung.model.device import BUSY, Ceilings, Device
from toprung.model.value import digest_of

MEASURE_SECONDS = 120.0
"""When to give up on the measuring process; it takes about five on an idle machine."""


def ceilings(target: str = "cpu:native", *, refresh: bool = False) -> Ceilings:
    """The ceilings of the device behind `target`, from the cache or measured now.

    `refresh` measures again and keeps the better of old and new; so does a machine that was busy when
    it was measured and is quiet now. What cannot be read from the cache is measured anew; where
    nothing can be kept, it is measured each time.
    """
    device = _device(target)
    path = cache_path(device)
    known = _read(path, device)
    if known is not None and not refresh and (known.was_quiet or load(device) > BUSY):
        return known
    measured = measure_ceilings(target)
    best = known.raised_by(measured) if known is not None else measured
    _write(path, best)
    return best


def measure_ceilings(target: str = "cpu:native") -> Ceilings:
    """Measure in a process of its own; about five seconds on all cores that this process may use.

    Raises `Unavailable` for a target that is no CPU, `HarnessError` when the process fails.
    """
    device = _device(target)
    threads = str(device.units or 1)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        # Threads that wait must not take the cores from threads that work.
        "OMP_WAIT_POLICY": "passive",
    }
    command = [sys.executable, "-m", "toprung.judge.clock.ceilings"]
    before = load(device)
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=MEASURE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise HarnessError(
            f"measuring the ceilings took more than {MEASURE_SECONDS:.0f} s",
            hint="free the machine of other work and try again",
        ) from late
    try:
        return Ceilings.from_json(done.stdout).model_copy(update={"load": before})
    except ValidationError as bad:
        raise HarnessError(
            f"measuring the ceilings failed with exit code {done.returncode}",
            hint="run `python -m toprung.judge.clock.ceilings` and mend what it says",
            details=done.stderr[-4000:],
        ) from bad


def load(device: Device) -> float:
    """Processes that wanted to run in the last minute, per core of `device`."""
    return os.getloadavg()[0] / (device.units or 1)


def cache_path(device: Device) -> Path:
    """Where the ceilings of `device` are kept: by device, target, and version of torch."""
    key = digest_of({"device": device.digest, "software": _software(), "version": 1})
    return cache_folder() / "ceilings" / f"{key[:32]}.json"


def _device(target: str) -> Device:
    if not target.startswith("cpu:"):
        raise Unavailable(
            f"ceilings are measured on CPUs only, not for {target!r}",
            hint="compare with the data-sheet peaks instead (`toprung doctor`)",
        )
    return detect_cpu()


def _software() -> str:
    return f"torch {importlib.metadata.version('torch')}"


def _read(path: Path, device: Device) -> Ceilings | None:
    try:
        known = Ceilings.from_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return known if (known.device, known.software) == (device.digest, _software()) else None


def _write(path: Path, value: Ceilings) -> None:
    """Replace the file in one step, so that nobody reads half of it."""
    with contextlib.suppress(OSError):  # a cache that cannot be kept is none
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
            file.write(value.to_json(indent=1))
        Path(file.name).replace(path)


def main() -> None:
    """Measure this CPU and print the ceilings as JSON."""
    from .probes import measure

    print(measure(detect_cpu(), _software()).to_json())


if __name__ == "__main__":
    main()
