"""`toprung.inline`: C++ and CUDA source to a module of functions that take tensors.

Compiled against tvm-ffi's small ABI instead of torch's headers: about a second where torch's own
`load_inline` takes half a minute. Tensors cross without a copy (DLPack).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from toprung.caches import cache_folder
from toprung.errors import CompileError, Unavailable, UsageError

BUILD_DIR_VARIABLE = "TOPRUNG_BUILD_DIR"
"""Where builds are kept; a climb sets it to a folder of the candidate's own."""

PRELUDE = """\
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
using tvm::ffi::TensorView;
"""

CPP_FLAGS = ("-O3", "-march=native", "-fopenmp", "-fno-math-errno")


def inline(
    source: str,
    functions: str | Sequence[str],
    lang: Literal["cpp", "cuda"] = "cpp",
    flags: Sequence[str] = (),
) -> Any:
    """Compile `source`, once per content, and return a module with `functions` as attributes.

    A function takes `TensorView` arguments (`x.data_ptr()`, `x.size(i)`, `x.stride(i)`, `x.numel()`)
    and numbers, and writes its results into tensors that the caller allocated. `flags` are added to
    `-O3 -march=native -fopenmp -fno-math-errno`. Raises `CompileError` with the compiler's text.
    """
    names = [functions] if isinstance(functions, str) else list(functions)
    if not names:
        raise UsageError("inline: name at least one function to export")
    missing = [name for name in names if name not in source]
    if missing:
        raise CompileError(
            f"the source defines no function called {', '.join(missing)}",
            hint="`functions` names the C++ functions to export, as they are spelt in the source",
        )
    if lang not in ("cpp", "cuda"):
        raise UsageError(f"inline: lang is {lang!r}, not 'cpp' or 'cuda'")
    return _load(source, names, lang, [*CPP_FLAGS, *flags] if lang == "cpp" else list(flags))


def _load(source: str, names: list[str], lang: str, flags: list[str]) -> Any:
    import tvm_ffi.cpp

    key = hashlib.sha256("\0".join([lang, source, *names, *flags]).encode()).hexdigest()[:16]
    build = _build_root() / f"inline-{key}"
    build.mkdir(parents=True, exist_ok=True)
    kind = "cpp" if lang == "cpp" else "cuda"
    text = source if "tvm/ffi/" in source else PRELUDE + '#line 1 "source"\n' + source
    options: dict[str, Any] = {f"{kind}_sources": text}
    options["extra_cflags" if lang == "cpp" else "extra_cuda_cflags"] = flags
    if lang == "cpp":
        options["extra_ldflags"] = ["-fopenmp"]
    try:
        return tvm_ffi.cpp.load_inline(
            name=f"inline_{key}", functions=names, build_directory=str(build), **options
        )
    except FileNotFoundError as missing:
        raise Unavailable(
            f"no compiler for {lang}: {missing}", hint="install g++ (Debian: apt install g++)"
        ) from missing
    except RuntimeError as failed:
        raise CompileError(
            f"the {lang} source does not compile", details=_relevant(failed)
        ) from None


def _build_root() -> Path:
    named = os.environ.get(BUILD_DIR_VARIABLE)
    if named:
        return Path(named)
    return cache_folder() / "inline"


def _relevant(failed: RuntimeError) -> str:
    """What the compiler said, without the build tool's own lines and the long command lines."""
    noise = ("ninja:", "[", "FAILED:", "stdout:", "ninja exited", "cd ")
    lines = [line for line in str(failed).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(noise) and " -c " not in line]
    return "\n".join(kept or lines)
