"""Measures what this CPU can do at best. Runs in a process of its own; imports torch.

Every probe is a short run of one kind of work. All probes take turns until the time is up, and the
best turn of each counts: a neighbour who wakes for a moment disturbs single turns of all of them and
not all turns of one. Streams through memory and multiply-adds come from `probes.cpp` where there is
a compiler; torch's own operators are measured beside them, and the better figure stands.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from toprung.model.device import Ceilings, Device, MemoryLevel
from toprung.model.tensor import Precision

TURNS_SECONDS = 2.4
"""How long the probes take turns."""
FEWEST_TURNS = 3
PASS_BYTES = 32 << 20
"""About how much a turn moves through a cache; the smaller the data, the more passes a turn makes."""
PRODUCT_SECONDS = 0.03
"""About how long one matrix product may take."""
FMA_ROUNDS = 40_000
LAUNCHES = 2_000
COMPILE_SECONDS = 20.0

# Bytes that each kind of stream touches, in arrays.
ARRAYS = {"read": 1, "write": 1, "copy": 2, "triad": 3}

PRECISIONS: tuple[Precision, ...] = ("fp64", "fp32", "bf16")
"""Of matrix products. Not fp16: torch computes it on a CPU a thousand times slower than fp32."""


@dataclass
class Probe:
    """`run` does the work once and returns the seconds it took, for `amount` bytes, flops or calls."""

    key: tuple[str, ...]
    amount: float
    run: Callable[[], float]
    best: float = field(default=float("inf"))

    def turn(self) -> None:
        """Run once more."""
        self.best = min(self.best, self.run())

    @property
    def rate(self) -> float:
        """Of the best turn, per second."""
        return self.amount / self.best


def measure(device: Device, software: str) -> Ceilings:
    """The ceilings of the CPU `device`. Uses as many threads as it has cores."""
    with ThreadPoolExecutor(1) as background:
        building = background.submit(build_native)
        import torch

        threads = device.units or 1
        torch.set_num_threads(threads)
        # One block per level, which all its streams share: a part each for what they read and write.
        blocks = {name: torch.ones(nbytes // 4) for name, nbytes in _levels(device).items()}
        probes = [*_products(torch), *_launches(torch)]
        for level, block in blocks.items():
            probes += _torch_streams(torch, level, block)
        library = building.result()
        if library is not None:
            probes += _native_probes(library, blocks, threads)
        take_turns(probes)
    return _ceilings(device, software, probes)


def take_turns(probes: list[Probe], seconds: float = TURNS_SECONDS) -> None:
    """Let every probe run in turn until the time is up, and at least `FEWEST_TURNS` times."""
    until = time.perf_counter() + seconds
    turns = 0
    while turns < FEWEST_TURNS or time.perf_counter() < until:
        for probe in probes:
            probe.turn()
        turns += 1


def _levels(device: Device) -> dict[str, int]:
    """Bytes to stream through per level: half of a cache, and several times the last one."""
    levels: dict[str, int] = {}
    if device.l2_bytes:
        levels["L2"] = device.l2_bytes // 2
    if device.llc_bytes and device.llc_bytes != device.l2_bytes:
        levels["LLC"] = device.llc_bytes // 2
    beyond = max(4 * (device.llc_bytes or 0), 128 << 20)
    levels["memory"] = min(beyond, 1 << 30, device.memory_bytes // 8)
    return levels


def _ceilings(device: Device, software: str, probes: list[Probe]) -> Ceilings:
    best: dict[tuple[str, ...], float] = {}
    for probe in probes:
        best[probe.key] = max(best.get(probe.key, 0.0), probe.rate)
    capacities = {"L2": device.l2_bytes, "LLC": device.llc_bytes, "memory": None}
    levels = tuple(
        MemoryLevel(
            name=name,
            capacity_bytes=capacities[name],
            **{f"{kind}_bytes_per_s": best["stream", name, kind] for kind in ARRAYS},
        )
        for name in _levels(device)
    )
    return Ceilings(
        target=device.target,
        device=device.digest,
        name=device.name,
        software=software,
        levels=levels,
        cache_bytes=sum({level.name: level.capacity_bytes or 0 for level in levels}.values()),
        matrix_flops_per_s={p: best["product", p] for p in PRECISIONS if ("product", p) in best},
        vector_flops_per_s={p: best["fma", p] for p in ("fp64", "fp32") if ("fma", p) in best},
        launch_us=1e6 / best["launch",],
    )


# --- torch


def _timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _products(torch: Any) -> Iterator[Probe]:
    """Square matrix products: doubled in size while the next one fits in `PRODUCT_SECONDS`."""
    kinds = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16}
    for precision in PRECISIONS:
        n = 256
        while True:
            a, b = (torch.randn(n, n).to(kinds[precision]) for _ in range(2))
            product = partial(torch.mm, a, b, out=torch.empty_like(a))
            if 8 * min(_timed(product) for _ in range(3)) > PRODUCT_SECONDS or n >= 4096:
                break
            n *= 2
        yield Probe(("product", precision), 2.0 * n**3, partial(_timed, product))


def _launches(torch: Any) -> Iterator[Probe]:
    """Calls that do nothing: torch's smallest operator, and a native function that takes a tensor."""
    one = torch.zeros(1)

    def operators() -> None:
        call = torch.neg
        for _ in range(LAUNCHES):
            call(one, out=one)

    yield Probe(("launch",), LAUNCHES, partial(_timed, operators))
    try:
        import tvm_ffi

        native = tvm_ffi.get_global_func("testing.echo")
        native(one)
    except (ImportError, ValueError, TypeError):
        return

    def functions() -> None:
        for _ in range(LAUNCHES):
            native(one)

    yield Probe(("launch",), LAUNCHES, partial(_timed, functions))


