"""Files known by their content: written once, checked whenever they are read."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from pathlib import Path

from toprung.errors import DeviceError, HarnessError, UsageError

STALE_S = 3600.0
"""A file that was begun longer ago than this belongs to a writer that was killed."""

DIGEST = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """A folder of files, each named by the SHA-256 of its bytes."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._begun = folder / "begun"
        self._begun.mkdir(parents=True, exist_ok=True)
        self._sweep()

    def put(self, content: bytes) -> str:
        """Keep `content`, and return its digest (64 hex digits). It is on the disk afterwards."""
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        try:
            if path.is_file() and path.read_bytes() == content:
                return digest
            self._write(path, content)
        except OSError as error:
            raise DeviceError(
                f"{path} cannot be written: {error.strerror}", hint="make room on the disk"
            ) from error
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes that `digest` names; raises `UsageError` when there are none here."""
        if not DIGEST.fullmatch(digest):
            raise UsageError(f"{digest!r} is not a digest (64 hex digits)")
        path = self._path(digest)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise UsageError(
                f"the store has no file {digest}", hint="it may be in another store (--store)"
            ) from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise HarnessError(
                f"{path} was changed since it was written", hint="delete it and make it again"
            )
        return content

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest[2:]

    def _write(self, path: Path, content: bytes) -> None:
        """Whole or not at all: written beside, synchronised, then renamed over."""
        path.parent.mkdir(exist_ok=True)
        begun = self._begun / secrets.token_hex(8)
        with begun.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        begun.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _sweep(self) -> None:
        for path in self._begun.iterdir():
            try:
                if time.time() - path.stat().st_mtime > STALE_S:
                    path.unlink()
            except FileNotFoundError:
                continue  # its writer is alive and has just renamed it
