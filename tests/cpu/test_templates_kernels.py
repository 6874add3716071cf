"""Kernels of the engine, compiled and run beside their references: odd shapes and hostile values.

Errors are root mean squares against the reference in float64, relative to the output's own, in units
of the output type's epsilon. A kernel may be as far off as its reference in float32, and some.
"""

from __future__ import annotations

import random
import re
import types
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

import toprung
from references import COVERED, Reference, graph_of
from toprung.model.task import Task
from toprung.proposers.templates.choices import Choices
from toprung.proposers.templates.engine import TemplateEngine
from toprung.proposers.templates.match import plan_of
from toprung.proposers.templates.source import source_of
from toprung.proposers.templates.space import first_choices, space_of

pytestmark = pytest.mark.cpu

COMPILED = (
    "softmax",
    "softmax_by_hand_without_keepdim",
    "softmax_without_maximum",
    "softmax_with_temperature",
    "softmax_relative",
    "softmax_of_columns",
    "softmax_in_the_middle",
    "softmax_of_all",
    "log_softmax",
    "logsumexp",
    "layer_norm",
    "layer_norm_by_deviation",
    "layer_norm_of_channels",
    "group_norm",
    "rms_norm_in_bf16",
    "extremes",
    "argmin_of_all",
    "cross_entropy",
    "cosine_loss",
    "whole_numbers",
    "variance_of_columns",
    "argmin_in_the_middle",
    "mse",
    "frobenius",
    "gelu_of_several",
    "activations",
    "functions",
    "two_outputs",
    "chunks",
)
"""One or two for each thing that a kernel can be made of."""

SHAPES = ({}, {"a": 1, "b": 1}, {"a": 3, "b": 7}, {"a": 5, "b": 1000}, {"a": 1000, "b": 3})

ILL_CONDITIONED = 1e5
"""Where the reference itself is so far off, there is nothing to compare with."""

Change = Callable[[torch.Tensor], torch.Tensor]
VALUES: dict[str, Change] = {
    "as_given": lambda x: x,
    "large_offset": lambda x: x * 0.01 + 10_000,
    "huge": lambda x: x * 1e30,
    "tiny": lambda x: x * 1e-30,
    "ties": lambda x: (x * 2).round() / 2,
    "zeros": lambda x: x * 0,
    "with_infinity": lambda x: torch.where(x > 2, torch.inf, x),
    "with_minus_infinity": lambda x: torch.where(x > 1, -torch.inf, x),
    "with_nan": lambda x: torch.where(x > 4, torch.nan, x),
}


def written(name: str, **changes: Any) -> str:
    """The candidate for a reference."""
    graph = graph_of(COVERED[name])
    plan = plan_of(graph)
    return source_of(plan, graph, first_choices(plan).model_copy(update=changes))


def loaded(source: str) -> Any:
    """A candidate file, executed, which compiles its kernel."""
    module = types.ModuleType("candidate")
    exec(compile(source, "candidate.py", "exec"), module.__dict__)
    return module


def loaded_together(sources: Iterable[str]) -> list[Any]:
    """Candidate files, whose kernels are compiled as one text: that takes a fraction of the time."""
    includes: dict[str, None] = {}
    parts: list[str] = []
    modules = list(sources)
    for place, source in enumerate(modules):
        text = source.split('r"""', 1)[1].split('"""', 1)[0]
        lines = text.splitlines()
        includes |= dict.fromkeys(line for line in lines if line.startswith("#include"))
        body = "\n".join(line for line in lines if not line.startswith("#include"))
        body = body.replace("#define INLINE", "#undef INLINE\n#define INLINE")
        arguments = re.search(r"^void run\((.*)\) \{$", body, re.MULTILINE)
        assert arguments
        names = ", ".join(word.split()[-1] for word in arguments[1].split(", "))
        call = f"void run_{place}({arguments[1]}) {{ k{place}::run({names}); }}"
        parts.append(f"namespace k{place} {{\n{body}\n}}\n{call}")
    together = toprung.inline(
        "\n".join([*includes, *parts]),
        [f"run_{place}" for place in range(len(modules))],
        flags=Choices().flags(),
    )
    return [
        _with_kernel(source, getattr(together, f"run_{place}"))
        for place, source in enumerate(modules)
    ]


def _with_kernel(source: str, run: Any) -> Any:
    changed_, count = re.subn(r"^_kernel = .*$", "", source, flags=re.MULTILINE)
    assert count == 1
    module = loaded(changed_)
    module._kernel = types.SimpleNamespace(run=run)
    return module


@pytest.fixture(scope="module")
def kernels() -> dict[str, Any]:
    """Every candidate of `COMPILED`; two compilers run at a time."""
    sources = [written(name) for name in COMPILED]
    with ThreadPoolExecutor(2) as pool:
        halves = list(pool.map(loaded_together, (sources[0::2], sources[1::2])))
    pairs = zip([*COMPILED[0::2], *COMPILED[1::2]], [*halves[0], *halves[1]], strict=True)
    return dict(pairs)


def wide(value: Any) -> Any:
    """Floats in float64."""
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if floating else value


def changed(value: Any, change: Change) -> Any:
    """Floating inputs changed."""
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return change(value.float()).to(value.dtype) if floating else value


