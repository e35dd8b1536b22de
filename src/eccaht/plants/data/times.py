"""Which columns of a file hold the time: the given ones, or found by their names and contents."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eccaht.plants.data.layout import Layout, is_number
from eccaht.plants.data.reading import TimeRule, guess_formats

_JOINT = re.compile(r"(date|time|day)?[\s_./&-]*(time|stamp)s?|ts|t[_ ]stamp|time\b.*|date\b.*", re.IGNORECASE)
_NO_TIMES = "no time column found: rows are counted; name it with --time-column if there is one"


def time_rule(
    layout: Layout, time_column: str | Sequence[str] | None, row_interval: float | None, *, counted: bool | None = False
) -> TimeRule:
    """Find the time columns of a file: the given ones, or by their names and contents.

    counted: there must be none, and rows are counted; None: rows are counted if there are none, with a note.
    """
    if row_interval is not None:
        return TimeRule((), (), row_interval, bool(counted))
    places = _given(layout, time_column) if time_column is not None else _found(layout)
    if counted and places:
        raise ValueError(f"{layout.path} has times in {layout.names[places[0]]!r}: give --window as a length of time")
    if counted:
        return TimeRule((), (), 1.0, counted)
    if not places and counted is None:
        return TimeRule((), (), 1.0, True, (_NO_TIMES,))
    if not places:
        raise ValueError(
            f"no time column found in {layout.path}: name it with --time-column, give --row-interval if the rows are "
            "equally spaced, or --window 60rows to count rows"
        )
    return TimeRule(tuple(layout.names[k] for k in places))


def _given(layout: Layout, time_column: str | Sequence[str]) -> tuple[int, ...]:
    names = [time_column] if isinstance(time_column, str) else list(time_column)
    if len(names) == 1 and layout.place(names[0]) is None and "," in names[0]:
        names = [name.strip() for name in names[0].split(",")]
    if not 1 <= len(names) <= 2:
        raise ValueError("give one time column, or a date and a time column")
    return tuple(layout.matching([name], "--time-column")[0] for name in names)


def _found(layout: Layout) -> tuple[int, ...]:
    named = _columns_by_name(layout.names)
    if layout.format == "parquet":
        kinds = layout.scan().collect_schema().values()
        typed = [k for k, kind in enumerate(kinds) if kind.is_temporal()]
        return named if set(named) & set(typed) or not typed else (typed[0],)
    if named:
        return named
    for k in range(len(layout.names)):
        texts = layout.texts(k)
        numbers = any(is_number(text, layout.decimal_comma) for text in texts[:20])
        if texts and not numbers and guess_formats([texts], 1.0):
            return (k,)
    return ()


def _columns_by_name(names: Sequence[str]) -> tuple[int, ...]:
    """The places of the columns whose names say that they hold the time; a date and a time column belong together."""
    lower = [name.casefold().strip() for name in names]
    if "date" in lower and "time" in lower:
        return (lower.index("date"), lower.index("time"))
    exact = [k for k, name in enumerate(lower) if name in ("timestamp", "datetime", "time")]
    return tuple(exact[:1] or [k for k, name in enumerate(lower) if _JOINT.fullmatch(name)][:1])
