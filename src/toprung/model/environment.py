"""Where a climb took place, and behind which walls."""

from __future__ import annotations

from .value import Value


class Walls(Value):
    """Which walls stood around the candidate's process."""

    namespaces: bool = False
    landlock: bool = False
    seccomp: bool = False
    network: bool = False
    limits: bool = False


class Environment(Value):
    """Device and versions; `walls` as they stood during this climb."""

    device: str
    toprung: str
    torch: str | None = None
    walls: Walls = Walls()
