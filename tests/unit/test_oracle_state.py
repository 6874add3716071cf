"""Parameters: secret where they were constant, of their own kind, and alike on both sides."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from oracle_bench import Bench, source_of

pytestmark = pytest.mark.unit

MIXED = source_of(
    """
    x = F.batch_norm(x, self.n.running_mean, self.n.running_var, self.n.weight, self.n.bias)
    return self.slope(x) @ self.l.weight.T + self.shift * self.table.float()
    """,
    "torch.randn(12, 40)",
    init="self.n = nn.BatchNorm1d(40)\n"
    "self.l = nn.Linear(40, 40, bias=False)\n"
    "self.slope = nn.PReLU()\n"
    "self.shift = nn.Parameter(torch.zeros(40))\n"
    'self.register_buffer("table", torch.arange(40))',
    args="self, x",
)


def test_constants_become_secret_values_of_their_kind() -> None:
    bench, other = Bench(MIXED, seed=1), Bench(MIXED, seed=2)
    state = bench.state
    assert bool((state["n.weight"] > 0.7).all())
    assert bool((state["n.running_var"] > 0).all())
    assert float(state["slope.weight"]) > 0
    for name in ("n.weight", "n.bias", "n.running_mean", "n.running_var", "shift"):
        assert state[name].unique().numel() == 40
        assert not torch.equal(state[name], other.state[name])
    assert torch.equal(state["table"], torch.arange(40))
    assert int(state["n.num_batches_tracked"]) == 0


def test_drawn_parameters_stay_as_the_shared_seed_made_them() -> None:
    bench = Bench(MIXED)
    torch.manual_seed(bench.opened.param_seed)
    namespace: dict[str, type] = {}
    exec(MIXED, namespace)
    model = namespace["Model"]()
    assert torch.equal(model.state_dict()["l.weight"], bench.state["l.weight"])


def test_copied_state_is_what_the_reference_computes_with() -> None:
    def kernel(x: torch.Tensor, **state: torch.Tensor) -> torch.Tensor:
        x = F.batch_norm(
            x,
            state["n_running_mean"],
            state["n_running_var"],
            state["n_weight"],
            state["n_bias"],
        )
        product = F.prelu(x, state["slope_weight"]) @ state["l_weight"].T
        return product + state["shift"] * state["table"]

    assert Bench(MIXED).climb(kernel) is None
    zero = Bench(MIXED).climb(lambda x, **s: kernel(x, **{**s, "shift": torch.zeros(40)}))
    assert zero is not None


def test_seeded_state_stays_as_initialised() -> None:
    bench = Bench(MIXED, mode="seeded")
    torch.manual_seed(bench.opened.param_seed)
    namespace: dict[str, type] = {}
    exec(MIXED, namespace)
    model = namespace["Model"]().eval()

    @torch.no_grad()
    def kernel(x: torch.Tensor, **_: torch.Tensor) -> torch.Tensor:
        return model(x)

    assert bench.climb(kernel) is None


def test_writing_the_state_again_changes_nothing() -> None:
    bench = Bench(MIXED)
    first = bench.stage("as_given", 0)[0]
    before = {name: tensor.clone() for name, tensor in bench.state.items()}
    runner = bench.examiner._runner
    bench.examiner.write_state("copied", bench.state_offsets)
    assert bench.examiner._runner is runner
    assert bench.examiner.stage(0, "as_given", 0, bench.input_offsets).call_seed == first.call_seed
    assert all(torch.equal(before[name], bench.state[name]) for name in before)


def test_zeros_that_must_not_turn_negative_do_not() -> None:
    source = source_of(
        "return x / (self.second.sqrt() + 1e-3)",
        "torch.randn(20, 30)",
        init='self.register_buffer("second", torch.zeros(30))',
        args="self, x",
    )
    second = Bench(source).state["second"]
    assert bool((second > 0).all())


def test_constants_stay_where_the_reference_bears_no_others() -> None:
    source = source_of(
        """
        if not bool((self.one == 1).all()):
            raise ValueError("changed")
        return x * self.one
        """,
        "torch.randn(20, 30)",
        init="self.one = nn.Parameter(torch.ones(30))",
        args="self, x",
    )
    assert bool((Bench(source).state["one"] == 1).all())


def test_tensors_among_constructor_arguments_are_written() -> None:
    source = source_of("return x * self.w", "torch.randn(20, 30)", args="self, x")
    source = source.replace("def __init__(self):", "def __init__(self, w):").replace(
        "pass", "self.w = w"
    )
    source = source.replace(
        "def get_init_inputs():\n    return []",
        "def get_init_inputs():\n    return [torch.randn(30)]",
    )
    bench = Bench(source)
    assert bench.opened.init.layout == {"list": [{"t": 0}]}
    bench.examiner.write_init(bench.input_offsets)
    weight = bench.inputs()[0].flatten()[:30]
    assert bench.climb(lambda x: x * weight) is None
    assert bench.climb(lambda x: x) is not None
