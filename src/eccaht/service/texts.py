"""Texts from outside, which every store must keep and every page show."""

from __future__ import annotations

from typing import Annotated, Any
from unicodedata import category

from pydantic import AfterValidator

_BREAKS = frozenset("\t\n\r")


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


Text = Annotated[str, AfterValidator(readable)]
Line = Annotated[Text, AfterValidator(_one_line)]
