"""toprung: a verifiable loop for kernels, climbed rung by rung."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .dsls.inline import inline as inline
    from .judge.rungs.base import rung as rung

# Public names, loaded on first use so that `import toprung` stays light.
_PUBLIC = {"inline": "toprung.dsls.inline", "rung": "toprung.judge.rungs.base"}


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'toprung' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)
