"""Bytes that a task must move at least, and those that nothing can avoid."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from toprung.errors import TaskError
from toprung.judge.clock import work
from toprung.judge.clock.provable import has_free_values
from toprung.judge.clock.work import count_work

pytestmark = pytest.mark.unit


class Reference(nn.Module):
    """A module of one function, with its parts as parameters."""

    def __init__(self, function: Callable, *parts: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.parts = nn.ModuleList(parts)

    def forward(self, *inputs):
        return self.function(*self.parts, *inputs)


def r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def bytes_of(function: Callable, *inputs, parts: tuple[nn.Module, ...] = ()) -> tuple[int, int]:
    """Bytes read and written, which real tensors must confirm."""
    model = Reference(function, *parts)
    counted = count_work(model, list(inputs))
    real = work._count(model, list(inputs), on_meta=False)
    assert (real.min_bytes, real.written_bytes) == (counted.min_bytes, counted.written_bytes)
    return counted.min_bytes - counted.written_bytes, counted.written_bytes


X = 4 * 8 * 16  # bytes of `r(8, 16)`


def test_every_input_and_output_once() -> None:
    def function(x, y):
        return x @ y, (x * x).sum()

    assert bytes_of(function, r(8, 16), r(16, 4)) == (X + 4 * 16 * 4, 4 * 8 * 4 + 4)


def test_an_unused_input_costs_nothing() -> None:
    assert bytes_of(lambda x, _: x.exp(), r(8, 16), r(99, 99)) == (X, X)


def test_an_input_of_which_only_the_shape_is_used_costs_nothing() -> None:
    assert bytes_of(lambda x, y: x + torch.zeros_like(y), r(8, 16), r(8, 16)) == (X, X)


def test_parameters_and_buffers_count() -> None:
    parts = (nn.Linear(16, 4), nn.BatchNorm1d(4).eval())
    read = X + 4 * (16 * 4 + 4) + 4 * (4 * 4)
    assert bytes_of(lambda m, n, x: n(m(x)), r(8, 16), parts=parts) == (read, 4 * 8 * 4)


def test_tied_parameters_count_once() -> None:
    one, two = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
    two.weight = one.weight
    assert bytes_of(lambda m, n, x: n(m(x)), r(8, 16), parts=(one, two)) == (X + 4 * 256, X)


def test_plain_tensor_attributes_and_globals_count() -> None:
    scale = r(16)
    model = Reference(lambda x: x * scale)
    assert count_work(model, [r(8, 16)]).min_bytes == 2 * X + 64
    model = nn.Module()
    model.scale, model.forward = scale, lambda x: x * model.scale
    assert count_work(model, [r(8, 16)]).min_bytes == 2 * X + 64


def test_tensors_made_inside_are_not_read() -> None:
    assert bytes_of(lambda x: x + torch.arange(16) + torch.tensor(1.5), r(8, 16)) == (X, X)


def test_a_slice_costs_its_own_size() -> None:
    assert bytes_of(lambda x: x[:, :4].exp(), r(8, 16)) == (X // 4, X // 4)


def test_slices_add_up_to_at_most_the_whole() -> None:
    def function(x):
        return x[:, :4] + x[:, 4:8], x[:-1] * x[1:]

    assert bytes_of(function, r(8, 16)) == (X, X // 4 + X - 64)


def test_repeated_elements_are_read_once() -> None:
    assert bytes_of(lambda x: x.exp(), r(8, 1).expand(8, 16)) == (4 * 8, X)
    assert bytes_of(lambda x, y: x + y, r(8, 16), r(16)) == (X + 64, X)


def test_overlapping_windows_are_read_once() -> None:
    assert bytes_of(lambda x: x.unfold(0, 4, 1).sum(1), r(16)) == (64, 4 * 13)


def test_a_gather_reads_no_more_than_it_picks() -> None:
    index = torch.zeros(3, dtype=torch.int64)
    read = 3 * 8 + 3 * 64
    assert bytes_of(lambda m, i: m(i), index, parts=(nn.Embedding(1000, 16),)) == (read, 3 * 64)
    assert bytes_of(lambda x, i: x[i], r(1000, 16), index) == (read, 3 * 64)


def test_an_unchanged_input_as_output_costs_nothing() -> None:
    assert bytes_of(lambda x: x.view(-1), r(8, 16)) == (0, 0)


def test_a_changed_input_is_read_and_written() -> None:
    assert bytes_of(lambda x: x.mul_(2), r(8, 16)) == (X, X)
    assert bytes_of(lambda x: x[0].mul_(2).sum(), r(8, 16)) == (64, 64 + 4)


def test_an_overwritten_input_is_not_read() -> None:
    assert bytes_of(lambda x, y: x.copy_(y), r(8, 16), r(8, 16)) == (X, X)


def test_running_statistics_are_read_and_written() -> None:
    norm = nn.BatchNorm1d(16, affine=False)
    statistics = 2 * 64 + 8
    assert bytes_of(lambda m, x: m(x), r(8, 16), parts=(norm,)) == (X + statistics, X + statistics)


def test_two_outputs_of_one_storage_count_apart() -> None:
    assert bytes_of(lambda x: x.exp().chunk(2), r(8, 16)) == (X, X)
    assert bytes_of(lambda x: [x.exp()] * 2, r(8, 16)) == (X, X)


def test_outputs_in_dicts_are_found() -> None:
    assert bytes_of(lambda x: {"a": x.exp(), "b": (x.sum(), None, 3)}, r(8, 16)) == (X, X + 4)


def test_arguments_stay_as_they_were() -> None:
    norm = nn.BatchNorm1d(16)
    x = r(8, 16)
    before = x.clone(), norm.running_mean.clone(), torch.get_rng_state()
    work._count(Reference(lambda m, x: F.dropout(m(x.mul_(2))), norm), [x], on_meta=False)
    count_work(Reference(lambda m, x: F.dropout(m(x.mul_(2))), norm), [x])
    assert torch.equal(x, before[0]) and torch.equal(norm.running_mean, before[1])
    assert torch.equal(torch.get_rng_state(), before[2])


def test_large_shapes_need_no_memory() -> None:
    x = torch.empty(1 << 20, 1 << 20, device="meta")
    assert count_work(Reference(lambda x: x.softmax(-1)), [x]).min_bytes == 2 * 4 << 40


def test_a_failing_reference_is_the_task_s_fault() -> None:
    with pytest.raises(TaskError, match="shapes cannot be multiplied") as caught:
        count_work(Reference(torch.mm), [r(8, 16), r(8, 16)])
    assert caught.value.hint and "get_inputs" in caught.value.hint


# --- what no kernel can avoid


def unavoidable(function: Callable, *inputs, parts: tuple[nn.Module, ...] = ()) -> int:
    """Bytes of inputs among `must_bytes`."""
    counted = count_work(Reference(function, *parts), list(inputs))
    return counted.must_bytes - counted.written_bytes


WHOLE: dict[str, tuple[Callable, tuple]] = {
    "elementwise": (lambda x: F.gelu(x * 2 + 1), ()),
    "row_softmax": (lambda x: x.softmax(-1), ()),
    "sum": (lambda x: x.sum(), ()),
    "layer_norm": (lambda m, x: m(x), (nn.LayerNorm(16),)),
    "linear_relu_linear_relu": (
        lambda a, b, x: b(a(x).relu()).relu(),
        (nn.Linear(16, 32), nn.Linear(32, 8)),
    ),
    "softmax_of_a_product": (lambda a, x: a(x).softmax(-1), (nn.Linear(16, 8),)),
    "permuted": (lambda x: x.t().reshape(4, 32).contiguous().exp(), ()),
    "converted": (lambda x: x.half().float().sqrt(), ()),
    "in_place": (lambda x: x.clone().mul_(3).add_(1), ()),
    "joined": (lambda x: torch.cat([x, torch.ones(8, 4)], 1), ()),
    "counted": (lambda x: x.logsumexp(1), ()),
}


@pytest.mark.parametrize("name", WHOLE)
def test_inputs_that_leave_a_mark_everywhere_must_be_read(name: str) -> None:
    function, parts = WHOLE[name]
    assert unavoidable(function, r(8, 16), parts=parts) == X


AVOIDABLE: dict[str, tuple[Callable, tuple]] = {
    "cancelled": (lambda x: x - x, ()),
    "residual": (lambda a, x: x + a(x), (nn.Linear(16, 16),)),
    "always_zero": (lambda x: (x.amax(1, keepdim=True) - x.amax(1, keepdim=True)).relu(), ()),
    "mean_of_a_norm": (lambda m, x: m(x).mean(), (nn.LayerNorm(16),)),
    "sum_of_a_softmax": (lambda x: x.softmax(-1).sum(-1), ()),
    "softmax_of_one": (lambda x: x.reshape(-1, 1).softmax(-1), ()),
    "clamped_twice": (lambda x: x.clamp(0, 1).clamp(2, 3), ()),
    "clamped_after_exp": (lambda x: (-x.exp()).relu(), ()),
    "times_zero": (lambda x: x * 0, ()),
    "to_the_power_of_zero": (lambda x: x**0, ()),
    "floored": (lambda x: torch.div(x, 1e9, rounding_mode="floor"), ()),
    "masked": (lambda x: x * torch.tril(torch.ones(8, 16)), ()),
    "selected": (lambda x: torch.where(x.isnan(), 1.0, x), ()),
    "triangle": (torch.triu, ()),
    "sliced": (lambda x: x.exp()[:, :4], ()),
    "gathered": (lambda x: x[torch.tensor([0, 1])], ()),
    "strided_convolution": (
        lambda m, x: m(x.view(1, 8, 16)),
        (nn.Conv1d(8, 4, kernel_size=1, stride=2),),
    ),
    "rounded_to_integers": (lambda x: x.long(), ()),
    "unknown": (torch.linalg.svdvals, ()),
    "dead": (lambda x: (x.exp(), torch.ones(2))[1], ()),
}


@pytest.mark.parametrize("name", AVOIDABLE)
def test_inputs_that_algebra_may_save_do_not_count(name: str) -> None:
    function, parts = AVOIDABLE[name]
    assert unavoidable(function, r(8, 16), parts=parts) == 0


def test_both_factors_of_a_product_must_be_read_unless_they_are_one() -> None:
    assert unavoidable(torch.mm, r(8, 16), r(16, 4)) == X + 256
    assert unavoidable(lambda a: a @ a.t(), r(8, 16)) == 0


def test_attention_needs_its_keys_and_values_whole() -> None:
    q, k, v = r(1, 2, 8, 4), r(1, 2, 8, 4), r(1, 2, 8, 4)
    attend = F.scaled_dot_product_attention
    assert unavoidable(attend, q, k, v) == 3 * 256
    # The first query sees one key: its weight is 1 whatever the query is.
    assert unavoidable(lambda a, b, c: attend(a, b, c, is_causal=True), q, k, v) == 2 * 256
    mask = torch.ones(8, 8, dtype=torch.bool)
    assert unavoidable(lambda a, b, c: attend(a, b, c, attn_mask=mask), q, k, v) == 0


def test_parameters_may_be_prepared_and_integers_packed() -> None:
    assert unavoidable(lambda m, x: m(x), r(8, 16), parts=(nn.Linear(16, 4),)) == X
    assert unavoidable(lambda x: x.sum(), torch.ones(8, dtype=torch.int64)) == 0


def test_structure_in_the_values_is_respected() -> None:
    square = r(32, 32)
    assert has_free_values(square)
    assert not has_free_values(square + square.t())
    assert not has_free_values(square.triu())
    assert not has_free_values(torch.ones(4, 5))
    assert has_free_values(r(1500, 1500).t()) and not has_free_values(r(1500, 1500).tril())
    assert has_free_values(torch.tensor(1.5)) is False
    assert not has_free_values(torch.eye(32)[torch.randint(0, 32, (64,))])
    assert has_free_values(r(1)) is False  # one value is a constant
    assert unavoidable(torch.mm, square, r(32, 4)) == 4 * 32 * (32 + 4)
    assert unavoidable(torch.mm, square + square.t(), r(32, 4)) == 0


def test_outputs_must_be_written() -> None:
    counted = count_work(Reference(lambda x: x - x), [r(8, 16)])
    assert counted.must_bytes == counted.written_bytes == X
