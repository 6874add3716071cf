"""The table of data-sheet peaks (`peaks.toml`) as values."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

from pydantic import ValidationError

from toprung.errors import HarnessError
from toprung.model.device import Device, Peaks


def read_peaks(text: str) -> tuple[Peaks, ...]:
    """Parse a table in the form of `peaks.toml`.

    Raises `HarnessError` when an entry is malformed, or two entries claim one name.
    """
    try:
        entries = tomllib.loads(text).get("device", [])
        peaks = tuple(Peaks.model_validate(entry) for entry in entries)
    except (tomllib.TOMLDecodeError, ValidationError) as bad:
        raise HarnessError(f"the table of data-sheet peaks is malformed: {bad}") from bad
    names = [name.casefold() for entry in peaks for name in entry.names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise HarnessError(f"two entries in the table of peaks are named {', '.join(twice)}")
    return peaks


@cache
def peaks() -> tuple[Peaks, ...]:
    """Every product in the table."""
    return read_peaks(resources.files("toprung.devices").joinpath("peaks.toml").read_text("utf-8"))


def peaks_of(device: Device | str) -> Peaks | None:
    """The entry for a device, or for the name that its driver reports; `None` for any other.

    Names must agree in full: an `NVIDIA H100 NVL` is not an `NVIDIA H100 PCIe`.
    """
    name = device if isinstance(device, str) else device.name
    wanted = name.strip().casefold()
    for entry in peaks():
        if wanted in (known.casefold() for known in entry.names):
            return entry
    return None