def error(got: torch.Tensor, want: torch.Tensor, eps: float) -> float:
    """Root mean square over that of `want`, in `eps`; infinite where non-finite values differ."""
    got, want = got.double(), want.double()
    finite = got.isfinite() & want.isfinite()
    odd = ~finite
    if not torch.equal(got[odd].nan_to_num(0.5), want[odd].nan_to_num(0.5)):
        return float("inf")
    if not finite.any():
        return 0.0
    off = (got[finite] - want[finite]).square().mean().sqrt()
    scale = want[finite].square().mean().sqrt()
    return float(off / scale.clamp(min=1e-38) / eps)


def compare(kernel: Any, reference: Reference, sizes: dict[str, int], change: Change) -> None:
    """Run both; types, shapes and structure must agree, and values within rounding."""
    module = reference.module()
    torch.manual_seed(2)
    model = module.Model().eval()
    new = kernel.ModelNew()
    for own, theirs in zip(_state(new), _state(model), strict=True):
        assert own[0] == theirs[0]
        own[1].data.copy_(theirs[1])
    inputs = [changed(x, change) for x in module.get_inputs(**sizes)]
    before = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    with torch.no_grad():
        narrow = model(*inputs)
        got = new(*inputs)
        exact = model.double()(*[wide(x) for x in inputs])
    for x, y in zip(inputs, before, strict=True):
        assert not isinstance(x, torch.Tensor) or torch.equal(x.nan_to_num(7), y.nan_to_num(7))
    leaves = [torch.utils._pytree.tree_leaves(tree) for tree in (got, narrow, exact)]
    for mine, theirs, truth in zip(*leaves, strict=True):
        if not isinstance(theirs, torch.Tensor):
            assert mine == theirs
            continue
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        floating = theirs.is_floating_point()
        eps = torch.finfo(theirs.dtype).eps if floating else 1.0
        own = error(theirs, truth, eps)
        if own < ILL_CONDITIONED:
            assert error(mine, truth, eps) <= max(1.0 if floating else 0.0, 1.3 * own)


def _state(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*model.named_parameters(), *model.named_buffers()]


@pytest.mark.parametrize("name", COMPILED)
def test_a_kernel_is_right_for_every_shape(name: str, kernels: dict[str, Any]) -> None:
    reference = COVERED[name]
    for sizes in SHAPES if reference.free else ({},):
        if name == "variance_of_columns" and sizes.get("a") == 1:
            continue  # the variance of one number
        compare(kernels[name], reference, sizes, VALUES["as_given"])
        if reference.free and sizes:
            compare(kernels[name], reference, sizes, VALUES["large_offset"])


@pytest.mark.parametrize("values", VALUES)
def test_a_kernel_is_right_for_hostile_values(values: str, kernels: dict[str, Any]) -> None:
    for name in COMPILED:
        compare(kernels[name], COVERED[name], {}, VALUES[values])


def test_every_choice_computes_the_same() -> None:
    draw = random.Random(5)
    names = ("softmax", "layer_norm_by_deviation", "two_outputs", "mse", "softmax_in_the_middle")
    made: list[tuple[str, str]] = []
    for name in names:
        space = space_of(plan_of(graph_of(COVERED[name])), 2)
        changes: dict[str, Any] = {key: draw.choice(values) for key, values in space.items()}
        # Small pieces, so that these shapes have several of each.
        made.append((name, written(name, **{**changes, "chunk": 100, "block": 64, "grain": 16})))
        made.append((name, written(name, stream=True, keep="recompute", divide="exact")))
    for (name, _), kernel in zip(made, loaded_together(text for _, text in made), strict=True):
        sizes = {"a": 9, "b": 301} if COVERED[name].free else {}
        compare(kernel, COVERED[name], sizes, VALUES["as_given"])


def test_a_proposal_is_a_file_that_runs_by_itself() -> None:
    task = Task(name="x", reference=COVERED["rms_norm"].source)
    (proposal,) = TemplateEngine().propose(task, (), (), 1)
    compare(loaded(proposal.candidate.source), COVERED["rms_norm"], {}, VALUES["as_given"])


def test_inputs_need_not_be_contiguous(kernels: dict[str, Any]) -> None:
    x = torch.randn(37, 5).t()
    with torch.no_grad():
        torch.testing.assert_close(kernels["softmax"].ModelNew()(x), torch.softmax(x, -1))


def test_inputs_that_the_kernel_was_not_made_for_are_refused(kernels: dict[str, Any]) -> None:
    softmax = kernels["softmax"].ModelNew()
    with pytest.raises(TypeError, match="tensor of 2 dimensions"):
        softmax(torch.randn(3, 4).double())
    with pytest.raises(TypeError, match="2 dimensions"):
        softmax(torch.randn(3, 4, 5))
    with pytest.raises(ValueError, match="input 1 of shape"):
        kernels["mse"].ModelNew()(torch.randn(3, 4), torch.randn(3, 5))
    with pytest.raises(ValueError, match="input 0 of shape"):
        kernels["layer_norm"].ModelNew()(torch.randn(3, 4, 36))


def test_an_index_out_of_range_is_an_error(kernels: dict[str, Any]) -> None:
    with pytest.raises(IndexError, match="out of range"):
        kernels["cross_entropy"].ModelNew()(torch.randn(3, 4), torch.tensor([0, 4, 1]))
