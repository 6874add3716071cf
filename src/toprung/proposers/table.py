"""Proposers by name. Other packages add theirs by the entry point group `toprung.proposers`.

Each class has a class method `create(settings: ProposerSettings)`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from toprung.errors import UsageError

from .base import Proposer
from .scripted import After, Scripted
from .settings import ProposerSettings

BUILT_IN = {
    "templates": "toprung.proposers.templates.engine:TemplateEngine",
    "scripted": "toprung.proposers.scripted:Scripted",
}
"""Name -> `module:Class`."""

GROUP = "toprung.proposers"


def names() -> dict[str, str]:
    """Name -> `module:Class` of every proposer, plug-ins included."""
    return {**BUILT_IN, **{point.name: point.value for point in entry_points(group=GROUP)}}


def create(name: str, settings: ProposerSettings) -> Proposer:
    """The proposer called `name`, after the candidates of `settings.start`; raises `UsageError`."""
    known = names()
    if name not in known:
        raise UsageError(
            f"no proposer is called {name!r}", hint=f"choose among {', '.join(sorted(known))}"
        )
    module, _, cls = known[name].partition(":")
    proposer = getattr(import_module(module), cls).create(settings)
    if settings.start and name != "scripted":
        return After(Scripted(settings.start), proposer)
    return proposer
