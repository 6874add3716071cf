"""What a proposer may be told when it is made."""

from __future__ import annotations

from toprung.model.candidate import Candidate
from toprung.model.value import Value


class ProposerSettings(Value):
    """One value for all proposers; each takes what concerns it."""

    target: str = "cpu:native"
    dsl: str | None = None
    seed: int | None = None
    model: str | None = None
    """`PROVIDER:NAME`, for proposers that ask a language model."""
    start: tuple[Candidate, ...] = ()
    """Candidates to begin with (`optimize --from`), best first."""
