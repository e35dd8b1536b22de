"""Tables as plain text."""

from __future__ import annotations

from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as aligned lines.

    >>> columns([("sensor", "n"), ("a", "12")])
    ['sensor  n', 'a       12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
