"""What runs beside a candidate: it loads, builds, calls, hands out, and notices odd results."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from toprung.errors import Refuted
from toprung.judge.child.program import Program
from toprung.judge.wire.arena import Arena
from toprung.judge.wire.protocol import Adopt, Call, Called, Construct, Load, OutputSlot, Recall
from toprung.judge.wire.trees import describe, spec_of, tensor_at
from toprung.model.tensor import TensorSpec

pytestmark = pytest.mark.unit

HEAD = "import torch\n\n"
SHAPE = (4, 8)
INPUT, OUTPUT = 0, 1024


def program(tmp_path: Path, body: str, main: str = "kernel.py", **files: str) -> Program:
    (tmp_path / main).write_text(body if main.endswith(".cpp") else HEAD + body)
    for name, text in files.items():
        (tmp_path / name.replace("_", ".")).write_text(text)
    made = Program()
    made.arena = Arena.create(1 << 16)
    dsl = "cpp" if main.endswith(".cpp") else "torch"
    made.load(Load(dsl=dsl, folder=str(tmp_path), main=main, target="cpu:native"))
    return made


def call(
    made: Program, x: torch.Tensor, *, buffer: str | None = None, keep: bool = False
) -> Called:
    tree, _ = describe([x])
    assert made.arena is not None
    tensor_at(made.arena, INPUT, tree.specs[0]).copy_(x)
    slots = [OutputSlot(spec=spec_of(x), offset=OUTPUT, leaf=0)]
    if buffer:
        slots.append(
            OutputSlot(spec=TensorSpec.contiguous("float32", (8,)), offset=4096, buffer=buffer)
        )
    return made.call(Call(inputs=tree, offsets=(INPUT,), outputs=tuple(slots), seed=7, keep=keep))


def output(made: Program, x: torch.Tensor) -> torch.Tensor:
    assert made.arena is not None
    return tensor_at(made.arena, OUTPUT, spec_of(x)).clone()


def built(made: Program, *init: object, train: bool = False) -> Program:
    tree, _ = describe(list(init))
    made.construct(Construct(init=tree, seed=1, train=train))
    return made


def test_a_function_gets_inputs_and_parameters_by_keyword(tmp_path: Path) -> None:
    made = program(tmp_path, "def kernel(x, *, fc_weight):\n    return x * fc_weight\n")
    built(made)
    from toprung.judge.wire.protocol import StateSpec

    weight = torch.randn(8)
    entry = StateSpec(name="fc.weight", spec=spec_of(weight), kind="parameter")
    assert made.arena is not None
    tensor_at(made.arena, 8192, entry.spec).copy_(weight)
    made.adopt(Adopt(state=(entry,), offsets=(8192,)))
    x = torch.randn(SHAPE)
    called = call(made, x)
    assert called.filled and not called.strange
    assert torch.equal(output(made, x), x * weight)
    assert called.elapsed_ns > 0


def test_a_module_is_seeded_and_prepared(tmp_path: Path) -> None:
    body = """
class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = torch.nn.Linear(size, size, bias=False)
    def prepare(self):
        self.ready = True
    def forward(self, x):
        assert self.ready and not self.training
        return self.fc(x)
"""
    made = built(program(tmp_path, body), 8)
    made.adopt(Adopt())
    torch.manual_seed(1)
    wanted = torch.nn.Linear(8, 8, bias=False)
    x = torch.randn(SHAPE)
    assert call(made, x).filled
    assert torch.allclose(output(made, x), wanted(x))


def test_buffers_are_restored_before_each_call_and_handed_out(tmp_path: Path) -> None:
    body = """
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(8))
    def forward(self, x):
        self.seen += x.sum(0)
        return x + 0
"""
    made = built(program(tmp_path, body), train=True)
    made.adopt(Adopt())
    x = torch.ones(SHAPE)
    for _ in range(2):
        assert call(made, x, buffer="seen").filled
        assert made.arena is not None
        seen = tensor_at(made.arena, 4096, TensorSpec.contiguous("float32", (8,)))
        assert torch.equal(seen, torch.full((8,), 4.0))
    assert not call(made, x, buffer="missing").filled


LAZY = """
class Lazy(torch.Tensor):
    pass
def kernel(x):
    return (x * 2).as_subclass(Lazy)
"""
PATCHED = """
def kernel(x):
    y = x * 2
    y.later = lambda: None
    return y
"""


@pytest.mark.parametrize(("body", "words"), [(LAZY, "Lazy"), (PATCHED, "later")])
def test_a_tensor_that_is_more_than_a_tensor_is_strange(
    tmp_path: Path, body: str, words: str
) -> None:
    made = built(program(tmp_path, body))
    assert words in (call(made, torch.ones(SHAPE)).strange or "")


def test_aliases_and_overlaps_are_seen(tmp_path: Path) -> None:
    x = torch.ones(SHAPE)
    made = built(program(tmp_path, "def kernel(x):\n    return x[:]\n"))
    assert call(made, x).aliases == ((0, 0),)
    made = built(program(tmp_path, "def kernel(x):\n    return x[:1].clone().expand(4, 8)\n"))
    assert call(made, x).overlapping == (0,)


def test_interleaved_views_do_not_overlap(tmp_path: Path) -> None:
    x = torch.ones(SHAPE)
    body = "def kernel(x):\n    return torch.stack([x, x], 2).flatten(1).view(4, 8, 2).unbind(2)\n"
    assert call(built(program(tmp_path, body)), x).overlapping == ()


def test_earlier_results_are_held_and_handed_out_again(tmp_path: Path) -> None:
    kept = "kept = torch.zeros(4, 8)\ndef kernel(x):\n    return kept.copy_(x)\n"
    for body, same in (("def kernel(x):\n    return x * 2\n", True), (kept, False)):
        made = built(program(tmp_path, body))
        first = torch.randn(SHAPE)
        call(made, first, keep=True)
        before = output(made, first)
        call(made, torch.randn(SHAPE))
        slot = OutputSlot(spec=spec_of(first), offset=OUTPUT, leaf=0)
        assert made.recall(Recall(outputs=(slot,))).filled
        assert torch.equal(output(made, first), before) == same


def test_another_shape_or_type_fills_nothing(tmp_path: Path) -> None:
    x = torch.ones(SHAPE)
    for expression in ("x[:2] + 0", "x.double()", "[]"):
        made = built(program(tmp_path, f"def kernel(x):\n    return {expression}\n"))
        assert not call(made, x).filled


def test_what_is_not_made_of_tensors_is_refuted(tmp_path: Path) -> None:
    made = built(program(tmp_path, "def kernel(x):\n    return object()\n"))
    with pytest.raises(Refuted, match="object"):
        call(made, torch.ones(SHAPE))


def test_a_plain_c_file_is_called_through_its_sidecar(tmp_path: Path) -> None:
    code = (
        'extern "C" void twice(const float* x, float* y, long n) {'
        " for (long i = 0; i < n; i++) y[i] = 2 * x[i]; }"
    )
    toml = '[candidate]\nentry = "twice"\nargs = ["input.0", "output.0", "input.0.numel"]\n'
    made = built(program(tmp_path, code, main="k.cpp", k_toml=toml))
    made.adopt(Adopt())
    x = torch.randn(SHAPE)
    assert call(made, x).filled
    assert torch.equal(output(made, x), 2 * x)