def _parts(block: Any, count: int, step: int = 16) -> list[Any]:
    """`block` in `count` equal parts of whole multiples of `step` elements, 64-byte aligned."""
    elements = max(block.numel() // count // step, 1) * step
    return [block[i * elements : (i + 1) * elements] for i in range(count)]


def _torch_streams(torch: Any, level: str, block: Any) -> Iterator[Probe]:
    def work(kind: str) -> Callable[[], Any]:
        parts = _parts(block, ARRAYS[kind])
        if kind == "read":
            return parts[0].sum
        if kind == "write":
            return partial(parts[0].fill_, 1.0)
        if kind == "copy":
            return partial(parts[1].copy_, parts[0])
        return partial(torch.add, parts[0], parts[1], alpha=3.0, out=parts[2])

    passes = max(1, PASS_BYTES // 8 // block.nbytes)
    for kind, count in ARRAYS.items():
        amount = count * _parts(block, count)[0].nbytes
        yield Probe(("stream", level, kind), amount, partial(_per_pass, work(kind), passes))


def _per_pass(work: Callable[[], Any], passes: int) -> float:
    start = time.perf_counter()
    for _ in range(passes):
        work()
    return (time.perf_counter() - start) / passes


# --- native

FLAGS = (
    *("-O3", "-march=native", "-fopenmp", "-ffp-contract=fast", "-funroll-loops"),
    *("-shared", "-fPIC"),
)


def build_native() -> ctypes.CDLL | None:
    """`probes.cpp` compiled for this very CPU; `None` without a compiler or where it fails."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return None
    source = resources.files("toprung.judge.clock").joinpath("probes.cpp")
    with (
        tempfile.TemporaryDirectory(prefix="toprung-") as folder,
        resources.as_file(source) as path,
    ):
        library = Path(folder) / "probes.so"
        try:
            built = subprocess.run(
                [compiler, *FLAGS, "-o", str(library), str(path)],
                capture_output=True,
                timeout=COMPILE_SECONDS,
                check=False,
            )
            return ctypes.CDLL(str(library)) if built.returncode == 0 else None
        except (OSError, subprocess.TimeoutExpired):
            return None


def _native_probes(library: ctypes.CDLL, blocks: dict[str, Any], threads: int) -> Iterator[Probe]:
    """The probes point into `blocks`, which must outlive them."""
    for name in ("read", "write", "copy", "triad", "fma_fp32", "fma_fp64"):
        getattr(library, f"probe_{name}").restype = ctypes.c_double
    for precision in ("fp32", "fp64"):
        count = getattr(library, f"probe_flops_{precision}")
        count.restype = ctypes.c_size_t
        run = partial(
            getattr(library, f"probe_fma_{precision}"), ctypes.c_size_t(FMA_ROUNDS), 1, threads
        )
        yield Probe(("fma", precision), float(count()) * FMA_ROUNDS * threads, run)
    for level, block in blocks.items():
        passes = max(1, PASS_BYTES // block.nbytes)
        for kind, count in ARRAYS.items():
            parts = _parts(block, count, step=16 * 8 * threads)
            size = ctypes.c_size_t(parts[0].numel())
            pointers = [ctypes.c_void_p(part.data_ptr()) for part in parts]
            # Ordinary stores, and stores past the caches; reading has only one way.
            for ways in ((),) if kind == "read" else ((0,), (1,)):
                stream = getattr(library, f"probe_{kind}")
                run = partial(stream, *pointers, size, *ways, passes, threads)
                yield Probe(("stream", level, kind), count * parts[0].nbytes, run)
