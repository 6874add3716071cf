"""Inputs: secret whatever the task seeds, fresh in every draw, and of the task's own structure."""

from __future__ import annotations

import pytest
import torch
from oracle_bench import CHECKED, Bench, source_of

from toprung.judge.oracle.content import Content
from toprung.judge.oracle.families import Dose
from toprung.judge.oracle.plants import plant
from toprung.judge.oracle.randomness import generator
from toprung.judge.oracle.reference import Reference
from toprung.judge.oracle.structure import Structure, observe
from toprung.model.task import FAMILIES, Case, Task

pytestmark = pytest.mark.unit


def content_of(inputs: str, seed: int = 1) -> Content:
    source = source_of("return args[0]", inputs, args="self, *args")
    task = Task(name="t", reference="import numpy, random\n" + source)
    return Content.of(Reference(task, seed), Case(), seed)


SEEDED = {
    "manual_seed": "(torch.manual_seed(0), torch.randn(50))[1]",
    "a generator": "torch.randn(50, generator=torch.Generator().manual_seed(0))",
    "in place": "torch.empty(50).normal_(generator=torch.Generator().manual_seed(0))",
    "numpy's seed": "(numpy.random.seed(0), torch.from_numpy(numpy.random.rand(50)))[1]",
    "numpy's generator": "torch.from_numpy(numpy.random.default_rng(0).random(50))",
    "numpy's state": "torch.from_numpy(numpy.random.RandomState(0).rand(50))",
    "Python's seed": "(random.seed(0), torch.tensor([random.random() for _ in range(50)]))[1]",
    "randperm": "(torch.manual_seed(0), torch.randperm(50))[1]",
}


@pytest.mark.parametrize("name", SEEDED)
def test_a_tasks_own_seed_fixes_nothing(name: str) -> None:
    one, same, other = (content_of(SEEDED[name], seed).plain()[0] for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_content_depends_on_seed_family_and_draw_alone() -> None:
    source = source_of("return torch.softmax(x, -1)", "torch.randn(40, 60)", args="self, x")
    bench, again = Bench(source, seed=4), Bench(source, seed=4)
    again.stage("heavy_tails", 9)  # another history
    seen: list[torch.Tensor] = []
    for family in CHECKED:
        for draw in (0, 1):
            inputs = bench.stage(family, draw)[1][0]
            assert torch.equal(inputs, again.stage(family, draw)[1][0])
            assert not any(torch.equal(inputs, other) for other in seen)
            seen.append(inputs)
    assert not torch.equal(seen[0], Bench(source, seed=5).stage("as_given", 0)[1][0])


TENSORS = {
    "symmetric": "(lambda a: a + a.mT)(torch.randn(3, 20, 20))",
    "definite": "(lambda a: a @ a.mT + 20 * torch.eye(20))(torch.randn(20, 20))",
    "triangular": "torch.tril(torch.randn(20, 20))",
    "diagonal": "torch.diag(torch.randn(20))",
    "one_hot": "torch.eye(10)[torch.randint(0, 10, (30,))]",
    "sorted": "torch.randn(10, 30).sort(-1).values",
    "probabilities": "torch.randn(10, 30).softmax(0)",
    "log_probabilities": "torch.randn(10, 30).log_softmax(-1)",
    "unit_norm": "torch.nn.functional.normalize(torch.randn(20, 30), dim=-1)",
    "nonnegative": "torch.rand(20, 30)",
    "nonpositive": "-torch.rand(20, 30)",
    "positive": "torch.rand(20, 30) + 0.1",
    "sparse": "torch.relu(torch.randn(20, 30))",
    "labels": "torch.randint(0, 2, (300,)) * 2.0 - 1",
    "mask with infinities": "torch.zeros(20, 20).masked_fill(torch.randn(20, 20) > 0, -math.inf)",
    "fixed": "torch.linspace(-1, 1, 50)",
    "boolean": "torch.randn(20, 30) > 0",
    "integers": "torch.randint(3, 900, (20, 30))",
    "permutation": "torch.randperm(200)",
    "complex": "torch.randn(20, 30, dtype=torch.complex64)",
    "plain": "torch.randn(20, 30)",
    "bfloat16": "torch.randn(20, 30).bfloat16()",
    "float16": "torch.randn(20, 30).half()",
    "a vector": "torch.randn(300)",
    "a number": "torch.randn(())",
    "four dimensions": "torch.randn(3, 4, 5, 6)",
}
FOUND = {
    "symmetric": {"symmetric"},
    "definite": {"symmetric", "definite"},
    "triangular": {"triangular", "sparse"},
    "diagonal": {"symmetric", "triangular", "sparse"},
    "one_hot": {"one_hot", "discrete", "probabilities", "unit_norm", "sparse"},
    "sorted": {"sorted"},
    "probabilities": {"probabilities"},
    "log_probabilities": {"log_probabilities"},
    "unit_norm": {"unit_norm"},
    "sparse": {"sparse"},
    "labels": {"discrete"},
    "fixed": {"fixed", "sorted"},
    "permutation": {"distinct"},
    "plain": set(),
    "nonnegative": set(),
}
FLAGS = (
    *("fixed", "discrete", "one_hot", "probabilities", "log_probabilities", "unit_norm"),
    *("symmetric", "definite", "triangular", "sparse", "sorted", "distinct"),
)


def flags(structure: Structure) -> set[str]:
    return {name for name in FLAGS if getattr(structure, name)}


@pytest.mark.parametrize("name", FOUND)
def test_structure_is_found(name: str) -> None:
    assert flags(content_of(TENSORS[name]).structures[0]) == FOUND[name]


def kept(before: Structure, bent: torch.Tensor, other: torch.Tensor) -> None:
    """Assert that values of a family have every structure that the task's own have."""
    after = observe(bent, other)
    assert flags(after) >= flags(before) - {"fixed"}
    assert after.finite == before.finite
    assert before.sign in ("any", after.sign)
    if before.zero_free:
        assert after.zero_free


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in ("as_given", "special_values")])
def test_a_family_keeps_structure(name: str, family: str) -> None:
    content = content_of(TENSORS[name])
    structure, own = content.structures[0], content.plain()[0]
    for strength in (1.0, 0.5, 0.25):
        one = content.draw(family, Dose(strength), "none", 0)  # type: ignore[arg-type]
        two = content.draw(family, Dose(strength), "none", 1)  # type: ignore[arg-type]
        if isinstance(one, str) or isinstance(two, str):
            assert structure.rigid or structure.sorted
            return
        assert one[0].dtype == own.dtype
        assert one[0].shape == own.shape
        kept(structure, one[0], two[0])


