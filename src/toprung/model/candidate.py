"""Candidate: source that claims to compute a task fast."""

from __future__ import annotations

from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field, model_validator

from .value import Value, digest_of


class Candidate(Value):
    """Immutable; known by the digest of its files."""

    files: Annotated[dict[str, str], Field(min_length=1)]
    """Relative path -> text. A single-file candidate has one."""
    main: str
    """The file among `files` that is loaded first."""
    dsl: str | None = None
    """Name of a DSL; `None` until `static` has detected it."""
    entry: str | None = None
    """`ModelNew`, `kernel` or another name; `None` until `static` has found it."""

    @model_validator(mode="after")
    def _main_is_a_file(self) -> Candidate:
        if self.main not in self.files:
            raise ValueError(f"main file {self.main!r} is not among {sorted(self.files)}")
        for name, text in self.files.items():
            _check_file(name, text)
        inside = {str(parent) for name in self.files for parent in PurePosixPath(name).parents}
        both = sorted(inside & set(self.files))
        if both:
            raise ValueError(f"{both[0]!r} is a file and a folder")
        return self

    @classmethod
    def of_source(
        cls, source: str, *, dsl: str | None = None, main: str = "kernel.py"
    ) -> Candidate:
        """A candidate of one file."""
        return cls(files={main: source}, main=main, dsl=dsl)

    @property
    def source(self) -> str:
        """Text of the main file."""
        return self.files[self.main]

    @cached_property
    def digest(self) -> str:
        """Names the candidate by its content. What `static` fills in later is no part of it."""
        return digest_of({"files": self.files, "main": self.main})


def _check_file(name: str, text: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"file name {name!r} leaves the candidate's folder")
    if "\0" in name or not path.parts or str(path) != name:
        raise ValueError(f"file name {name!r} is not a plain relative path")
    try:
        (name + text).encode()
    except UnicodeEncodeError as broken:
        raise ValueError(f"{name!r} is not valid Unicode: {broken.reason}") from None
