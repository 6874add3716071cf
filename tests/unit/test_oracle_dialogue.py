"""Messages of any length through packets of bounded length."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprung.errors import HarnessError, TaskError, WireError
from toprung.judge.oracle.dialogue import PIECE, hear, say
from toprung.judge.oracle.session import Oracle
from toprung.judge.wire.channel import Channel, Closed, Silent

pytestmark = pytest.mark.unit

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), json_values))
@settings(max_examples=30, deadline=None)
def test_what_is_said_is_heard(message: dict[str, object]) -> None:
    one, other = Channel.pair()
    say(one, message)
    assert hear(other, 1)[0] == message
    one.close()
    other.close()


@pytest.mark.parametrize("text", ["x" * PIECE * 7, '"\\' * PIECE, "\x00é😀" * PIECE])
def test_long_messages_cross_in_pieces(text: str) -> None:
    one, other = Channel.pair()
    heard: list[object] = []
    listener = threading.Thread(target=lambda: heard.append(hear(other, 10)[0]))
    listener.start()
    say(one, {"text": text})
    listener.join(10)
    assert heard == [{"text": text}]


def test_descriptors_travel_with_the_message() -> None:
    one, other = Channel.pair()
    reader, writer = os.pipe()
    say(one, {"op": "lend"}, (writer,))
    _, (received,) = hear(other, 1)
    os.write(received, b"here")
    assert os.read(reader, 4) == b"here"
    for fd in (reader, writer, received):
        os.close(fd)


def test_an_unfinished_message_is_silence() -> None:
    one, other = Channel.pair()
    one.send({"left": 1, "text": '{"a":'})
    with pytest.raises(Silent):
        hear(other, 0.05)
    one.close()
    with pytest.raises(Closed):
        hear(other, 1)


@pytest.mark.parametrize("text", ["[1]", "nonsense", ""])
def test_pieces_that_make_no_object_are_refused(text: str) -> None:
    one, other = Channel.pair()
    one.send({"left": 0, "text": text})
    with pytest.raises(WireError):
        hear(other, 1)


def answered(reply: dict[str, object] | None) -> Oracle:
    """An oracle whose process says `reply` to whatever it is asked, or nothing."""
    ours, theirs = Channel.pair()
    if reply is None:
        theirs.close()
    else:
        say(theirs, reply)
    oracle = Oracle(ours, 0.05)
    oracle.kept = theirs  # type: ignore[attr-defined]
    return oracle


def test_errors_keep_their_kind_hint_and_details() -> None:
    told = {"kind": "TaskError", "message": "bad task", "hint": "mend it", "details": "line 3"}
    with pytest.raises(TaskError, match="bad task") as refusal:
        answered({"error": told}).forget(1)
    assert (refusal.value.hint, refusal.value.details) == ("mend it", "line 3")
    with pytest.raises(HarnessError, match="bad task"):
        answered({"error": {**told, "kind": "SomethingElse"}}).forget(1)


def test_a_process_that_is_gone_or_silent_is_the_tasks_fault() -> None:
    with pytest.raises(TaskError, match="ended"):
        answered(None).forget(1)
    ours, theirs = Channel.pair()
    with pytest.raises(TaskError, match="more than"):
        Oracle(ours, 0.05).forget(1)
    theirs.close()
