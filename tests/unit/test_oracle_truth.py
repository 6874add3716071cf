"""The float64 truth: casts that mean something stay, draws are replayed, state is restored."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from oracle_arithmetic import bf16
from oracle_bench import Bench, Kernel, source_of

from toprung.judge.oracle.execution import Plan, Runner
from toprung.judge.oracle.products import Products
from toprung.judge.oracle.randomness import Recording
from toprung.judge.oracle.reference import Reference
from toprung.judge.wire.trees import describe
from toprung.model.task import Task

pytestmark = pytest.mark.unit


def truth(source: str, train: bool = False) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """What the reference gives at its declared precision and in float64, on the same inputs."""
    bench = Bench(Task(name="t", reference=source, train=train))
    course = bench.examiner._courses[0]
    leaves, plan, recording = course.content.plain(), course.discovery.plan, Recording()
    declared = course.runner.declared(plan, leaves, 3, recording)
    return declared, course.runner.exact(plan, leaves, 3, recording)


def far(declared: torch.Tensor, exact: torch.Tensor) -> float:
    return float((declared.double() - exact).abs().max() / exact.abs().max())


SOURCES: dict[str, tuple[str, bool]] = {
    "a cast to the own type": (
        source_of(
            "return torch.softmax(x.float() * 3, -1, dtype=torch.float32)",
            "torch.randn(20, 50)",
            args="self, x",
        ),
        False,
    ),
    "a float32 constant": (
        source_of(
            "return x @ torch.tensor([[0.5], [2.0]], dtype=torch.float32) / 3",
            "torch.randn(20, 2)",
            args="self, x",
        ),
        False,
    ),
    "state made in forward": (
        source_of(
            """
            h = torch.zeros(x.shape[0], 8)
            for t in range(4):
                h = torch.tanh(h @ self.w + x[:, t])
            return h
            """,
            "torch.randn(20, 4, 8)",
            init="self.w = nn.Parameter(torch.randn(8, 8) / 3)",
            args="self, x",
        ),
        False,
    ),
    "a tensor that is no buffer": (
        source_of(
            "return x @ self.table[0]",
            "torch.randn(20, 8)",
            init="self.table = [torch.randn(8, 8)]",
            args="self, x",
        ),
        False,
    ),
    "writing into an own result": (
        source_of(
            """
            y = torch.empty(x.shape)
            y[:, ::2] = x[:, ::2] / 3
            y[:, 1::2] = x[:, 1::2].exp()
            return y
            """,
            "torch.randn(20, 50)",
            args="self, x",
        ),
        False,
    ),
    "dropout": (
        source_of("return F.dropout(x / 3, 0.4)", "torch.randn(50, 50)", args="self, x"),
        True,
    ),
    "noise": (
        source_of(
            "return (x + torch.rand_like(x) * torch.randn(x.shape[1])) / 3",
            "torch.randn(50, 50)",
            args="self, x",
        ),
        False,
    ),
    "noise of numpy and Python": (
        source_of(
            "import random, numpy\nreturn x / 3 + random.random() + float(numpy.random.rand())",
            "torch.randn(50, 50)",
            args="self, x",
        ),
        False,
    ),
    "random slopes": (
        source_of("return F.rrelu(x / 3, training=True)", "torch.randn(50, 50)", args="self, x"),
        False,
    ),
    "batch statistics": (
        source_of(
            "return self.n(x)",
            "torch.randn(8, 4, 5, 5)",
            init="self.n = nn.BatchNorm2d(4)",
            args="self, x",
        ),
        True,
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_float64_differs_from_the_declared_precision_by_rounding_only(name: str) -> None:
    declared, exact = truth(*SOURCES[name])
    floats = [(d, e) for d, e in zip(declared, exact, strict=True) if d.is_floating_point()]
    for one, other in floats:
        assert other.dtype == torch.float64
        assert far(one, other) < 1e-6
    one, other = floats[0]
    assert not torch.equal(one.double(), other), "the float64 run was not one"


@pytest.mark.parametrize(("dtype", "unit"), [("torch.bfloat16", 2**-8), ("torch.float16", 2**-11)])
def test_a_cast_that_narrows_stays(dtype: str, unit: float) -> None:
    source = source_of(
        f"return x.to({dtype}).to(torch.float32) / 3", "torch.randn(50, 50)", args="self, x"
    )
    declared, exact = truth(source)
    assert far(declared[0], exact[0]) < 1e-7
    bench = Bench(source)
    narrow = getattr(torch, dtype.partition(".")[2])
    assert bench.climb(lambda x: x.to(narrow).float() / 3) is None
    assert bench.climb(lambda x: x / 3) is not None


def test_products_of_narrowed_operands_are_exact_in_the_truth() -> None:
    source = source_of(
        "return (a.bfloat16() @ b.bfloat16()).float()",
        "torch.randn(40, 200), torch.randn(200, 30)",
        args="self, a, b",
    )
    _, exact = truth(source)
    bench = Bench(source)
    leaves = bench.examiner._courses[0].content.plain()
    want = bf16(leaves[0]).double() @ bf16(leaves[1]).double()
    assert torch.allclose(exact[0], want, rtol=1e-12)
    assert bench.climb(lambda a, b: bf16(a) @ bf16(b)) is None, "more exact than the reference"


def test_bits_are_those_of_the_declared_type() -> None:
    source = source_of(
        "return x.view(torch.int32) & 0x7fffff, x / 3", "torch.randn(50, 50)", args="self, x"
    )
    declared, exact = truth(source)
    assert torch.equal(declared[0], exact[0])


def test_where_float64_fails_the_declared_precision_stands_in() -> None:
    source = source_of(
        """
        assert x.dtype == torch.float32
        return torch.softmax(x, -1)
        """,
        "torch.randn(64, 200)",
        args="self, x",
    )
    bench = Bench(source)
    staged, _ = bench.stage("as_given")
    assert "declared precision" in (staged.note or "")
    assert bench.climb(lambda x: torch.softmax(x.double(), -1).float()) is None
    assert bench.climb(lambda x: torch.softmax(bf16(x), -1)) is not None


def test_a_candidate_that_draws_as_the_reference_does_passes() -> None:
    source = source_of("return F.dropout(x, 0.5)", "torch.randn(50, 60)", args="self, x")
    bench = Bench(Task(name="dropout", reference=source, train=True))
    assert bench.climb(lambda x: F.dropout(x, 0.5)) is None
    assert bench.climb(lambda x: x) is not None
    assert bench.climb(torch.zeros_like) is not None


def test_modules_are_put_in_eval_unless_the_task_trains() -> None:
    source = source_of(
        "return self.d(x)", "torch.randn(50, 60)", init="self.d = nn.Dropout()", args="self, x"
    )
    assert Bench(source).climb(lambda x: x) is None
    assert Bench(Task(name="d", reference=source, train=True)).climb(lambda x: x) is not None


def test_float16_products_accumulate_in_float32() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(30, 400).half(), torch.randn(400, 20).half()
    with Products():
        product, sums = a @ b, F.linear(a, b.T.contiguous(), torch.ones(20).half())
    assert torch.equal(product, (a.float() @ b.float()).half())
    assert sums.dtype == torch.float16


def runner_of(source: str) -> tuple[Runner, Plan, list[torch.Tensor]]:
    task = Task(name="t", reference=source)
    reference = Reference(task, 1)
    tree, leaves = reference.draw(task.cases[0], 1)
    model = reference.build([], 1)
    plan = Plan("default", tree.layout, {"t": 0}, ())
    return Runner(model, reference), plan, leaves


def test_a_float64_run_leaves_no_trace() -> None:
    source = source_of("return x / 3", "torch.randn(8, 8)", args="self, x")
    runner, plan, leaves = runner_of(source)
    before = [leaf.clone() for leaf in leaves]
    runner.exact(plan, leaves, 1, Recording())
    assert torch.get_default_dtype() == torch.float32
    assert all(torch.equal(a, b) for a, b in zip(before, leaves, strict=True))


STATEFUL = source_of(
    """
    self.seen.add_(1)
    self.total.add_(x.sum(0))
    x.mul_(2)
    return x + self.total
    """,
    "torch.randn(16, 40)",
    init='self.register_buffer("seen", torch.zeros((), dtype=torch.int64))\n'
    'self.register_buffer("total", torch.randn(40))',
    args="self, x",
)


def stateful(x: torch.Tensor, seen: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    seen += 1
    total += x.sum(0)
    x *= 2
    return x + total


def forgetting(what: str) -> Kernel:
    def kernel(x: torch.Tensor, seen: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        kept = {"x": x.clone(), "seen": seen.clone(), "total": total.clone()}
        result = stateful(x, seen, total)
        {"x": x, "seen": seen, "total": total}[what].copy_(kept[what])
        return result

    return kernel


def test_buffers_and_inputs_that_change_are_outputs() -> None:
    bench = Bench(STATEFUL)
    sources = [(output.source, output.index, output.name) for output in bench.case.outputs]
    assert sources == [
        ("return", 0, None),
        ("input", 0, None),
        ("buffer", None, "seen"),
        ("buffer", None, "total"),
    ]
    assert bench.climb(stateful) is None
    for what, told in {"x": "input 0", "seen": "buffer 'seen'", "total": "buffer 'total'"}.items():
        assert told in (bench.climb(forgetting(what)) or "")


def test_nested_results_keep_their_nesting() -> None:
    source = source_of(
        "return {'a': x.sum(-1), 'b': (x * 2, [x > 0, x.argmax(-1)])}",
        "torch.randn(40, 50)",
        args="self, x",
    )
    bench = Bench(source)
    assert [output.spec.dtype for output in bench.case.outputs] == [
        "float32",
        "float32",
        "bool",
        "int64",
    ]

    def right(x: torch.Tensor) -> dict[str, object]:
        return {"a": x.sum(-1), "b": (x + x, [x > 0, x.argmax(-1)])}

    def wrong(x: torch.Tensor) -> dict[str, object]:
        return {"a": x.sum(-1), "b": (x + x, [x >= 0, x.argmin(-1)])}

    assert bench.climb(right) is None
    assert "output 3" in (bench.climb(wrong) or "")
    tree, _ = describe(right(torch.randn(40, 50)))
    assert tree.layout == bench.case.returned.layout
