"""JSON from senders: one document, a list of them, or one in each line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from eccaht.plants.data.layout import lines_of
from eccaht.service.sources.tables import Most

_WORDS = {"null": None, "true": True, "false": False}


def documents_of(text: str, most: Most) -> tuple[Sequence[Any], bool]:
    """What JSON holds: one document, or several, in a list or in lines."""
    text = text.strip()
    if not text:
        raise ValueError("the payload is empty")
    if text[0] not in '[{"':
        return [_WORDS.get(text, text)], False
    try:
        found = _parsed(text)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data" or "\n" not in text:
            raise ValueError(f"the payload is not JSON: {error}") from None
        found = _lines(text, most)
    if isinstance(found, list):
        most.check(len(found))
        return found, True
    return [found], False


def _lines(text: str, most: Most) -> list[Any]:
    most.check(text.count("\n"))
    found = []
    for number, line in enumerate(lines_of(text), 1):
        if line.strip():
            try:
                found.append(_parsed(line))
            except json.JSONDecodeError as error:
                raise ValueError(f"line {number} is not JSON: {error.msg} at character {error.pos + 1}") from None
    return found


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # Python converts no more than some thousand digits
        raise ValueError("the payload holds a number with thousands of digits") from None
