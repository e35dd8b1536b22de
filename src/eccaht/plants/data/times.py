"""Which columns of a file hold the time: the given ones, or found by their names and contents."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eccaht.plants.data.layout import Layout, is_number
from eccaht.plants.data.reading import TimeRule, guess_formats

_JOINT = re.compile(r"(date|time|day)?[\s_./&-]*(time|stamp)s?|ts|t[_ ]stamp|time\b.*|date\b.*", re.IGNORECASE)


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
        window = layout.option("--window", "window")
        raise ValueError(f"{layout.path} has times in {layout.names[places[0]]!r}: give {window} as a length of time")
    if counted:
        return TimeRule((), (), 1.0, counted)
    named = f"name it with {layout.option('--time-column', 'time_column')}"
    if not places and counted is None:
        return TimeRule((), (), 1.0, True, (f"no time column found: rows are counted; {named} if there is one",))
    if not places:
        interval = layout.option("--row-interval", "row_interval")
        window = layout.option("--window 60rows", 'window="60rows"')
        raise ValueError(
            f"no time column found in {layout.path}: {named}, give {interval} if the rows are equally spaced, "
            f"or {window} to count rows"
        )
    return TimeRule(tuple(layout.names[k] for k in places))


def _given(layout: Layout, time_column: str | Sequence[str]) -> tuple[int, ...]:
    names = [str(name) for name in ([time_column] if isinstance(time_column, str | int) else time_column)]
    if len(names) == 1 and layout.place(names[0]) is None and "," in names[0]:
        names = [name.strip() for name in names[0].split(",")]
    if not 1 <= len(names) <= 2:
        raise ValueError("give one time column, or a date and a time column")
    return tuple(layout.matching([name], "time column")[0] for name in names)


def _found(layout: Layout) -> tuple[int, ...]:
    named = _columns_by_name(layout.names)
    if layout.format == "parquet":
        kinds = layout.scan().collect_schema().values()
        typed = [k for k, kind in enumerate(kinds) if kind.is_temporal()]
        if typed and not set(named) & set(typed):
            return (typed[0],)
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
