"""Lengths of time and points in time as people write them."""

from __future__ import annotations

import math
import re

import numpy as np

_UNITS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)\s*")
_ROWS = re.compile(r"\s*([1-9]\d{0,8})\s*rows?\s*")
_LONGEST = 366 * 86400.0


def parse_duration(text: str | float, what: str = "duration") -> float:
    """Return a length of time in seconds; a bare number is one already.

    >>> parse_duration("1min"), parse_duration("0.5s"), parse_duration("2h")
    (60.0, 0.5, 7200.0)
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        seconds = float(text) if abs(text) <= _LONGEST else math.inf  # a whole number may be too large for a float
    else:
        match = _DURATION.fullmatch(text.lower()) if isinstance(text, str) else None
        if match is None or match[2] not in _UNITS:
            raise ValueError(f"{what} {text!r} is not a length of time: write it as 30s, 1min, 2h or 0.5s")
        seconds = float(match[1]) * _UNITS[match[2]]
    if not (math.isfinite(seconds) and 1e-6 <= seconds <= _LONGEST):
        raise ValueError(f"{what} {text!r} must be between a microsecond and a year")
    return round(seconds * 1e6) / 1e6


def parse_window(text: str | float) -> tuple[float, bool]:
    """The length of a window in seconds, or in rows if it is given so, and which of both.

    >>> parse_window("1min"), parse_window("60rows")
    ((60.0, False), (60.0, True))
    """
    match = _ROWS.fullmatch(text.lower()) if isinstance(text, str) else None
    return (parse_duration(text, "window"), False) if match is None else (float(match[1]), True)


def show_duration(seconds: float) -> str:
    """Write seconds the way they are read.

    >>> show_duration(60.0), show_duration(0.5), show_duration(5400.0)
    ('1min', '0.5s', '90min')
    """
    for unit in ("d", "h", "min"):
        if seconds >= _UNITS[unit] and seconds % _UNITS[unit] == 0:
            return f"{seconds / _UNITS[unit]:g}{unit}"
    return f"{seconds:.10g}s"


def show_time(time: np.datetime64) -> str:
    """Write a time to the second where that is exact.

    >>> show_time(np.datetime64("2017-10-09T18:00:00.000000"))
    '2017-10-09 18:00:00'
    """
    text = str(time.astype("datetime64[us]")).replace("T", " ")
    return text.removesuffix(".000000")
