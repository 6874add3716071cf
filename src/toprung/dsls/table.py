"""DSLs by name. Other packages add theirs by the entry point group `toprung.dsls`."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from toprung.errors import Refuted, Unavailable, UsageError
from toprung.model.candidate import Candidate

from .base import Availability, Dsl

BUILT_IN = {
    "null": "toprung.dsls.null:Null",
    "cpp": "toprung.dsls.cpp:Cpp",
    "torch": "toprung.dsls.pytorch:PyTorch",
}
"""Asked in this order which of them claims a candidate; `torch` takes any Python file, so last."""

GROUP = "toprung.dsls"

ELSEWHERE = {"triton": "triton", "cutlass": "cute", "tilelang": "tilelang", "cupy": "cupy"}
"""Imports that mean a language this version has no DSL for."""


def names() -> dict[str, str]:
    """Name -> `module:Class`, plug-ins first: they know their own sources better than `torch`."""
    plugins = {point.name: point.value for point in entry_points(group=GROUP)}
    return {**plugins, **{k: v for k, v in BUILT_IN.items() if k not in plugins}}


def get(name: str) -> Dsl:
    """The DSL called `name`; raises `UsageError`."""
    known = names()
    if name not in known:
        raise UsageError(f"no DSL is called {name!r}", hint=f"choose among {', '.join(known)}")
    module, _, cls = known[name].partition(":")
    return getattr(import_module(module), cls)()


def detect(candidate: Candidate) -> Dsl:
    """The DSL that claims `candidate`; raises `Refuted` or `Unavailable`."""
    if candidate.dsl:
        return get(candidate.dsl)
    for name in names():
        dsl = get(name)
        if dsl.claims(candidate):
            if name == "torch":
                _refuse_elsewhere(candidate)
            return dsl
    raise Refuted(
        f"no DSL knows what {candidate.main} is", hint="name one with --dsl, or use a .py file"
    )


def _refuse_elsewhere(candidate: Candidate) -> None:
    from .python import needed_imports

    for package in sorted(needed_imports(candidate) & set(ELSEWHERE)):
        raise Unavailable(
            f"the candidate imports {package}, and this version has no DSL {ELSEWHERE[package]!r}",
            hint="write it in C++ or plain PyTorch, or install a plug-in for that DSL",
        )


def availability() -> list[Availability]:
    """Every DSL as it stands on this machine."""
    return [get(name).available() for name in names()]
