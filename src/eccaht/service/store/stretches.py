"""Stored windows of a plant over any period, whatever models it had: era by era, in the units of each era's model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.service.store.history import Span
from eccaht.service.store.schema import eras, events, windows

_BYTES = 8  # of a value
_AT_ONCE = 5000  # rows that are fetched at a time


class Stretch(NamedTuple):
    """Windows of one era: starts in microseconds, (T,), values in robust units, (T, n), and the most rows of each."""

    starts: NDArray[np.int64]
    values: Array
    rows: NDArray[np.int64]


def eras_in(connection: sa.Connection, plant: str, span: Span) -> list[tuple[int, str]]:
    """The eras of a plant that have windows in a span, and the digest of the model of each, in order."""
    there = sa.select(windows.c.era).where(*_inside(plant, span)).distinct()
    found = sa.select(eras.c.era, eras.c.digest).where(eras.c.plant == plant, eras.c.era.in_(there))
    return [(row.era, row.digest) for row in connection.execute(found.order_by(eras.c.era))]


def count_in(connection: sa.Connection, plant: str, span: Span) -> int:
    found = sa.select(sa.func.count()).select_from(windows).where(*_inside(plant, span))
    return int(connection.execute(found).scalar() or 0)


def stretch(
    connection: sa.Connection, plant: str, era: int, span: Span, places: Sequence[int], one_of: int = 1
) -> Stretch:
    """The windows of an era; places: of the sensors that are read, among those of its model; one_of: so many windows.

    The database cuts the sensors out, so that few sensors of many windows are little to fetch.
    """
    parts = [sa.func.substr(windows.c["values"], _BYTES * k + 1, _BYTES, type_=sa.LargeBinary()) for k in places]
    return _fetched(connection, _chosen(plant, era, span, parts, one_of), len(parts))


def whole_stretch(connection: sa.Connection, plant: str, era: int, span: Span, size: int) -> Stretch:
    """The windows of an era with all sensors, of which there are `size`."""
    return _fetched(connection, _chosen(plant, era, span, [windows.c["values"]], 1), size)


def reported(connection: sa.Connection, plant: str, kinds: Sequence[str]) -> list[tuple[dict[str, Any], int]]:
    """The events of some kinds in order, each with its time in microseconds."""
    found = sa.select(events.c.document, events.c.time).where(events.c.plant == plant, events.c.kind.in_(kinds))
    return [(row.document, row.time) for row in connection.execute(found.order_by(events.c.number))]


def _chosen(plant: str, era: int, span: Span, parts: Sequence[Any], one_of: int) -> sa.Select[Any]:
    chosen = sa.select(windows.c.start, windows.c.rows, *parts).where(*_inside(plant, span), windows.c.era == era)
    if one_of > 1:
        chosen = chosen.where(windows.c.number % one_of == 0)
    return chosen.order_by(windows.c.start)


def _fetched(connection: sa.Connection, chosen: sa.Select[Any], columns: int) -> Stretch:
    starts, rows, values = list[int](), list[int](), list[Array]()
    for group in connection.execution_options(yield_per=_AT_ONCE).execute(chosen).partitions():
        starts += [row[0] for row in group]
        rows += [row[1] for row in group]
        content = b"".join(part for row in group for part in row[2:])
        values.append(np.frombuffer(content, "<f8").astype(np.float64).reshape(len(group), columns))
    joined = np.concatenate(values) if values else np.empty((0, columns))
    return Stretch(np.array(starts, dtype=np.int64), joined, np.array(rows, dtype=np.int64))


def _inside(plant: str, span: Span) -> tuple[sa.ColumnElement[bool], ...]:
    return (windows.c.plant == plant, windows.c.start >= span.start, windows.c.start < span.stop)
