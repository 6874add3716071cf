"""Shared memory that one process owns and lends: anonymous, its size sealed, mapped by descriptor.

Nothing has a name in a file system, so nothing can be guessed, leaked or left behind, and no
borrower can grow, shrink or unseal what it was lent.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import mmap
import os

from toprung.errors import DeviceError, HarnessError

ALIGNMENT = 256
"""Bytes; every tensor starts on such a boundary, as allocators of devices do it."""

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def aligned(nbytes: int) -> int:
    """`nbytes` rounded up to the next boundary."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


class Arena:
    """A block of shared memory. `view` is writable memory of the whole block."""

    def __init__(self, fd: int, size: int):
        self.fd = fd
        self.size = size
        # Populated at once: a first touch inside a timed call would cost a page fault a page.
        self._map = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        self.view = memoryview(self._map)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    @classmethod
    def create(cls, size: int) -> Arena:
        """A new block of at least `size` bytes, zeroed, its size sealed."""
        size = max(aligned(size), mmap.PAGESIZE)
        fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(fd, size)
            seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
            return cls(fd, size)
        except (OSError, ValueError) as full:
            os.close(fd)
            raise DeviceError(
                f"cannot share {size / 2**20:.0f} MiB of memory: {full}",
                hint="choose a smaller case, or free memory",
            ) from full

    @classmethod
    def borrow(cls, fd: int, size: int) -> Arena:
        """Map a block that another process lent; takes over `fd`."""
        return cls(fd, size)

    def at(self, offset: int, nbytes: int) -> int:
        """Address of `nbytes` bytes at `offset`; raises `HarnessError` outside the block."""
        if not 0 <= offset <= offset + nbytes <= self.size:
            raise HarnessError(f"{nbytes} bytes at {offset} are outside a block of {self.size}")
        return self._start + offset

    def fill(self, offset: int, nbytes: int, byte: int) -> None:
        """Set every byte of a range."""
        ctypes.memset(self.at(offset, nbytes), byte, nbytes)

    def copy_to(self, offset: int, other: Arena, there: int, nbytes: int) -> None:
        """Copy a range into another arena, at the speed of memory."""
        ctypes.memmove(other.at(there, nbytes), self.at(offset, nbytes), nbytes)

    def equals(self, offset: int, other: Arena, there: int, nbytes: int) -> bool:
        """Whether a range has the same bytes in another arena."""
        return _memcmp(self.at(offset, nbytes), other.at(there, nbytes), nbytes) == 0

    def digest(self, offset: int, nbytes: int) -> bytes:
        """A fingerprint of a range."""
        self.at(offset, nbytes)
        return hashlib.blake2b(self.view[offset : offset + nbytes], digest_size=16).digest()

    def close(self) -> None:
        """Unmap and close. Views that tensors still hold keep the mapping alive."""
        self.view.release()
        with contextlib.suppress(BufferError):  # a view keeps it; it goes with the process
            self._map.close()
        os.close(self.fd)
