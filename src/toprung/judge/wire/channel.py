"""Length-bounded JSON over a socket pair; descriptors travel beside the message.

`SOCK_SEQPACKET` keeps message boundaries, so a peer can neither stall in the middle of a frame
nor announce a length that it does not send.
"""

from __future__ import annotations

import array
import json
import os
import socket
from typing import Any

from toprung.errors import WireError

MAX_MESSAGE = 128 * 1024
"""Bytes of one message; Linux refuses larger packets than the socket's buffer anyway."""

MAX_FDS = 8

Message = dict[str, Any]


class Closed(WireError):
    """The peer has gone."""


class Silent(WireError):
    """No message within the time allowed."""


class Channel:
    """One end of a conversation. Whoever holds it owns the socket."""

    def __init__(self, sock: socket.socket):
        self._sock = sock
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, 4 * MAX_MESSAGE)

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        """Two connected ends."""
        left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(left), cls(right)

    @classmethod
    def of_fd(cls, fd: int) -> Channel:
        """The end that a parent process passed as descriptor `fd`."""
        return cls(socket.socket(fileno=fd))

    def fileno(self) -> int:
        """The descriptor, for `select` and for passing on."""
        return self._sock.fileno()

    def send(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        """Send one message; raises `WireError` when it is too long, `Closed` when nobody listens."""
        data = json.dumps(message, separators=(",", ":")).encode()
        if len(data) > MAX_MESSAGE:
            raise WireError(f"a message of {len(data)} bytes is over the limit of {MAX_MESSAGE}")
        try:
            if fds:
                socket.send_fds(self._sock, [data], list(fds))
            else:
                self._sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as gone:
            raise Closed("the other side has gone") from gone

    def receive(self, timeout: float | None = None) -> tuple[Message, list[int]]:
        """The next message and its descriptors, which the caller must close.

        Raises `Silent` after `timeout` seconds, `Closed` at the end, `WireError` on nonsense.
        """
        self._sock.settimeout(timeout)
        try:
            data, ancillary, flags, _ = self._sock.recvmsg(
                MAX_MESSAGE + 1, socket.CMSG_SPACE(MAX_FDS * array.array("i").itemsize)
            )
        except TimeoutError as late:
            raise Silent(f"no message within {timeout} s") from late
        except ConnectionResetError as gone:
            raise Closed("the other side has gone") from gone
        fds = _descriptors(ancillary)
        try:
            return _parse(data, flags), fds
        except WireError:
            for fd in fds:
                os.close(fd)
            raise

    def close(self) -> None:
        """Close this end."""
        self._sock.close()


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return list(fds)


def _parse(data: bytes, flags: int) -> Message:
    if not data:
        raise Closed("the other side has gone")
    if len(data) > MAX_MESSAGE or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        raise WireError(f"a message of more than {MAX_MESSAGE} bytes")
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as bad:
        raise WireError(f"not JSON: {data[:60]!r}") from bad
    if not isinstance(message, dict):
        raise WireError(f"not a JSON object: {data[:60]!r}")
    return message
