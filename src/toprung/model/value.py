"""The base of every value, and the digest that names it by its content."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

# JSON as pydantic sees it; facts, case parameters and events are made of this.
Json = Any


class Value(BaseModel):
    """A frozen value: unknown fields are refused, NaN and infinity are not numbers here."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        populate_by_name=True,
        ser_json_bytes="utf8",
    )

    def to_json(self, *, indent: int | None = None) -> str:
        """JSON text, with field aliases (`schema`) as the contract names them."""
        return self.model_dump_json(by_alias=True, indent=indent)

    def to_dict(self) -> dict[str, Json]:
        """The same as plain JSON-able objects."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse and validate; raises `pydantic.ValidationError` on anything else."""
        return cls.model_validate_json(text)


def digest_of(content: Json) -> str:
    """SHA-256 (64 hex digits) of the canonical JSON of `content`: sorted keys, no spaces."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
