"""Values and names of sensors as senders write them, by the same rules for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from eccaht.plants.data.layout import MISSING, is_number
from eccaht.plants.model.plausible import check_text

_MISSING = frozenset(MISSING)
_LONGEST_NUMBER = 400  # characters
_TRUTH = {True: ("true", "True", "TRUE", "1"), False: ("false", "False", "FALSE", "0")}


def number_of(value: Any) -> float:
    """A number, NaN where there is none: null, a text that files have in its place, or what is not finite.

    >>> number_of(2), number_of("-1.5e3"), number_of(True), number_of("N/A"), number_of(1e999)
    (2.0, -1500.0, 1.0, nan, nan)
    """
    if value is None:
        return math.nan
    if isinstance(value, str):
        value = _from_text(value.strip())
    elif not isinstance(value, int | float):
        raise ValueError(f"a value must be a number, not {_kind(value)}")
    try:
        number = float(value)
    except OverflowError:  # a whole number with hundreds of digits
        return math.nan
    return number if math.isfinite(number) else math.nan


def level_of(value: Any, levels: Sequence[str]) -> float:
    """The place of a status among the texts that it had in the history; NaN if it is missing or not among them.

    >>> [level_of(value, ["1", "off", "true"]) for value in ("off", 1, True, "on", None)]
    [1.0, 0.0, 2.0, nan, nan]
    """
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError(f"a status must be a text or a number, not {_kind(value)}")
    for text in _texts(value):
        if text in levels:
            return float(levels.index(text))
    return math.nan


@lru_cache(maxsize=4096)
def checked_name(name: str) -> str:
    """The name of a sensor, which must be one that a model can have."""
    if not name:
        raise ValueError("the name of a sensor is empty")
    check_text(name, "the name of a sensor")
    return name


def _from_text(text: str) -> float:
    if text in _MISSING:
        return math.nan
    if len(text) > _LONGEST_NUMBER or not is_number(text):
        raise ValueError(f"{text[:40]!r} is not a number")
    return float(text)


def _texts(value: Any) -> Sequence[str]:
    if value is None:
        return ()
    if isinstance(value, bool):
        return _TRUTH[value]
    if isinstance(value, str):
        return (value.strip(),)
    try:
        return (f"{value:g}",)
    except OverflowError:
        return ()


def _kind(value: Any) -> str:
    return {"dict": "an object", "list": "a list"}.get(type(value).__name__, type(value).__name__)
