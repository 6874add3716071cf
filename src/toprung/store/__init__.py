"""What is kept: the events of every run in SQLite, and files by their content beside it.

Candidates and tasks are kept inside their events, not as files: one committed transaction then
holds everything that happened, so that no kill can leave an event that points at nothing. Files
(dumps, profiles, builds) may be large and are kept by their digest in `blobs/`.
"""

from __future__ import annotations

from .store import Store as Store
from .summary import RunSummary as RunSummary
