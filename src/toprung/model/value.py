"""The base of every value, and the digest that names it by its content."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

DEEPEST = 32
"""How deep JSON may be nested."""


def plain(content: Any, depth: int = DEEPEST) -> Any:
    """`content` as JSON gives it back: tuples as lists, and whatever JSON cannot say is mended or refused.

    Floats that JSON has no word for become the strings `inf`, `-inf` and `nan`; lone surrogates,
    which no UTF-8 file can hold, become U+FFFD. Anything that is not JSON raises `ValueError`.
    """
    if depth < 0:
        raise ValueError(f"nested more than {DEEPEST} deep")
    match content:
        case None | bool():
            return content
        case int():
            return int(content)
        case float():
            return float(content) if math.isfinite(content) else str(float(content))
        case str():
            return whole_text(str(content))
        case list() | tuple():
            return [plain(item, depth - 1) for item in content]
        case dict():
            if not all(isinstance(key, str) for key in content):
                raise ValueError("a key is not a string")
            return {whole_text(key): plain(item, depth - 1) for key, item in content.items()}
    raise ValueError(f"{type(content).__name__} is not JSON")


def whole_text(text: str) -> str:
    """`text` with every lone surrogate replaced by U+FFFD, so that it can be written as UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# JSON as a value holds it; facts, case parameters and events are made of this.
Json = Annotated[Any, BeforeValidator(plain)]

# Text that may come from a child or a model, and must never fail to be stored.
Text = Annotated[str, AfterValidator(whole_text)]


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

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other fields. Validated like any value, and with nothing memoised.

        Pydantic's own would carry a cached digest over, and let a half-truth be built.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**fields, **(update or {})})

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse and validate; raises `pydantic.ValidationError` on anything else."""
        return cls.model_validate_json(text)


def digest_of(content: Json) -> str:
    """SHA-256 (64 hex digits) of the canonical JSON of `content`: sorted keys, no spaces."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
