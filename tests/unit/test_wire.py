"""The wire between judge and child: bounded, typed, and unimpressed by nonsense."""

from __future__ import annotations

import math
import os
import socket
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from toprung.errors import DeviceError, HarnessError, WireError
from toprung.judge.wire.arena import ALIGNMENT, Arena
from toprung.judge.wire.channel import MAX_MESSAGE, Channel, Closed, Silent
from toprung.judge.wire.protocol import Called, Done, Failure, parse
from toprung.judge.wire.trees import Undescribable, describe, rebuild, spec_of, tensor_at
from toprung.model.tensor import TensorSpec, Tree

pytestmark = pytest.mark.unit


@pytest.fixture
def ends() -> Any:
    left, right = Channel.pair()
    yield left, right
    left.close()
    right.close()


def raw_pair() -> tuple[socket.socket, Channel]:
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return left, Channel(right)


def test_a_message_and_its_descriptors_arrive(ends: tuple[Channel, Channel]) -> None:
    reader, writer = os.pipe()
    ends[0].send({"op": "x", "n": 1}, (writer,))
    os.close(writer)
    message, (fd,) = ends[1].receive(1)
    os.write(fd, b"through")
    os.close(fd)
    assert message == {"op": "x", "n": 1}
    assert os.read(reader, 10) == b"through"
    os.close(reader)


def test_silence_and_the_end_are_told_apart(ends: tuple[Channel, Channel]) -> None:
    with pytest.raises(Silent):
        ends[1].receive(0.01)
    ends[0].close()
    with pytest.raises(Closed):
        ends[1].receive(1)
    with pytest.raises(Closed):
        ends[1].send({})


def test_too_long_a_message_is_refused_on_both_sides() -> None:
    sock, channel = raw_pair()
    with pytest.raises(WireError, match="over the limit"):
        channel.send({"x": "y" * MAX_MESSAGE})
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MAX_MESSAGE)
    sock.send(b" " * (MAX_MESSAGE + 10))
    with pytest.raises(WireError, match="more than"):
        channel.receive(1)
    sock.close()
    channel.close()


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=200))
def test_nonsense_is_a_wire_error_or_an_object(data: bytes) -> None:
    sock, channel = raw_pair()
    sock.send(data)
    try:
        message, _ = channel.receive(1)
        assert isinstance(message, dict)
    except WireError:
        pass
    finally:
        sock.close()
        channel.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([*Called.model_fields, "junk"]), JSON, max_size=8))
def test_a_forged_reply_is_a_reply_or_a_wire_error(message: dict) -> None:
    try:
        reply = parse(Called, message)
        assert isinstance(reply, Called | Failure)
    except WireError:
        pass


def test_replies_are_strict() -> None:
    assert isinstance(parse(Done, {"ok": True}), Done)
    failure = parse(Done, {"ok": False, "kind": "compile", "message": "no"})
    assert isinstance(failure, Failure)
    for message in ({"ok": True, "verdict": "passed"}, {"ok": False}, {"ok": 1, "x": 2}):
        with pytest.raises(WireError):
            parse(Done, message)
    for elapsed in (10**400, 10**16):
        with pytest.raises(WireError):
            parse(
                Called,
                {
                    "ok": True,
                    "returned": {"layout": {"v": 1}},
                    "elapsed_ns": elapsed,
                    "cpu_ns": 0,
                    "filled": True,
                },
            )
    negative = {"ok": True, "returned": {"layout": {"v": 1}}, "elapsed_ns": -5, "cpu_ns": 0}
    with pytest.raises(WireError):
        parse(Called, {**negative, "filled": True})


@pytest.mark.parametrize(
    "layout",
    [
        3,
        {},
        [],
        {"t": 1},
        {"t": "0"},
        {"t": True},
        {"list": 5},
        {"list": [{"t": 0}, {"t": 0}]},
        {"tuple": [{"t": 0}, {"v": 1, "t": 1}]},
        {"dict": [[["a"], {"t": 0}]]},
        {"dict": [["a"]]},
        {"v": [1]},
        {"float": "1"},
        {"dtype": "os"},
    ],
)
def test_a_forged_tree_is_refused(layout: Any) -> None:
    spec = TensorSpec.contiguous("float32", (2,))
    with pytest.raises(ValueError, match=r"tree|leaves|entry"):
        Tree(layout=layout, specs=(spec,))


