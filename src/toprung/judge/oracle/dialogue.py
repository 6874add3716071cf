"""Messages of any length over a channel whose packets are bounded: JSON text sent in pieces."""

from __future__ import annotations

import json
import time

from toprung.errors import WireError
from toprung.judge.wire.channel import Channel, Message, Silent

PIECE = 40_000
"""Characters of ASCII a packet carries; escaping at most doubles them, and headers are short."""

MAX_PIECES = 2_000
"""80 MB: more than any task, fewer than would exhaust the judge."""


def say(channel: Channel, message: Message, fds: tuple[int, ...] = ()) -> None:
    """Send `message`; descriptors travel with its first piece."""
    text = json.dumps(message, separators=(",", ":"))
    pieces = [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
    for number, piece in enumerate(pieces):
        left = len(pieces) - number - 1
        channel.send({"left": left, "text": piece}, fds if number == 0 else ())


def hear(channel: Channel, timeout_s: float | None = None) -> tuple[Message, list[int]]:
    """The next whole message and its descriptors, which the caller must close.

    Raises `Silent` when it is not complete after `timeout_s`, `Closed`, or `WireError`.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    pieces: list[str] = []
    descriptors: list[int] = []
    while True:
        remaining = None if deadline is None else deadline - time.monotonic()
        if remaining is not None and remaining <= 0:
            raise Silent(f"no whole message within {timeout_s} s")
        packet, fds = channel.receive(remaining)
        descriptors += fds
        pieces.append(str(packet.get("text", "")))
        if packet.get("left") == 0:
            break
        if len(pieces) >= MAX_PIECES:
            raise WireError(f"a message of more than {MAX_PIECES} pieces")
    try:
        message = json.loads("".join(pieces))
    except ValueError as bad:
        raise WireError(f"the pieces are not JSON: {bad}") from bad
    if not isinstance(message, dict):
        raise WireError("a message must be a JSON object")
    return message, descriptors