def test_inputs_without_room_are_left_as_they_are() -> None:
    content = content_of("torch.randn(20, 30), torch.randint(0, 7, (20,)), torch.rand(20) > 0.5")
    bent = content.draw("heavy_tails", Dose(1.0), "none", 0)
    assert not isinstance(bent, str)
    assert set(bent[1].tolist()) <= set(range(7))
    assert bent[2].dtype == torch.bool
    alone = content_of("torch.randint(0, 7, (20,))").draw("heavy_tails", Dose(1.0), "none", 0)
    assert alone == "no input can take other values: input 0 is integers"


def test_special_values_come_when_asked_for_and_only_then() -> None:
    source = source_of("return torch.relu(x)", "torch.randn(40, 60)", args="self, x")
    bench = Bench(source)
    special = bench.stage("special_values")[1][0]
    assert not bool(special.isfinite().all())
    assert float(special.isfinite().double().mean()) > 0.9
    assert bench.climb(torch.relu, ("special_values",)) is None
    flushed = bench.climb(lambda x: torch.relu(x).nan_to_num(), ("special_values",))
    assert "not finite" in (flushed or "")
    assert all(bool(bench.stage(family)[1][0].isfinite().all()) for family in CHECKED)


@pytest.mark.parametrize("name", [n for n in TENSORS if n != "a number"])
@pytest.mark.parametrize("level", ["strong", "mild", "none"])
def test_planted_elements_keep_structure_and_are_few(name: str, level: str) -> None:
    content = content_of(TENSORS[name])
    structure, own = content.structures[0], content.plain()[0]
    planted = own.clone()
    plant(planted, structure, level, generator(1))  # type: ignore[arg-type]
    changed = int((planted != own).sum())
    movable = structure.rigid is None and not structure.sorted
    free = structure.kind == "integer" and not structure.distinct
    assert changed <= 12
    if level == "none" or not (movable or free):
        assert not changed
    elif level == "strong" and movable:
        assert changed
    other = content.draw("as_given", Dose(1.0), level, 1)  # type: ignore[arg-type]
    assert not isinstance(other, str)
    if structure.finite and structure.kind != "complex":
        kept(structure, planted, other[0])
    if free:
        assert planted.min() >= structure.low
        assert planted.max() <= structure.high
    if level == "mild" and movable:
        assert float(planted.float().abs().max()) <= float(own.float().abs().max())


def test_the_last_column_is_always_planted() -> None:
    for seed in range(20):
        own = torch.randn(50, 70)
        planted = own.clone()
        plant(planted, Structure("float", -4, 4), "strong", generator(seed))
        assert bool((planted != own)[:, -1].any())


def test_what_a_reference_cannot_bear_is_planted_mildly_or_not() -> None:
    probability = source_of(
        "return F.binary_cross_entropy(p, t, reduction='none')",
        "torch.rand(40, 50), torch.randint(0, 2, (40, 50)).float()",
        args="self, p, t",
    )
    bench = Bench(probability)
    assert float(bench.stage("as_given")[1][0].max()) <= 1
    assert bench.examiner._courses[0].habit.level == "mild"
    assert bench.asked()["large_offset"]


def test_a_family_that_the_reference_cannot_bear_is_skipped_with_a_reason() -> None:
    source = source_of("return torch.acos(x)", "torch.rand(40, 50) * 2 - 1", args="self, x")
    reasons = Bench(source).asked()
    assert reasons["as_given"] is None
    assert "not finite" in (reasons["large_offset"] or "")
