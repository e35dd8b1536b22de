"""Numbers, lengths, lists and tables as plain text."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percent(share: float) -> str:
    """A share, with one digit below ten percent.

    >>> percent(0.0), percent(0.0004), percent(0.123), percent(1.0)
    ('0 %', '0.04 %', '12 %', '100 %')
    """
    x = 100.0 * share
    return f"{x:.0f} %" if x == 0.0 or x >= 9.5 else f"{x:.1g} %"


def confident(probability: float) -> str:
    """A probability rounded down, and never to certainty.

    >>> confident(0.9731), confident(0.99999), confident(0.95)
    ('97.3 %', 'above 99.9 %', '95 %')
    """
    if probability > 0.9990001:
        return "above 99.9 %"
    return "below 0.1 %" if probability < 0.001 else f"{math.floor(1000.0 * probability + 1e-9) / 10.0:g} %"


def rounded(x: float) -> str:
    """A mean of counts: one decimal place below a hundred.

    >>> rounded(9.33), rounded(8.0), rounded(123.4)
    ('9.3', '8', '123')
    """
    return f"{x:.0f}" if x >= 99.95 else f"{x:.1f}".removesuffix(".0")


def lasting(seconds: float) -> str:
    """A length of time in the unit in which it is at least two.

    >>> lasting(90.0), lasting(560.0)
    ('90 seconds', '9.3 minutes')
    """
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * size:
            return f"{rounded(seconds / size)} {unit}"
    return f"{rounded(seconds)} seconds"


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "window"), counted(2, "window")
    ('1 window', '2 windows')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int = 6) -> str:
    """The first few names, and how many more there are.

    >>> listed(["a", "b"]), listed(list("abcdefgh"))
    ('a, b', 'a, b, c, d, e, f and 2 more')
    """
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as aligned lines.

    >>> columns([("sensor", "n"), ("a", "12")])
    ['sensor  n', 'a       12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
