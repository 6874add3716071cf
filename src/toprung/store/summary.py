"""RunSummary: one line about a run, for lists; read without parsing its attempts."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Field

from toprung.model.run import StopReason
from toprung.model.value import Value

from .database import Database

Count = Annotated[int, Field(ge=0)]


class RunSummary(Value):
    """One line about a run."""

    id: str
    task: str
    target: str
    created: str
    """UTC, ISO 8601, as `touched`."""
    touched: str
    """When the last event was written; a run that is `going` since long ago was killed."""
    state: Literal["going"] | StopReason
    attempts: Count
    """Attempts that have a verdict."""
    passed: Count
    best: int | None = None
    """Index of the best attempt."""
    speedup: dict[str, float] = {}
    """Of the best attempt, by baseline; empty where nothing was measured."""
    attained: float | None = None
    """Of the best attempt: bound over measured time."""
    seconds: Annotated[float, Field(ge=0)] = 0.0
    """Wall time of all climbs."""


# The last verdict of an attempt counts, and with it the attempt must be kept anew.
_RUNS = """
WITH
  climb AS (SELECT run, attempt, seq, outcome, seconds FROM events WHERE kind = 'verdict'),
  judged AS (SELECT run, attempt, MAX(seq), outcome FROM climb GROUP BY run, attempt),
  kept AS (
    SELECT k.run, k.attempt, MAX(k.seq) FROM events k
    WHERE k.kind = 'kept' AND NOT EXISTS (
      SELECT 1 FROM events c WHERE c.run = k.run AND c.attempt = k.attempt AND c.seq > k.seq
      AND c.kind = 'verdict')
    GROUP BY k.run),
  ending AS (SELECT run, kind, MAX(seq), body FROM events WHERE kind IN ('attempt', 'verdict', 'kept', 'done')
             GROUP BY run)
SELECT
  c.run, json_extract(c.body, '$.task.name'), json_extract(c.body, '$.target'),
  json_extract(c.body, '$.at'),
  (SELECT e.at FROM events e WHERE e.run = c.run ORDER BY e.seq DESC LIMIT 1),
  CASE ending.kind WHEN 'done' THEN json_extract(ending.body, '$.reason') ELSE 'going' END,
  (SELECT COUNT(*) FROM judged j WHERE j.run = c.run),
  (SELECT COUNT(*) FROM judged j WHERE j.run = c.run AND j.outcome = 'passed'),
  kept.attempt,
  (SELECT TOTAL(seconds) FROM climb WHERE climb.run = c.run)
FROM events c LEFT JOIN kept ON kept.run = c.run LEFT JOIN ending ON ending.run = c.run
WHERE c.kind = 'created' ORDER BY +c.rowid DESC
"""

_BEST = """
SELECT json_extract(body, '$.verdict.measurement.speedup'),
       json_extract(body, '$.verdict.roofline.attained')
FROM events WHERE run = ? AND attempt = ? AND outcome IS NOT NULL ORDER BY seq DESC LIMIT 1
"""


def summaries(database: Database) -> list[RunSummary]:
    """Every run in one line, newest first."""
    names = ("id", "task", "target", "created", "touched", "state", "attempts", "passed", "best")
    found: list[RunSummary] = []
    for *fields, seconds in database.read(_RUNS):
        line = dict(zip(names, fields, strict=True)) | {"seconds": seconds}
        if line["best"] is not None:
            ((speedup, attained),) = database.read(_BEST, line["id"], line["best"])
            line["speedup"] = {n: s["ratio"] for n, s in json.loads(speedup or "{}").items()}
            line["attained"] = attained
        found.append(RunSummary(**line))
    return found
