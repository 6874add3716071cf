"""DSL `cpp`: C++ on the CPU, through `toprung.inline`, torch's `load_inline`, or a plain C file.

A plain `.cpp` file has a sidecar `NAME.toml`:

    [candidate]
    entry = "softmax"                  # an extern "C" function
    args = ["input.0", "output.0", "input.0.size.0", "input.0.size.1"]
    flags = ["-O3"]                    # optional

`args` says, in order, what the function gets: `input.I` and `param.NAME` are const pointers,
`output.I` a pointer to write to, `….size.D`, `….stride.D` and `….numel` are `int64_t`.
"""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path, PurePosixPath

from toprung.errors import Refuted
from toprung.model.candidate import Candidate

from .base import Availability, Loaded
from .python import calls_and_imports, find_entry, load_python

SUFFIXES = (".cpp", ".cc", ".cxx")
INLINE_CALLS = ("inline", "load_inline", "load")


class Cpp:
    """C++ for the processor at hand."""

    name = "cpp"

    def available(self) -> Availability:
        install = "apt install g++"
        compiler = shutil.which("g++") or shutil.which("c++")
        if compiler is None:
            return Availability(name=self.name, missing="no C++ compiler", install=install)
        said = subprocess.run(
            [compiler, "-dumpfullversion"], capture_output=True, text=True, timeout=10, check=False
        )
        return Availability(
            name=self.name,
            version=f"g++ {said.stdout.strip()}",
            targets=("cpu",),
            install=install,
        )

    def claims(self, candidate: Candidate) -> bool:
        if candidate.main.endswith(SUFFIXES):
            return True
        if not candidate.main.endswith(".py"):
            return False
        return not calls_and_imports(candidate).isdisjoint(INLINE_CALLS)

    def precheck(self, candidate: Candidate) -> None:
        if candidate.main.endswith(SUFFIXES):
            Sidecar.of(candidate)
        else:
            find_entry(candidate)

    def load(self, candidate: Candidate, folder: Path, target: str) -> Loaded:
        if not candidate.main.endswith(SUFFIXES):
            return load_python(candidate, folder)
        from .c_entry import load_c_entry

        return load_c_entry(Sidecar.of(candidate), folder)


class Sidecar:
    """The `[candidate]` table beside a plain C++ file."""

    def __init__(self, main: str, entry: str, args: list[str], flags: list[str]):
        self.main = main
        self.entry = entry
        self.args = args
        self.flags = flags

    @classmethod
    def of(cls, candidate: Candidate) -> Sidecar:
        """Parse it; raises `Refuted` that names what is missing."""
        name = str(PurePosixPath(candidate.main).with_suffix(".toml"))
        if name not in candidate.files:
            raise Refuted(
                f"{candidate.main} has no sidecar {name}",
                hint=f'write {name} with [candidate] entry = "…" and args = ["input.0", …]',
            )
        try:
            table = tomllib.loads(candidate.files[name])["candidate"]
            entry, args = table["entry"], table["args"]
        except tomllib.TOMLDecodeError as bad:
            raise Refuted(f"{name}: {bad}") from None
        except (KeyError, TypeError) as missing:
            raise Refuted(
                f"{name}: [candidate] needs entry and args ({missing} is missing)"
            ) from None
        flags = table.get("flags", [])
        texts = (
            [entry, *args, *flags] if isinstance(args, list) and isinstance(flags, list) else [0]
        )
        if not all(isinstance(text, str) for text in texts):
            raise Refuted(f"{name}: entry is a string, args and flags are lists of strings")
        return cls(candidate.main, entry, args, flags)
