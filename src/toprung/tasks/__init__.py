"""Outside formats to values: task files to `Task`, candidate files to `Candidate`; no torch here."""

from .candidates import read_candidate as read_candidate
from .readers import read_task as read_task
