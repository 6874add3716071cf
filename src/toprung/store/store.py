"""Store: the memory of toprung, one folder on disk that many processes may write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from toprung.errors import HarnessError, UsageError
from toprung.model.event import EVENT, AttemptStarted, Created, Event, Judged, Kept
from toprung.model.run import Attempt, Run
from toprung.model.value import Json, plain

from .blobs import Blobs
from .database import Database
from .fold import advance, fold
from .names import find, new_id
from .summary import RunSummary, summaries

_INSERT = """
INSERT INTO events (run, seq, at, body)
SELECT ?1, COALESCE(MAX(seq) + 1, 0), ?2, ?3 FROM events WHERE run = ?1
"""


class Store:
    """Runs as events, files by content, and values that are remembered. Safe to use from threads.

    What `append` has returned from survives a kill of the process; a power cut may take the last
    events, never the order or the wholeness of what is left.
    """

    def __init__(self, root: Path, database: Database, blobs: Blobs):
        self.root = root
        self._database = database
        self._blobs = blobs

    @classmethod
    def open(cls, root: Path) -> Store:
        """The store in the folder `root`, which is made when it is not there.

        Raises `UsageError` when the folder cannot be used or belongs to a newer toprung.
        """
        try:
            root.mkdir(parents=True, exist_ok=True)
            ignore = root / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            blobs = Blobs(root / "blobs")
        except OSError as error:
            raise UsageError(
                f"{root} cannot be used as a store: {error.strerror}",
                hint="name another folder with --store",
            ) from error
        return cls(root, Database(root / "runs.sqlite"), blobs)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def create_run(self, created: Created) -> str:
        """Begin a run, and return its id."""
        with self._database.transaction() as connection:
            taken = set(self._ids())
            run_id = next(
                name
                for name in iter(lambda: new_id(created.at, created.task.name), None)
                if name not in taken
            )
            connection.execute(_INSERT, (run_id, _now(), created.to_json()))
        return run_id

    def append(self, run_id: str, event: Event) -> None:
        """Write one event, in one transaction.

        Raises `HarnessError` when it cannot follow what is written: a verdict on another candidate
        or on an attempt that never started, a second beginning, a candidate kept that did not pass.
        """
        if isinstance(event, Created):
            raise HarnessError("a run begins once: use create_run")
        with self._database.transaction() as connection:
            sql = "SELECT 1 FROM events WHERE run = ? AND kind = 'created'"
            if not self._database.read(sql, run_id):
                raise HarnessError(f"there is no run {run_id!r} to write to")
            if isinstance(event, AttemptStarted | Judged | Kept):
                advance(self._attempt(run_id, event.index), event)
            connection.execute(_INSERT, (run_id, _now(), event.to_json()))

    def events(self, run: str) -> Iterator[Event]:
        """The events of a run, oldest first."""
        return self._events(self.find(run))

    def run(self, run: str) -> Run:
        """The run that is named by its id, by the beginning of it, or by its last word.

        Raises `UsageError`, naming the nearest, when there is none or more than one.
        """
        run_id = self.find(run)
        return fold(run_id, self._events(run_id))

    def runs(self) -> list[RunSummary]:
        """Every run in one line, newest first."""
        return summaries(self._database)

    def find(self, run: str) -> str:
        """The full id of a run, as `run` takes it."""
        return find(run, self._ids())

    def hints(self, run: str) -> tuple[str, ...]:
        """What people have told a run so far, oldest first."""
        rows = self._database.read(
            "SELECT json_extract(body, '$.text') FROM events WHERE run = ? AND kind = 'hint' "
            "ORDER BY seq",
            self.find(run),
        )
        return tuple(text for (text,) in rows)

    def put(self, content: bytes) -> str:
        """Keep a file, and return its digest."""
        return self._blobs.put(content)

    def get(self, digest: str) -> bytes:
        """A file by its digest; raises `UsageError` when it is not here."""
        return self._blobs.get(digest)

    def remember(self, kind: str, key: str, value: Json) -> None:
        """Keep `value`, plain JSON, under `kind` and `key`; what was there is replaced."""
        text = json.dumps(plain(value), ensure_ascii=False)
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO memory VALUES (?1, ?2, ?3, ?4) "
                "ON CONFLICT DO UPDATE SET at = ?3, value = ?4",
                (kind, key, _now(), text),
            )

    def recall(self, kind: str, key: str) -> Json:
        """What was remembered last under `kind` and `key`, or `None`."""
        sql = "SELECT value FROM memory WHERE kind = ? AND key = ?"
        rows = self._database.read(sql, kind, key)
        return json.loads(rows[0][0]) if rows else None

    def _events(self, run_id: str) -> Iterator[Event]:
        rows = self._database.read("SELECT body FROM events WHERE run = ? ORDER BY seq", run_id)
        return (_parsed(body, run_id) for (body,) in rows)

    def _ids(self) -> list[str]:
        """Newest first. The plus sign makes SQLite use the small index instead of every event."""
        sql = "SELECT run FROM events WHERE kind = 'created' ORDER BY +rowid DESC"
        return [run_id for (run_id,) in self._database.read(sql)]

    def _attempt(self, run_id: str, index: int) -> Attempt | None:
        sql = "SELECT body FROM events WHERE run = ? AND attempt = ? ORDER BY seq"
        attempt: Attempt | None = None
        for (body,) in self._database.read(sql, run_id, index):
            event = _parsed(body, run_id)
            assert isinstance(event, AttemptStarted | Judged | Kept)
            attempt = advance(attempt, event)
        return attempt


def _parsed(body: str, run_id: str) -> Event:
    try:
        return EVENT.validate_json(body)
    except ValidationError as error:
        raise HarnessError(
            f"run {run_id!r} has an event that this toprung cannot read: {error.errors()[0]['msg']}",
            hint="was it written by another version?",
        ) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
