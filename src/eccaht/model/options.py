"""How a history was read, as a model carries it: plain JSON, checked when it comes from a file."""

from __future__ import annotations

from typing import Any

from eccaht.arrays import as_number
from eccaht.data.clock import as_zone
from eccaht.data.durations import parse_duration
from eccaht.model.plausible import check_text

_ADDED = {"timezone": None, "counted": False, "header": True}  # models of earlier versions do not say
_KEYS = {
    "time_columns",
    "time_format",
    "decimal_comma",
    "row_interval",
    "interval",
    "kinds",
    "levels",
    "notes",
    *_ADDED,
}


def checked_reading(told: Any, names: set[str]) -> dict[str, Any]:
    """Return what a file says about reading, or refuse it."""
    told = _ADDED | told if isinstance(told, dict) else {}
    if set(told) != _KEYS | set(_ADDED):
        raise ValueError("it does not say how to read new data")
    for key in ("time_columns", "time_format", "notes"):
        _texts(told[key], key)
    for key in ("decimal_comma", "counted", "header"):
        if type(told[key]) is not bool:
            raise ValueError(f"{key} must be true or false")
    if told["timezone"] is not None:
        _texts([told["timezone"]], "timezone")
        told["timezone"] = as_zone(told["timezone"])
    if told["counted"] and told["row_interval"] != 1.0:
        raise ValueError("rows that are counted must have the row_interval 1")
    if (told["row_interval"] is None) != bool(told["time_columns"]):
        raise ValueError("rows must have either times or a row_interval")
    if told["row_interval"] is not None:
        parse_duration(as_number(told["row_interval"], "row_interval"), "row_interval")
    parse_duration(as_number(told["interval"], "interval"), "interval")
    for key in ("kinds", "levels"):
        if not isinstance(told[key], dict) or not set(told[key]) <= names:
            raise ValueError(f"{key} must be about the columns of the history")
    if not all(kind in ("continuous", "status") for kind in told["kinds"].values()):
        raise ValueError("kinds must be continuous or status")
    for levels in told["levels"].values():
        _texts(levels, "levels")
        if len(set(levels)) != len(levels):
            raise ValueError("levels must be distinct")
    return told


def _texts(value: Any, what: str) -> None:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{what} must be a list of texts")
    for text in value:
        check_text(text, f"one of {what}")
