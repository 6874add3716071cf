"""`toprung doctor`: what this machine can do, and how to get what is missing."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Debug, Json

Refresh = Annotated[
    bool, typer.Option("--refresh", help="Measure the ceilings again instead of reading the cache.")
]


def doctor(refresh: Refresh = False, as_json: Json = False, debug: Debug = False) -> None:
    """Say what this machine can do, and how to get what is missing.

    With --json: one toprung.doctor/1 object.
    """
    from toprung import app

    from .doctor_view import doctor_parts
    from .screen import Screen

    found = app.doctor(refresh)
    screen = Screen(as_json=as_json)
    if as_json:
        screen.json(found.to_dict())
        return
    for part in doctor_parts(found):
        screen.show(part)
