"""The schema of the database, as numbered steps. Steps are only ever added."""

from __future__ import annotations

APPLICATION_ID = 0x70705255
"""Marks a database as toprung's own (SQLite's `application_id`)."""

# An event's JSON is the only truth: the columns that queries need are read from it by SQLite
# itself, and stand before it so that a query need not read through long bodies.
_EVENTS = """
CREATE TABLE events (
  run TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at TEXT NOT NULL,
  kind TEXT NOT NULL AS (json_extract(body, '$.event')) STORED,
  attempt INTEGER AS (json_extract(body, '$.index')) STORED,
  outcome TEXT AS (json_extract(body, '$.verdict.outcome')) STORED,
  seconds REAL AS (json_extract(body, '$.seconds')) STORED,
  body TEXT NOT NULL,
  UNIQUE (run, seq)
)
"""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        _EVENTS,
        "CREATE UNIQUE INDEX one_creation ON events (run) WHERE kind = 'created'",
        "CREATE INDEX by_attempt ON events (run, attempt, seq) WHERE attempt IS NOT NULL",
        "CREATE TABLE memory (kind TEXT, key TEXT, at TEXT NOT NULL, value TEXT NOT NULL, "
        "PRIMARY KEY (kind, key)) WITHOUT ROWID",
        f"PRAGMA application_id = {APPLICATION_ID}",
    ),
)
"""Step `i` takes the database from version `i` to `i + 1` (SQLite's `user_version`)."""
