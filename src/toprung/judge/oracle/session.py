"""The judge's side of the conversation with an oracle process. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from toprung.errors import DeviceError, HarnessError, TaskError, ToprungError
from toprung.judge.wire.arena import Arena
from toprung.judge.wire.channel import Channel, Closed, Silent
from toprung.model.task import Family, Task

from .dialogue import hear, say
from .values import Checked, Opened, Staged

OPERATIONS = ("open", "lend", "write_init", "write_state", "stage", "check", "forget")

KINDS: dict[str, type[ToprungError]] = {
    "TaskError": TaskError,
    "DeviceError": DeviceError,
}


class Oracle:
    """Asks an oracle process. Order: `open`, `lend`, `write_state`, then `stage` and `check`.

    Every method raises `TaskError` when the task's own code fails or takes its process down, and
    `HarnessError` when the oracle does.
    """

    def __init__(self, channel: Channel, timeout_s: float):
        """`timeout_s` bounds every single request."""
        self._channel = channel
        self._timeout_s = timeout_s

    def open(self, task: Task, seed: int, target: str) -> Opened:
        """Load the task; what it is in the cases that fit `target`."""
        return Opened.model_validate(
            self._ask("open", task=task.to_dict(), seed=seed, target=target)
        )

    def lend(self, arena: Arena) -> None:
        """Pass the private arena's descriptor, in place of the one before; the judge keeps its own."""
        self._ask("lend", (arena.fd,), arena_bytes=arena.size)

    def write_init(self, offsets: Sequence[int]) -> None:
        """Write the tensors among the constructor's arguments (`Opened.init`) to the arena."""
        self._ask("write_init", offsets=list(offsets))

    def write_state(self, mode: Literal["copied", "seeded"], offsets: Sequence[int]) -> None:
        """Fix the mode for all later stages.

        `copied`: parameters and buffers (constant ones replaced by secret values of their kind)
        are written to the arena, in the order of `Opened.state`. `seeded`: they stay as
        `Opened.param_seed` made them, `offsets` is empty, and nothing is written.
        """
        self._ask("write_state", mode=mode, offsets=list(offsets))

    def stage(
        self, case: int, family: Family, draw: int, offsets: Sequence[int], truth: bool = True
    ) -> Staged:
        """Write fresh inputs of a case to the arena, one offset per tensor leaf of its inputs.

        `draw` makes content new: seed, case, family and draw determine it. Without `truth` only
        the declared-precision reference is computed (timed calls), and the check allows for the
        rounding of both sides.
        """
        return Staged.model_validate(
            self._ask(
                "stage", case=case, family=family, draw=draw, offsets=list(offsets), truth=truth
            )
        )

    def check(self, staged: int, offsets: Sequence[int]) -> Checked:
        """Read the outputs from the arena, in the order of `CaseSpec.outputs`, and compare."""
        return Checked.model_validate(self._ask("check", staged=staged, offsets=list(offsets)))

    def forget(self, staged: int) -> None:
        """Let the oracle drop what it keeps under an id."""
        self._ask("forget", staged=staged)

    def close(self) -> None:
        """Let the process end, and close the channel."""
        try:
            say(self._channel, {"op": "close"})
        except Closed:
            pass
        finally:
            self._channel.close()

    def _ask(self, operation: str, fds: tuple[int, ...] = (), **arguments: Any) -> Any:
        try:
            say(self._channel, {"op": operation, **arguments}, fds)
            reply, _ = hear(self._channel, self._timeout_s)
        except Closed as gone:
            raise TaskError(
                f"the process that runs the reference ended during {operation!r}",
                hint="the reference crashes, exits, or needs more memory than there is; "
                "run its file by itself, or choose smaller cases",
            ) from gone
        except Silent as late:
            raise TaskError(
                f"the reference took more than {self._timeout_s:.0f} s during {operation!r}",
                hint="choose smaller cases, or allow more time with --timeout",
            ) from late
        if "error" in reply:
            raise _raised(reply["error"])
        return reply["ok"]


def _raised(error: dict[str, Any]) -> ToprungError:
    kind = KINDS.get(error["kind"], HarnessError)
    return kind(error["message"], hint=error["hint"], details=error["details"])