def test_a_tree_without_end_is_refused() -> None:
    node: Any = {"t": 0}
    for _ in range(31):
        node = {"list": [node]}
    with pytest.raises(ValueError, match=r"tree|nested"):
        Tree(layout=node, specs=(TensorSpec.contiguous("float32", ()),))
    value: list = []
    value.append(value)
    with pytest.raises(Undescribable):
        describe(value)


def test_keys_that_json_has_no_word_for_are_named() -> None:
    with pytest.raises(Undescribable, match="tuple for a key"):
        describe({(0, 1): torch.zeros(1)})


def test_dicts_with_the_same_keys_are_alike() -> None:
    one, two = torch.zeros(1), torch.ones(1)
    tree, tensors = describe({"b": one, "a": two})
    other, others = describe({"a": two, "b": one})
    assert tree == other
    assert tensors[0] is others[0] is two


def test_nobody_can_resize_what_was_lent() -> None:
    arena = Arena.create(10_000)
    for size in (100, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(arena.fd, size)
    assert arena.size >= 10_000
    arena.close()


def test_arenas_share_compare_and_keep_their_bounds() -> None:
    one, other = Arena.create(4096), Arena.create(4096)
    borrowed = Arena.borrow(os.dup(one.fd), one.size)
    one.fill(256, 100, 0xAB)
    assert bytes(borrowed.view[256:356]) == b"\xab" * 100
    one.copy_to(256, other, 512, 100)
    assert other.equals(512, one, 256, 100)
    other.fill(600, 1, 0)
    assert not other.equals(512, one, 256, 100)
    for offset, nbytes in ((-1, 5), (4090, 10), (0, 5000)):
        with pytest.raises(HarnessError):
            one.fill(offset, nbytes, 0)
    for arena in (borrowed, one, other):
        arena.close()


def test_an_arena_beyond_all_memory_is_a_device_error() -> None:
    with pytest.raises(DeviceError):
        Arena.create(1 << 60)


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from([torch.float32, torch.int8])
)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_trees_of_plain_values_come_back(value: Any) -> None:
    tree, tensors = describe(value)
    again = Tree.from_json(tree.to_json())
    assert not tensors
    assert rebuild(again.layout, []) == value


def test_tensors_keep_their_place_type_and_strides() -> None:
    given_ = {"a": [torch.zeros(2, 3).t(), 1], "b": (torch.ones(0, 4, dtype=torch.int64),)}
    tree, tensors = describe(given_)
    assert tree.specs[0] == TensorSpec(dtype="float32", shape=(3, 2), strides=(1, 3))
    assert rebuild(tree.layout, tensors)["a"][0] is tensors[0]
    assert rebuild(tree.layout, tensors)["b"][0] is tensors[1]


def test_floats_without_a_json_word_come_back() -> None:
    tree, _ = describe([math.inf, -math.inf])
    assert rebuild(tree.layout, []) == [math.inf, -math.inf]


def test_what_has_no_place_is_named() -> None:
    with pytest.raises(Undescribable, match=r"\[1\]\['x'\].*object"):
        describe([1, {"x": object()}])


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float8_e4m3fn]
)
def test_tensors_live_in_an_arena(dtype: torch.dtype) -> None:
    arena = Arena.create(1 << 16)
    source = torch.randint(0, 2, (5, 7)).to(dtype).t()
    spec = spec_of(source)
    tensor = tensor_at(arena, 3 * ALIGNMENT, spec)
    tensor.copy_(source)
    same = tensor_at(arena, 3 * ALIGNMENT, spec)
    assert torch.equal(same.to(torch.float32), source.to(torch.float32))
    assert same.stride() == source.stride()
    assert tensor_at(arena, 0, TensorSpec.contiguous("float32", (0, 3))).shape == (0, 3)


def test_overlapping_layouts_become_row_major() -> None:
    assert spec_of(torch.zeros(1, 3).expand(4, 3)).strides == (3, 1)
    assert spec_of(torch.zeros(8, 8)[::2]).strides == (8, 1)
