"""Shrinking KernelBench-like files to the size of a CPU."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "kernelbench_level1.py"
    spec = spec_from_file_location("kernelbench_level1", path)
    assert spec and spec.loader
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def file(forward: str, sizes: str, inputs: str, init: str = "") -> str:
    return f"""
import torch

class Model(torch.nn.Module):
    def __init__(self, *features):
        super().__init__()
        if features:
            self.linear = torch.nn.Linear(*features)

    def forward(self, *x):
        {forward}

{sizes}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return [{init}]
"""


def test_only_what_reaches_the_inputs_is_halved(benchmark: ModuleType) -> None:
    source = file(
        "return x[0] + 1", "rows = 512 * 128\ncols = 8192\nunused = 10**6", "torch.rand(rows, cols)"
    )
    sizes = benchmark.shrink(source)
    assert set(sizes.changed()) == {"rows", "cols"}
    assert benchmark.cost_on_meta(sizes.source()) <= 1
    (given,) = benchmark.load(sizes.source()).get_inputs()
    assert given.nbytes >= benchmark.MAX_BYTES / 8, "halved further than was needed"


def test_names_are_followed_through_assignments_and_tuples(benchmark: ModuleType) -> None:
    source = file("return x[0]", "n = 1 << 26\nshape = (4, n)\nagain = shape", "torch.rand(*again)")
    assert set(benchmark.shrink(source).changed()) == {"n"}


def test_sizes_that_must_agree_are_halved_together(benchmark: ModuleType) -> None:
    source = file(
        "return x[0] * x[1]", "a = 32768\nb = 32768", "torch.rand(a, 1024), torch.rand(b, 1)"
    )
    changed = benchmark.shrink(source).changed()
    assert changed["a"] == changed["b"]


def test_a_size_that_cannot_change_stays(benchmark: ModuleType) -> None:
    source = file(
        "return self.linear(x[0])",
        "rows = 65536\nwidth = 768\nout = 768",
        "torch.rand(rows, width)",
        "768, out",
    )
    changed = benchmark.shrink(source).changed()
    assert "rows" in changed
    assert "width" not in changed


def test_what_never_fits_is_said(benchmark: ModuleType) -> None:
    with pytest.raises(ValueError, match="no size is left"):
        benchmark.shrink(file("return x[0]", "n = 2", "torch.rand(n, 1 << 26)"))


def test_small_files_stay_as_they_are(benchmark: ModuleType) -> None:
    assert benchmark.shrink(file("return x[0]", "n = 3", "torch.rand(n, n)")).changed() == {}


def test_the_wrapped_reference_is_a_candidate(benchmark: ModuleType) -> None:
    module = benchmark.load(file("return x[0]", "n = 3", "torch.rand(n)") + benchmark.WRAPPED)
    (x,) = module.get_inputs()
    assert (module.ModelNew()(x) == x).all()


def test_files_are_taken_in_the_order_of_their_numbers(
    benchmark: ModuleType, tmp_path: Path
) -> None:
    level = tmp_path / "KernelBench" / "level1"
    level.mkdir(parents=True)
    for name in ("10_a.py", "2_b.py", "1_c.py", "notes.py", "1_c.txt"):
        (level / name).touch()
    names = ["1_c.py", "2_b.py", "10_a.py"]
    assert [file.name for file in benchmark.files_in(tmp_path)] == names
    assert [file.name for file in benchmark.files_in(level)] == names
