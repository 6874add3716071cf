"""Seeds: secret ones that a task cannot fix, shared ones, and draws that are recorded to be replayed."""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch.utils._python_dispatch import TorchDispatchMode

DRAWS = frozenset(
    [
        "bernoulli",
        "binomial",
        "cauchy",
        "exponential",
        "geometric",
        "log_normal",
        "multinomial",
        "native_dropout",
        "normal",
        "poisson",
        "rand",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "random",
        "randperm",
        "rrelu_with_noise",
        "uniform",
        "_fused_dropout",
        "_sample_dirichlet",
        "_standard_gamma",
        "normal_functional",
    ]
)
"""Operators that draw. torch's own tag also covers attention, which draws only with dropout."""

_seed_torch = torch.manual_seed  # the real one, whatever a task's module does to the name


def derive(*parts: object) -> int:
    """A seed of 62 bits that depends on every part and tells nothing about any."""
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 2


def sow(seed: int) -> None:
    """Seed torch, Python and NumPy alike: what both sides do before a module is built or called."""
    _seed_torch(seed)
    random.seed(seed)
    numpy.random.seed(seed % 2**32)


def generator(*parts: object) -> torch.Generator:
    """A generator of one's own, untouched by anything a task does."""
    return torch.Generator().manual_seed(derive(*parts))


def operator(func: Any) -> str:
    """Name of an operator without namespace, overload and the underscore of in-place forms."""
    return func._schema.name.partition("::")[2].removesuffix("_")


def draws(func: Any) -> bool:
    """Whether `func` takes numbers from a generator."""
    return operator(func) in DRAWS


class _SecretDraws(TorchDispatchMode):
    """Every draw gets a seed of its own, whatever generator or seed the task has chosen."""

    def __init__(self, seed: int):
        super().__init__()
        self._seed = seed
        self._count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if draws(func):
            if "generator" in kwargs:
                kwargs["generator"] = None
            _seed_torch(derive(self._seed, self._count))
            self._count += 1
        return func(*args, **kwargs)


@contextlib.contextmanager
def undisclosed(seed: int) -> Iterator[None]:
    """While this lasts, `seed` alone decides what is drawn; a task's own seeding does nothing."""
    sow(seed)
    make, counted = numpy.random.default_rng, iter(range(2**31))

    def fresh() -> int:
        return derive(seed, "numpy", next(counted)) % 2**32

    class State(numpy.random.RandomState):
        def __init__(self, *args: Any, **kwargs: Any):
            super().__init__(fresh())

    with (
        _replaced(random, "seed", lambda *args, **kwargs: None),
        _replaced(numpy.random, "seed", lambda *args, **kwargs: None),
        _replaced(numpy.random, "default_rng", lambda *args, **kwargs: make(fresh())),
        _replaced(numpy.random, "RandomState", State),
        _SecretDraws(seed),
    ):
        yield


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


class Recording:
    """The draws of one call, in order: (operator, tensor)."""

    def __init__(self) -> None:
        self.draws: list[tuple[str, torch.Tensor]] = []


class Recorder(TorchDispatchMode):
    """Keeps every draw of the code below it, at the precision in which it was made."""

    def __init__(self, recording: Recording):
        super().__init__()
        self._recording = recording

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if draws(func):
            drawn = drawn_of(operator(func), args, result)
            self._recording.draws.append((operator(func), drawn.clone()))
        return result


def drawn_of(name: str, args: Any, result: Any) -> torch.Tensor:
    """The drawn numbers themselves: a dropout's mask rather than its masked input."""
    if name in ("native_dropout", "_fused_dropout"):
        return result[1]
    return args[1] if name == "rrelu_with_noise" else result


class Replay:
    """Hands a recording out again, draw by draw, in float64 where it was floating."""

    def __init__(self, recording: Recording):
        self._left = iter(recording.draws)

    def __call__(self, func: Any, args: Any) -> Any:
        """The result of `func`; raises `RuntimeError` when the calls have parted."""
        name = operator(func)
        recorded, drawn = next(self._left, ("nothing", torch.empty(0)))
        if recorded != name:
            raise RuntimeError(f"the float64 run draws {name} where {recorded} was recorded")
        value = drawn.double() if drawn.is_floating_point() else drawn
        if name in ("native_dropout", "_fused_dropout"):
            keep = 1 - args[1] if name == "native_dropout" else args[1]
            return args[0] * value / keep, value
        if name == "rrelu_with_noise":
            args[1].copy_(value)
            return args[0] * value
        if func._schema.name.endswith("_"):
            return args[0].copy_(value)
        return value.clone()
