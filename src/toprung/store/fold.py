"""From events to a run. What `advance` accepts may be stored, so every stored run can be folded."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from toprung.errors import HarnessError
from toprung.model.event import AttemptStarted, Created, Done, Event, Hinted, Judged, Kept
from toprung.model.run import Attempt, Run, StopReason

OfAttempt = AttemptStarted | Judged | Kept
"""Events that are about one attempt."""


def advance(attempt: Attempt | None, event: OfAttempt) -> Attempt:
    """The attempt after `event`; raises `HarnessError` when that cannot have happened.

    An attempt without a verdict may start again, with another candidate too: its climb was cut off.
    A second verdict replaces the first, and the attempt must be kept anew.
    """
    try:
        return _after(attempt, event)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise HarnessError(
            f"event {event.event!r} does not fit: {reason}",
            hint="does another process work on the same run?",
        ) from None


def _after(attempt: Attempt | None, event: OfAttempt) -> Attempt:
    if isinstance(event, AttemptStarted):
        if attempt and attempt.verdict:
            raise _misfit(event, "started again after its verdict")
        return Attempt(index=event.index, proposal=event.proposal)
    if attempt is None:
        raise _misfit(event, "never started")
    known = {"index": event.index, "proposal": attempt.proposal}
    if isinstance(event, Judged):
        return Attempt(**known, verdict=event.verdict, seconds=attempt.seconds + event.seconds)
    verdict = event.verdict or attempt.verdict
    return Attempt(**known, verdict=verdict, kept=True, seconds=attempt.seconds)


def _misfit(event: OfAttempt, why: str) -> HarnessError:
    return HarnessError(
        f"event {event.event!r} does not fit: attempt {event.index} {why}",
        hint="does another process work on the same run?",
    )


def fold(run_id: str, events: Iterable[Event]) -> Run:
    """The run that `events` tell, `Created` first; raises `HarnessError` when they tell none."""
    created: Created | None = None
    attempts: dict[int, Attempt] = {}
    kept: list[int] = []
    hints: list[str] = []
    reason: StopReason | None = None
    message = ""
    for event in events:
        match event:
            case Created():
                created = event
            case Hinted():
                hints.append(event.text)
            case Done():
                reason, message = event.reason, event.message
            case AttemptStarted() | Judged() | Kept():
                attempts[event.index] = advance(attempts.get(event.index), event)
                kept = _order(kept, event, attempts)
                reason, message = None, ""  # if it had ended, it goes on
    if created is None:
        raise HarnessError(f"run {run_id!r} has no beginning")
    return Run(
        id=run_id,
        created=created.at,
        **{
            name: getattr(created, name)
            for name in Created.model_fields
            if name in Run.model_fields
        },
        attempts=tuple(attempts[index] for index in sorted(attempts)),
        kept=tuple(kept),
        hints=tuple(hints),
        reason=reason,
        message=message,
    )


def _order(kept: list[int], event: OfAttempt, attempts: dict[int, Attempt]) -> list[int]:
    """Kept attempts in the order in which they were kept; whatever was judged anew drops out."""
    if isinstance(event, Kept):
        return [*(index for index in kept if index != event.index), event.index]
    return [index for index in kept if attempts[index].kept]
