"""What the engine reads out of a reference: the right family, and the right expressions.

Expressions are evaluated here in float64 by a few lines that know nothing of C++, and compared with
the reference in float64. References that no family covers must be refused, by the reason.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
import torch

from references import COVERED, REFUSED, Reference, graph_of
from toprung.model.task import Case, Task
from toprung.proposers.base import NothingToPropose
from toprung.proposers.templates.axes import Label
from toprung.proposers.templates.choices import Choices
from toprung.proposers.templates.engine import TemplateEngine
from toprung.proposers.templates.graph import Graph
from toprung.proposers.templates.ir import Apply, Const, Index, Load, Pick, Reduce, Size
from toprung.proposers.templates.lower import NotCovered
from toprung.proposers.templates.match import Plan, plan_of, strides
from toprung.proposers.templates.sizes import evaluate
from toprung.proposers.templates.source import source_of
from toprung.proposers.templates.space import first_choices

pytestmark = pytest.mark.cpu

LOOSE = {
    "rms_norm_module": 1e-6,  # its epsilon is that of the type, and another one in float64
    "whole_numbers": 1e-6,  # what it converts to float32 stays so
    "rms_norm_in_bf16": 1e-2,
    "in_bf16": 1e-2,
}
"""How far the reference in float64 is from what it means."""

FUNCTIONS: dict[str, Any] = {
    "neg": torch.neg,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "abs": torch.abs,
    "max": torch.maximum,
    "min": torch.minimum,
    "one_plus_erf": lambda x: torch.special.erfc(-x),
    "pow": torch.pow,
    "and": torch.logical_and,
    "or": torch.logical_or,
    "not": torch.logical_not,
    "where": torch.where,
    "is_nan": torch.isnan,
    "is_inf": torch.isinf,
    "cast": lambda x: x,
    "as_f32": lambda x: x,
    "as_bf16": lambda x: x.to(torch.bfloat16).double(),
}


def wide(value: Any) -> Any:
    """Floats in float64."""
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if floating else value


class Evaluator:
    """Evaluates the nodes of a plan; every value has one dimension for each axis."""

    def __init__(self, plan: Plan, graph: Graph, tensors: dict[str, torch.Tensor]):
        self.plan = plan
        loops = plan.loops
        self.domain: Label = (*loops.outer, *loops.reduced, *loops.row)
        self.tensors = tensors
        self.sizes = {
            symbol: tensors[f"input.{place}"].shape[dim]
            for symbol, (place, dim) in graph.symbols.items()
        }
        self.values: dict[int, torch.Tensor] = {}
        for n in plan.nodes:
            self.values[n] = self._value(plan.expression.nodes[n])

    def size(self, axis: int) -> int:
        return int(evaluate(self.plan.expression.axes[axis].size, self.sizes))

    def output(self, place: int) -> torch.Tensor:
        """Output `place`, laid out as the reference returns it."""
        ref = self.plan.expression.outputs[place]
        dims = self.plan.expression.axes.dims(ref.dims)
        value = self.values[ref.node].expand([self.size(axis) for axis in self.domain])
        order = [self.domain.index(axis) for label in dims for axis in label]
        rest = [d for d in range(len(self.domain)) if d not in order]
        laid = value.permute([*order, *rest])
        laid = laid[(..., *([0] * len(rest)))] if rest else laid
        shape = [torch.Size([self.size(a) for a in label]).numel() for label in dims]
        return laid.reshape(shape)

    def _value(self, node: Any) -> torch.Tensor:
        match node:
            case Const(value=value):
                return self._number(value)
            case Size(expression=text):
                return self._number(float(evaluate(text, self.sizes)))
            case Load():
                return self._load(node)
            case Index(label=label, start=start, step=step):
                first, by = evaluate(start, self.sizes), evaluate(step, self.sizes)
                (axis,) = label
                return self._along({axis: 1}, torch.arange(self.size(axis)) * by + first)
            case Apply(function=function, args=args):
                given = [self.values[arg] for arg in args]
                if function == "cast" and node.kind in ("f32", "f64"):
                    return given[0].double()
                return (FUNCTIONS.get(function) or getattr(torch, function))(*given)
            case Reduce(function=function, arg=arg, label=label, domain=domain):
                return self._reduce(function, self.values[arg], label, domain)
            case Pick(arg=arg, index=index, label=label):
                (axis,) = label
                dim = self.domain.index(axis)
                value = self.values[arg]
                where = self.values[index].expand([*value.shape[:dim], 1, *value.shape[dim + 1 :]])
                return value.gather(dim, where)
        raise AssertionError(node)

    def _number(self, value: Any) -> torch.Tensor:
        number = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
        return number.reshape([1] * len(self.domain))

    def _along(self, steps: dict[int, int], flat: torch.Tensor, offset: int = 0) -> torch.Tensor:
        shape = [self.size(a) if a in steps else 1 for a in self.domain]
        return flat.as_strided(shape, [steps.get(a, 0) for a in self.domain], offset)

    def _load(self, load: Load) -> torch.Tensor:
        texts = strides(self.plan.expression.axes, load)
        steps = {axis: int(evaluate(text, self.sizes)) for axis, text in texts.items()}
        flat = wide(self.tensors[load.tensor].contiguous().reshape(-1))
        return self._along(steps, flat, int(evaluate(load.offset, self.sizes)))

    def _reduce(
        self, function: str, value: torch.Tensor, label: Label, domain: Label
    ) -> torch.Tensor:
        shape = [self.size(a) if a in domain else 1 for a in self.domain]
        dims = [self.domain.index(axis) for axis in label]
        value = value.expand(shape)
        if function == "sum":
            return value.sum(dims, keepdim=True)
        if function in ("max", "min"):
            return (torch.amax if function == "max" else torch.amin)(value, dims, keepdim=True)
        kept = [d for d in range(len(shape)) if d not in dims]
        flat = value.permute([*kept, *dims]).flatten(len(kept))
        found = flat.prod(-1) if function == "prod" else getattr(torch, function)(flat, -1)
        return found.reshape([size if d in kept else 1 for d, size in enumerate(shape)])


@pytest.mark.parametrize("name", COVERED)
def test_a_graph_means_what_the_reference_computes(name: str) -> None:
    reference = COVERED[name]
    graph = graph_of(reference)
    plan = plan_of(graph)
    assert plan.loops.family == reference.family
    module = reference.module()
    torch.manual_seed(1)
    model = module.Model().eval()
    inputs = module.get_inputs()
    tensors = {f"input.{i}": x for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)}
    state = itertools.chain(model.named_parameters(), model.named_buffers())
    tensors |= {f"state.{key}": value.detach() for key, value in state}
    evaluator = Evaluator(plan, graph, tensors)
    with torch.no_grad():
        expected = model.double()(*[wide(x) for x in inputs])
    wanted = [x for x in torch.utils._pytree.tree_leaves(expected) if isinstance(x, torch.Tensor)]
    assert len(wanted) == len(plan.outputs)
    for place, want in enumerate(wanted):
        got = evaluator.output(place)
        assert got.shape == want.shape
        rtol = LOOSE.get(name, 1e-9)
        torch.testing.assert_close(got.double(), want.double(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_family_covers_is_refused_by_its_reason(name: str) -> None:
    with pytest.raises(NotCovered, match=REFUSED[name].says):
        plan_of(graph_of(REFUSED[name]))


def test_sizes_stay_open() -> None:
    graph = graph_of(COVERED["softmax"])
    assert not graph.exact
    assert len(graph.symbols) == 2


def test_a_dimension_that_was_one_is_covered_by_a_case_where_it_is_not() -> None:
    cases = (Case(name="one", args={"a": 1}), Case(name="many"), Case(name="x", held_out=True))
    task = Task(name="x", reference=COVERED["softmax"].source, cases=cases)
    (proposal,) = TemplateEngine().propose(task, (), (), 1)
    assert "Holds for" not in proposal.candidate.source


def test_branches_on_sizes_become_conditions() -> None:
    reference = Reference("return u * 2 if u.shape[0] > 3 else u + 1", "pointwise")
    graph = graph_of(reference)
    assert any("3" in guard for guard in graph.guards)
    plan = plan_of(graph)
    assert "_require((s" in source_of(plan, graph, first_choices(plan))


def test_cases_that_lead_to_different_operators_are_refused() -> None:
    reference = Reference("return u * 2 if u.shape[0] > 3 else u.exp()", "pointwise")
    cases = (Case(name="few", args={"a": 2}), Case(name="many", args={"a": 9}))
    task = Task(name="x", reference=reference.source, cases=cases)
    with pytest.raises(NothingToPropose, match="cases lead to different operators"):
        TemplateEngine().propose(task, (), (), 1)


def test_names_tell_the_engine_nothing() -> None:
    plain = COVERED["softmax_by_hand"]
    misleading = Reference(
        plain.body.replace("torch.exp(u - u.max", "torch.exp(matmul - matmul.max"),
        "row",
        args="matmul",
        init="self.conv = torch.nn.Identity()",
    )
    written = [
        _without_symbols(source_of(plan_of(graph), graph, Choices()))
        for graph in (graph_of(plain), graph_of(misleading))
    ]
    assert written[0] == written[1]


def _without_symbols(source: str) -> str:
    return re.sub(r"\bs\d+\b", "s", source)
