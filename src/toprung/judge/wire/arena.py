"""Shared memory that one process owns and lends: anonymous, its size sealed, mapped by descriptor.

Nothing has a name in a file system, so nothing can be guessed, leaked or left behind, and no
borrower can grow, shrink or unseal what it was lent.
"""

from __future__ import annotations

import fcntl
import mmap
import os

from toprung.errors import DeviceError

ALIGNMENT = 256
"""Bytes; every tensor starts on such a boundary, as allocators of devices do it."""


def aligned(nbytes: int) -> int:
    """`nbytes` rounded up to the next boundary."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


class Arena:
    """A block of shared memory. `view` is writable memory of the whole block."""

    def __init__(self, fd: int, size: int):
        self.fd = fd
        self.size = size
        self._map = mmap.mmap(fd, size)
        self.view = memoryview(self._map)

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

    def close(self) -> None:
        """Unmap and close. Views that tensors still hold keep the mapping alive."""
        self.view.release()
        try:
            self._map.close()
        except BufferError:  # a tensor still looks into it; it goes with the process
            pass
        os.close(self.fd)
