"""What settings and requests are made of: names, lengths of time, and texts that every store can keep and every page
can show."""

from __future__ import annotations

from typing import Annotated, Any
from unicodedata import category

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from eccaht.base.clock import parse_duration

_ZERO = (0, "0", "0s")
_BREAKS = frozenset("\t\n\r")


class Part(BaseModel):
    """Settings that belong together; what is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def readable(value: Any) -> Any:
    """Return a value of JSON unchanged; one with a text that holds a control character or half a letter is refused.

    PostgreSQL keeps no NUL, and a surrogate without its partner is no UTF-8.

    >>> readable({"a": ["two\\nlines"]})
    {'a': ['two\\nlines']}
    """
    parts = [value]
    while parts:  # no recursion: documents of untrusted callers may be deep
        part = parts.pop()
        if isinstance(part, dict):
            parts += [*part, *part.values()]
        elif isinstance(part, list):
            parts += part
        elif isinstance(part, str) and any(category(c) in ("Cc", "Cs") and c not in _BREAKS for c in part):
            raise ValueError("a text holds a control character or half a letter: leave it out")
    return value


def _one_line(text: str) -> str:
    if any(letter in _BREAKS for letter in text):
        raise ValueError("the text must be one line")
    return text


def _seconds(value: Any) -> float:
    return parse_duration(value, "the length of time")


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[float, BeforeValidator(_seconds)]
SecondsOrZero = Annotated[float, BeforeValidator(lambda value: 0.0 if value in _ZERO else _seconds(value))]
Text = Annotated[str, AfterValidator(readable)]
Line = Annotated[Text, AfterValidator(_one_line)]
