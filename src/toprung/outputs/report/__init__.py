"""The report: a run, or a single verdict, as one HTML file made from the store alone.

The file holds everything it needs and no script; its content policy forbids it to load anything.
"""

from __future__ import annotations

from .page import render as render
from .page import render_verdict as render_verdict
