"""DSL `torch`: a rewrite in plain PyTorch. References and baselines are candidates of this kind."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from toprung.model.candidate import Candidate

from .base import Availability, Loaded
from .python import find_entry, load_python


class PyTorch:
    """Any Python file that no other DSL claims."""

    name = "torch"

    def available(self) -> Availability:
        install = "pip install torch"
        try:
            return Availability(
                name=self.name, version=version("torch"), targets=("cpu",), install=install
            )
        except PackageNotFoundError:
            return Availability(name=self.name, missing="torch is not installed", install=install)

    def claims(self, candidate: Candidate) -> bool:
        return candidate.main.endswith(".py")

    def precheck(self, candidate: Candidate) -> None:
        find_entry(candidate)

    def load(self, candidate: Candidate, folder: Path, target: str) -> Loaded:
        return load_python(candidate, folder)
