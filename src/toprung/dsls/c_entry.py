"""Plain C++ files with an `extern "C"` entry: compiled to a shared object, called by ctypes."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toprung.errors import CompileError, Refuted

from .base import Loaded
from .inline import BUILD_DIR_VARIABLE, CPP_FLAGS

if TYPE_CHECKING:
    from torch import Tensor

    from .cpp import Sidecar


def load_c_entry(sidecar: Sidecar, folder: Path) -> Loaded:
    """Compile and load; the result allocates outputs by the reference's shapes (`like`)."""
    build = Path(os.environ.get(BUILD_DIR_VARIABLE, str(folder)))
    build.mkdir(parents=True, exist_ok=True)
    library = build / "entry.so"
    command = ["g++", "-std=c++17", "-shared", "-fPIC", *CPP_FLAGS, *sidecar.flags]
    command += [str(folder / sidecar.main), "-o", str(library)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    if said.returncode:
        raise CompileError(f"{sidecar.main} does not compile", details=said.stderr)
    try:
        function = getattr(ctypes.CDLL(str(library)), sidecar.entry)
    except (AttributeError, OSError) as bad:
        raise CompileError(
            f"{sidecar.main} exports no function {sidecar.entry}",
            hint=f'declare it extern "C" void {sidecar.entry}(…)',
            details=str(bad),
        ) from None
    function.restype = None
    return Loaded(
        entry=sidecar.entry, build=lambda *_: CEntry(function, sidecar.args), is_module=False
    )


class CEntry:
    """Calls a C function with the arguments that its sidecar names."""

    wants_like = True
    """The caller passes `like`: empty tensors of the reference's output shapes and types."""

    def __init__(self, function: Callable[..., None], args: list[str]):
        self._function = function
        self._args = args

    def __call__(self, *inputs: Any, like: list[Tensor], **params: Tensor) -> Any:
        import torch

        outputs = [torch.empty_like(t) for t in like]
        pools = {
            "input": dict(enumerate(inputs)),
            "output": dict(enumerate(outputs)),
            "param": params,
        }
        self._function(*[_argument(name, pools) for name in self._args])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _argument(text: str, pools: dict[str, dict]) -> Any:
    pool, _, rest = text.partition(".")
    key, _, what = rest.partition(".")
    try:
        value = pools[pool][key if pool == "param" else int(key)]
        if not hasattr(value, "data_ptr"):
            return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(value)
        if not what:
            return ctypes.c_void_p(value.data_ptr())
        if what == "numel":
            return ctypes.c_int64(value.numel())
        kind, _, dim = what.partition(".")
        return ctypes.c_int64({"size": value.size, "stride": value.stride}[kind](int(dim)))
    except (KeyError, ValueError, IndexError, TypeError) as bad:
        raise Refuted(
            f"sidecar argument {text!r} names nothing here ({bad!r})",
            hint="use input.I, param.NAME, output.I, and .size.D, .stride.D or .numel behind them",
        ) from None
