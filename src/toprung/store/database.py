"""One connection to the database: opened, migrated, and shared by the threads of a process."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from toprung.errors import DeviceError, HarnessError, ToprungError, UsageError

from .journal import JournalMode, journal_for
from .migrations import APPLICATION_ID, MIGRATIONS

PATIENCE_S = 30.0
"""How long one writer waits for another."""

Row = tuple


class Database:
    """Events and memory in SQLite. Writers take turns; readers never wait in WAL mode."""

    def __init__(self, path: Path, *, patience_s: float = PATIENCE_S):
        self.path = path
        self._lock = threading.RLock()
        with self._told():
            # Transactions are begun by hand, so the driver's own are off.
            self._connection = sqlite3.connect(
                path, timeout=patience_s, isolation_level=None, check_same_thread=False
            )
        try:
            with self._told():
                self._check_owner()
                self._set_journal(journal_for(path.parent), patience_s)
                self._migrate()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; what was committed stays."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: all of it is kept, or nothing."""
        with self._lock, self._told():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.commit()

    def read(self, sql: str, *values: object) -> list[Row]:
        """All rows of a query."""
        with self._lock, self._told():
            return self._connection.execute(sql, values).fetchall()

    def _check_owner(self) -> None:
        owner = self._pragma("application_id")
        version = int(self._pragma("user_version"))
        empty = not self._connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
        if owner != APPLICATION_ID and not (empty and version == 0):
            raise UsageError(
                f"{self.path} is not a toprung store", hint="name another folder with --store"
            )
        if version > len(MIGRATIONS):
            raise UsageError(
                f"{self.path} was written by a newer toprung: its schema is {version}, "
                f"this toprung knows {len(MIGRATIONS)}",
                hint="upgrade toprung, or name another folder with --store",
            )

    def _pragma(self, name: str) -> int | str:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    def _set_journal(self, mode: JournalMode, patience_s: float) -> None:
        """Changing the mode does not wait for other connections by itself, so it is repeated."""
        deadline = time.monotonic() + patience_s
        while self._pragma("journal_mode") != mode:
            try:
                if self._pragma(f"journal_mode = {mode}") == mode:
                    break
                mode = "delete"  # SQLite itself found that there can be no WAL here
            except sqlite3.OperationalError as busy:
                if "locked" not in str(busy) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        # A rollback journal is only safe against a power cut when it is synchronised in full.
        self._connection.execute(f"PRAGMA synchronous = {'NORMAL' if mode == 'wal' else 'FULL'}")

    def _migrate(self) -> None:
        if self._pragma("user_version") == len(MIGRATIONS):
            return
        with self.transaction() as connection:
            # Another process may have migrated while this one waited.
            self._check_owner()
            for version in range(int(self._pragma("user_version")), len(MIGRATIONS)):
                for step in MIGRATIONS[version]:
                    connection.execute(step)
                connection.execute(f"PRAGMA user_version = {version + 1}")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What SQLite raises, in our words."""
        try:
            yield
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _translated(error: sqlite3.Error, path: Path) -> ToprungError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith("SQLITE_BUSY") or name.startswith("SQLITE_LOCKED"):
        return HarnessError(
            f"the store {path} is held by another process",
            hint="end the process that writes to it, or name another folder with --store",
        )
    if name.startswith("SQLITE_NOTADB"):
        return UsageError(f"{path} is not a toprung store", hint="name another folder with --store")
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return UsageError(
            f"the store {path} cannot be written: {error}",
            hint="check who owns the folder, or name another one with --store",
        )
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return DeviceError(
            f"the store {path} cannot be kept: {error}", hint="make room on the disk"
        )
    return HarnessError(
        f"the store {path} failed: {error}",
        hint="if it is damaged, move the folder away; a new one is made at its place",
    )
