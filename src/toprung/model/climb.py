"""How a climb is asked."""

from __future__ import annotations

from .value import Value
from .verdict import RungName


class ClimbOptions(Value):
    """Part of what a scheduler sends to a pool, together with the task and the candidate."""

    target: str = "cpu:native"
    upto: RungName | None = None
    extra: tuple[RungName, ...] = ()
    """Optional rungs that are asked as well: `sanitize`, `profile`."""
    timeout_s: float = 150.0
    seed: int | None = None
    confirm: bool = True
    """Fresh paired rounds over several processes before "faster" is said."""
    baselines: tuple[str, ...] = ("eager", "compile")
