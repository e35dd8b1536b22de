"""Long tables, one reading a row, as historians and databases export them (time, tag, value): made wide."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from eccaht.plants.data.columns import TIME
from eccaht.plants.data.layout import Layout, is_number, layout_of_frame
from eccaht.plants.data.lines import Faults
from eccaht.plants.data.reading import load, time_rule

if TYPE_CHECKING:
    import polars as pl

_TAG = re.compile(r"((tag|sensor|signal|point|channel|variable|metric|item|series)[ _-]?(name|id)?|name)", re.I)
_VALUE = re.compile(r"(tag|point)?[ _-]?(values?|val|readings?|measurement|messwert|wert)", re.I)
_BESIDE = re.compile(r".*(quality|status|good|unit|einheit|type|source|desc).*", re.I)
_OWN = ("\0tag", "\0value")  # what the two are called while they are read: no tag can have such a name
_SPARSE = 0.5  # share of empty cells from which on the tags have their readings at different times


class _Columns(NamedTuple):
    """The columns of a long table; beside: those that are not used."""

    times: tuple[str, ...]
    tag: str
    value: str
    beside: tuple[str, ...]


def widened(layouts: list[Layout], decimal_comma: bool | None, *, strict: bool) -> list[Layout]:
    """Long tables as one wide one in memory; wide ones unchanged. strict: refuse lines that are no rows."""
    found = [columns for layout in layouts if (columns := _columns(layout))]
    if len(found) < len(layouts) or len(set(found)) > 1:
        return layouts
    faults, first, columns = None if strict else Faults(), layouts[0], found[0]
    read, parts = zip(*(_read(layout, columns, faults) for layout in layouts), strict=True)
    wide, tags, empty = _pivoted(parts, columns)
    unused = f"; not used: {', '.join(columns.beside)}" if columns.beside else ""
    notes = [f"{first.path} is a long table: the {tags} values of {columns.tag!r} were made columns{unused}"]
    if empty > _SPARSE:
        rows = round(1.0 / (1.0 - empty))
        notes.append(f"each tag has a reading in about one row of {rows}: windows should be at least as long")
    notes += [note for layout in read for note in layout.notes] + ([] if faults is None else faults.notes())
    return [replace(layout_of_frame(wide, decimal_comma), path=first.path, told=tuple(notes))]


def _columns(layout: Layout) -> _Columns | None:
    """Which columns hold what; None for a wide table."""
    times = time_rule(layout, None, None, counted=None).columns
    others = [name for name in layout.names if name not in times]
    tags, values = ([name for name in others if kind.fullmatch(name)] for kind in (_TAG, _VALUE))
    if len(others) == 2 and len(tags) + len(values) == 1:
        (other,) = set(others).difference(tags, values)
        tags, values = tags or [other], values or [other]
    beside = tuple(name for name in others if name not in (*tags[:1], *values))
    if not times or not tags or len(values) != 1 or not all(map(_BESIDE.fullmatch, beside)):
        return None
    return None if _has_decimals(layout, layout.names.index(tags[0])) else _Columns(times, tags[0], values[0], beside)


def _has_decimals(layout: Layout, place: int) -> bool:
    """Whether a column holds readings, and so no tags."""
    if layout.format == "parquet":
        return list(layout.scan().collect_schema().values())[place].is_float()
    return any(is_number(text, layout.decimal_comma) and not text.isdigit() for text in layout.texts(place))


def _read(layout: Layout, columns: _Columns, faults: Faults | None) -> tuple[Layout, pl.DataFrame]:
    import polars as pl

    places = {_OWN[0]: layout.names.index(columns.tag), _OWN[1]: layout.names.index(columns.value)}
    layout, frame = load(layout, places, columns.times, faults, _OWN)
    tags = frame[_OWN[0]]
    text = (tags.cast(pl.Int64) if tags.dtype.is_numeric() else tags).cast(pl.String)
    return replace(layout, content=None), frame.with_columns(text).drop_nulls(_OWN[0])


def _pivoted(parts: Sequence[pl.DataFrame], columns: _Columns) -> tuple[pl.DataFrame, int, float]:
    """One row a time, the number of tags, and the share of empty cells; of readings of one time the last counts."""
    import polars as pl

    kinds = {part[_OWN[1]].dtype for part in parts}
    whole = pl.concat(part if len(kinds) == 1 else part.with_columns(pl.col(_OWN[1]).cast(pl.String)) for part in parts)
    times = [f"{TIME}{k}" for k in range(len(columns.times))]
    wide = whole.pivot(on=_OWN[0], index=times, values=_OWN[1], aggregate_function="last")
    tags = [name for name in wide.columns if name not in times]
    if twice := set(tags).intersection(columns.times):
        raise ValueError(f"a tag is called {twice.pop()!r}, which is the name of the column of times: rename it")
    empty = sum(wide[name].null_count() for name in tags) / max(len(tags) * len(wide), 1)
    return wide.rename(dict(zip(times, columns.times, strict=True))), len(tags), empty
