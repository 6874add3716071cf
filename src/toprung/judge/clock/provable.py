"""Which inputs a right kernel must read to the last element, whatever algebra it knows.

`plausible` refutes times below what memory allows, so a byte counts only if no rewriting can avoid
it. A reference that reads a tensor proves nothing: `x - x`, the mean of a layer norm, and a clamp
after a clamp read all of it and need none. So a tensor counts only while its way to an output goes
through operators on which every element leaves a mark that nothing later can wipe out:

- elementwise functions; clamps (and relu) only on values that may lie on either side;
- sums with, and products by, tensors that do not depend on it (a product's other factor must be
  free itself, not a mask);
- reductions and normalisations, but none after a normalisation;
- matrix products, convolutions that skip nothing, attention without a mask.

A second way to the same output may cancel the first, so a tensor on two ways does not count, nor
one that is sliced, gathered, masked or selected from. Zeros, constants and symmetric matrices in an
input are structure that a kernel may know; such inputs do not count either, nor do parameters, which
may be prepared beforehand. All of this errs on the side of reading too little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import torch

from .flops import Call
from .flops.call import words
from .trace import Access, Step

RANGED = "ranged"
"""Values lie on one side of something: a clamp, or a second function, may flatten them."""
NORMALISED = "normalised"
"""Sums over the values may be known beforehand."""

Flags = frozenset[str]


@dataclass(frozen=True)
class Influence:
    """What a tensor depends on."""

    whole: Mapping[int, Flags] = field(default_factory=dict)
    """Sources of which every element leaves a mark, and what is known of the values by now."""
    anyhow: frozenset[int] = frozenset()
    """All sources that may have an influence."""

    def marked(self, *flags: str) -> Influence:
        """The same, with flags added."""
        return Influence({s: f | set(flags) for s, f in self.whole.items()}, self.anyhow)

    def without(self, flag: str) -> Influence:
        """Only sources without `flag` keep their mark."""
        return Influence({s: f for s, f in self.whole.items() if flag not in f}, self.anyhow)

    @property
    def is_ranged(self) -> bool:
        """Whether nothing is known to lie on both sides."""
        return all(RANGED in flags for flags in self.whole.values())

    def faded(self) -> Influence:
        """No mark is certain any more."""
        return Influence({}, self.anyhow)


def _together(parts: Iterable[Influence]) -> Influence:
    """Parts that meet: a source keeps its mark only if a single part depends on it."""
    parts = list(parts)
    whole: dict[int, Flags] = {}
    for i, part in enumerate(parts):
        others = frozenset[int]().union(*(p.anyhow for j, p in enumerate(parts) if j != i))
        whole |= {s: f for s, f in part.whole.items() if s not in others}
    return Influence(whole, frozenset[int]().union(*(p.anyhow for p in parts)))


# --- rules: what an operator does to the influences of its tensor arguments

KEEPING = words("_to_copy asinh clone copy log log10 log1p log2 neg reciprocal sinh tan")
RANGING = words("""
    abs atan cos cosh elu erf erfc exp exp2 expm1 gelu log_sigmoid_forward mish rsqrt sigmoid silu
    sin softplus sqrt square tanh
    """)
CLAMPING = words("""
    clamp clamp_max clamp_min hardshrink hardsigmoid hardswish hardtanh leaky_relu relu relu6
    softshrink
    """)
ADDING = words("add sub rsub logaddexp")
MULTIPLYING = words("mul div")
SUMMING = words("sum mean amax amin cumsum")
MEASURING = words("logsumexp linalg_vector_norm norm var std")
JOINING = words("cat stack")

Rule = Callable[[Call, list[Influence]], Influence]


def _scaled(call: Call, parts: list[Influence]) -> Influence:
    """Arithmetic with a number: it must not be one that wipes out."""
    other = call.get("other", call.get("exponent", 1))
    wipes_out = not isinstance(other, int | float) or other == 0 or call.get("rounding_mode")
    return parts[0].faded() if wipes_out else parts[0]


def _multiplied(call: Call, parts: list[Influence]) -> Influence:
    if len(parts) == 1:
        return _scaled(call, parts)
    if not all(part.whole for part in parts):
        return _together(part.faded() for part in parts)
    both = _together(parts)
    return both.marked(RANGED) if all(part.is_ranged for part in parts) else both


def _added(call: Call, parts: list[Influence]) -> Influence:
    return _together(parts) if call.get("alpha", 1) != 0 else _together(p.faded() for p in parts)


def _product(factors: list[Influence], addends: list[Influence]) -> Influence:
    """Every element of a factor meets free elements of the other one; the range is lost."""
    if not all(factor.whole for factor in factors):
        factors = [factor.faded() for factor in factors]
    flags: Flags = frozenset((RANGED,)) if all(f.is_ranged for f in factors) else frozenset()
    fresh = [Influence(dict.fromkeys(f.whole, flags), f.anyhow) for f in factors]
    return _together([*fresh, *addends])


def _matrix_product(call: Call, parts: list[Influence]) -> Influence:
    if call.get("alpha", 1) == 0:
        return _together(part.faded() for part in parts)
    return _product(parts[-2:], parts[:-2] if call.get("beta", 1) else [])


def _convolution(call: Call, parts: list[Influence]) -> Influence:
    """Only the input counts, and only if strides and borders skip nothing of it."""
    x, weight, *bias = parts
    if not _visits_all(call):
        x = x.faded()
    kept = _product([x, weight], bias)
    return Influence({s: f for s, f in kept.whole.items() if s in x.whole}, kept.anyhow)


def _visits_all(call: Call) -> bool:
    x, weight = call.tensor("input"), call.tensor("weight")
    kernel, dims = weight.shape[2:], x.dim() - 2
    stride, padding, dilation = (call.get(n) for n in ("stride", "padding", "dilation"))
    if call.get("transposed", False):
        return all(padding[i] <= dilation[i] * (kernel[i] - 1) for i in range(dims))
    return all(
        dilation[i] == 1
        and stride[i] <= kernel[i]
        and (x.shape[2 + i] + 2 * padding[i] - kernel[i]) % stride[i] == 0
        for i in range(dims)
    )


def _normalised(call: Call, parts: list[Influence]) -> Influence:
    x, *affine = parts
    is_batch_norm = call.name.endswith("batch_norm")
    if is_batch_norm and not call.get("training", False):
        return x.faded()  # statistics are buffers, which may be anything
    if call.numel < 2 * _rows(call):
        x = x.faded()
    if is_batch_norm:
        affine = [part.faded() for part in affine]
    return _together([x.without(NORMALISED).marked(NORMALISED, RANGED), *affine])


def _rows(call: Call) -> int:
    """How many groups are normalised apart; each must have two elements to have any freedom."""
    x = call.first
    if "softmax" in call.name:
        return x.numel() // max(call.size_over(x, call.get("dim")), 1)
    if call.name == "native_group_norm":
        return int(call.get("N") * call.get("group"))
    if call.name.endswith("batch_norm"):
        return x.shape[1] if x.dim() > 1 else 1
    size = 1
    for n in call.get("normalized_shape"):
        size *= n
    return x.numel() // max(size, 1)


def _influence(call: Call, parts: list[Influence]) -> Influence:
    name = call.name
    if any(not t.dtype.is_floating_point for t in call.outputs[:1]):
        return _together(part.faded() for part in parts)
    if name in KEEPING:
        return parts[-1]
    if name in RANGING:
        return parts[0].marked(RANGED)
    if name in CLAMPING and len(parts) == 1:
        return parts[0].without(RANGED).marked(RANGED)
    if name in SUMMING:
        return parts[0].without(NORMALISED)
    if name in MEASURING and call.numel < call.first.numel():
        return parts[0].without(NORMALISED).marked(RANGED)
    if name == "pow" and len(parts) == 1:
        return _scaled(call, parts).marked(RANGED)
    rule = RULES.get(name)
    return rule(call, parts) if rule else _together(part.faded() for part in parts)


RULES: dict[str, Rule] = {
    **dict.fromkeys(ADDING, _added),
    **dict.fromkeys(MULTIPLYING, _multiplied),
    **dict.fromkeys(JOINING, lambda call, parts: _together(parts)),
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addmv"), _matrix_product),
    "convolution": _convolution,
    **dict.fromkeys(
        ("_softmax", "_log_softmax", "native_layer_norm", "native_group_norm", "native_batch_norm"),
        _normalised,
    ),
}


def wholly_read(
    steps: Iterable[Step], sources: Mapping[int, bool], outputs: Iterable[Access]
) -> frozenset[int]:
    """Numbers of the sources of which every element must be read to make `outputs`.

    `sources` maps the number of every input, parameter, buffer and constant to whether its values
    are free; only free ones can be among the result.
    """
    state = {
        number: Influence({number: frozenset()} if is_free else {}, frozenset((number,)))
        for number, is_free in sources.items()
    }
    for step in steps:
        parts = [_of(state, read) for read in step.reads]
        out = _step(step, parts)
        for position, write in enumerate(step.writes):
            settled = out if position == 0 else out.faded()
            if not write.is_whole:
                before = state.get(write.storage, Influence())
                settled = Influence({}, settled.anyhow | before.anyhow)
            state[write.storage] = settled
    return frozenset().union(*(_of(state, output).whole for output in outputs))


def _of(state: Mapping[int, Influence], access: Access) -> Influence:
    known = state.get(access.storage, Influence())
    return known if access.is_whole else known.faded()


def _step(step: Step, parts: list[Influence]) -> Influence:
    if step.call is not None and parts:
        return _influence(step.call, parts)
    if step.mixed and all(part.whole for part in parts):
        kept = (p if i in step.mixed else p.faded() for i, p in enumerate(parts))
        return _together(Influence(dict.fromkeys(p.whole, frozenset()), p.anyhow) for p in kept)
    return _together(part.faded() for part in parts)


SAMPLE = 1 << 20
"""About how many elements `has_free_values` looks at, evenly spaced in every dimension."""
CORNER = 256
"""Rows and columns in which it looks for symmetry."""


def has_free_values(tensor: torch.Tensor) -> bool:
    """Whether `tensor` shows no structure that a kernel may know: few zeros, no constant, no symmetry.

    Integers are never free: their high bits are known.
    """
    if not tensor.dtype.is_floating_point or tensor.is_meta or tensor.numel() == 0:
        return False
    with torch.no_grad():
        values = tensor.detach()
        step = math.ceil((values.numel() / SAMPLE) ** (1 / max(values.dim(), 1)))
        sample = values[(slice(None, None, max(step, 1)),) * values.dim()].reshape(-1).float()
        if 64 * int((sample == 0).sum()) > sample.numel() or bool((sample == sample[0]).all()):
            return False
        if values.dim() < 2 or values.shape[-1] != values.shape[-2]:
            return True
        corner = values[(0,) * (values.dim() - 2)][:CORNER, :CORNER]
        return corner.numel() == 1 or not torch.equal(corner, corner.mT)
