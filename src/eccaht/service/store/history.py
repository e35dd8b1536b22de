"""What the store knows of the past: windows in bins, events, incidents, actions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.service.store.schema import audit, comments, eras, events, models, outbox, windows

_BYTES = 8  # of a value
_AT_ONCE = 5000  # rows that are fetched at a time
Documents = list[dict[str, Any]]
_OPEN = ("joined", "left", "over", "changed", "acknowledged", "new-normal")


class Span(NamedTuple):
    """Times in microseconds: windows that start in [start, stop)."""

    start: int
    stop: int


def span_of(connection: sa.Connection, plant: str, start: int | None, stop: int | None) -> Span | None:
    """The span of a plant's windows within limits, None if it has none there."""
    inside = _inside(plant, start, stop)
    first, last = connection.execute(
        sa.select(sa.func.min(windows.c.start), sa.func.max(windows.c.start)).where(*inside)
    ).one()
    if first is None:
        return None
    return Span(first if start is None else start, last + 1 if stop is None else stop)


def evidence(connection: sa.Connection, plant: str, span: Span, points: int) -> list[tuple[int, float, int]]:
    """The first start, the largest evidence and the worst state of each bin that has windows."""
    width = max((span.stop - span.start + points - 1) // points, 1)
    number = (windows.c.start - sa.literal(span.start, sa.BigInteger)) // sa.literal(width, sa.BigInteger)
    found = (
        sa.select(sa.func.min(windows.c.start), sa.func.max(windows.c.evidence), sa.func.max(windows.c.state))
        .where(*_inside(plant, *span))
        .group_by(number)
        .order_by(sa.func.min(windows.c.start))
    )
    return [tuple(row) for row in connection.execute(found)]


class Past(NamedTuple):
    """Windows of one era: starts in microseconds, (T,), values in robust units, (T, n), and the most rows of each."""

    starts: NDArray[np.int64]
    values: Array
    rows: NDArray[np.int64]


def eras_in(connection: sa.Connection, plant: str, span: Span) -> list[tuple[int, str]]:
    """The eras of a plant that have windows in a span, and the digest of the model of each, in order."""
    there = sa.select(windows.c.era).where(*_inside(plant, *span)).distinct()
    found = sa.select(eras.c.era, eras.c.digest).where(eras.c.plant == plant, eras.c.era.in_(there))
    return [(row.era, row.digest) for row in connection.execute(found.order_by(eras.c.era))]


def count_in(connection: sa.Connection, plant: str, span: Span) -> int:
    found = sa.select(sa.func.count()).select_from(windows).where(*_inside(plant, *span))
    return int(connection.execute(found).scalar() or 0)


def past(
    connection: sa.Connection,
    plant: str,
    era: int,
    span: Span,
    size: int,
    *,
    places: Sequence[int] | None = None,
    one_of: int = 1,
) -> Past:
    """The windows of an era in a span, one of so many; size: sensors of its model.

    places: of the sensors that are read, all unless given. The database cuts them out, so that few sensors of many
    windows are little to fetch.
    """
    parts: list[Any] = [windows.c["values"]]
    if places is not None:
        size = len(places)
        parts = [sa.func.substr(windows.c["values"], _BYTES * k + 1, _BYTES, type_=sa.LargeBinary()) for k in places]
    chosen = _chosen(parts).where(*_inside(plant, *span), windows.c.era == era).order_by(windows.c.start)
    if one_of > 1:
        chosen = chosen.where(windows.c.number % one_of == 0)
    return _fetched(connection, chosen, size)


def newest(connection: sa.Connection, plant: str, era: int, size: int, most: int) -> Past:
    """The last windows of a plant, at most so many."""
    chosen = _chosen([windows.c["values"]]).where(windows.c.plant == plant, windows.c.era == era)
    found = _fetched(connection, chosen.order_by(windows.c.start.desc()).limit(most), size)
    return Past(found.starts[::-1], found.values[::-1], found.rows[::-1])


def _chosen(parts: Sequence[Any]) -> sa.Select[Any]:
    return sa.select(windows.c.start, windows.c.rows, *parts)


def _fetched(connection: sa.Connection, chosen: sa.Select[Any], columns: int) -> Past:
    starts, rows, values = list[int](), list[int](), [np.empty((0, columns))]
    for group in connection.execution_options(yield_per=_AT_ONCE).execute(chosen).partitions():
        starts += [row[0] for row in group]
        rows += [row[1] for row in group]
        content = b"".join(part for row in group for part in row[2:])
        values.append(np.frombuffer(content, "<f8").astype(np.float64).reshape(len(group), columns))
    return Past(np.array(starts, dtype=np.int64), np.concatenate(values), np.array(rows, dtype=np.int64))


def peak(connection: sa.Connection, plant: str, start: int, stop: int | None) -> float:
    """The largest evidence of the windows of a stretch; 0 if none is kept."""
    found = sa.select(sa.func.max(windows.c.evidence)).where(*_inside(plant, start, stop))
    return connection.execute(found).scalar() or 0.0


class Place(NamedTuple):
    """A place among the events of all plants: a time in microseconds, and which event of that time; none: all."""

    time: int
    plant: str = ""
    number: int = 0


def list_events(
    connection: sa.Connection, plant: str, before: int | None, limit: int, kinds: tuple[str, ...] = ()
) -> tuple[Documents, bool]:
    """Events of a plant, the newest first, and whether there are older ones; before: the number of one."""
    found = _events(kinds).where(events.c.plant == plant)
    if before is not None:
        found = found.where(events.c.number < before)
    return _page(connection, found.order_by(events.c.number.desc()), limit)


def list_all_events(
    connection: sa.Connection, before: Place | None, limit: int, kinds: tuple[str, ...] = ()
) -> tuple[Documents, bool]:
    """The same of all plants by time, and of equal times by plant and number."""
    found, e = _events(kinds), events.c
    if before is not None:
        further = sa.or_(e.plant > before.plant, sa.and_(e.plant == before.plant, e.number < before.number))
        equal = sa.and_(e.time == before.time, further) if before.plant else sa.false()
        found = found.where(sa.or_(e.time < before.time, equal))
    return _page(connection, found.order_by(e.time.desc(), e.plant, e.number.desc()), limit)


def _events(kinds: tuple[str, ...]) -> sa.Select[Any]:
    found = sa.select(events.c.plant, events.c.document, events.c.time)
    return found.where(events.c.kind.in_(kinds)) if kinds else found


def _page(connection: sa.Connection, found: sa.Select[Any], limit: int) -> tuple[Documents, bool]:
    rows = connection.execute(found.limit(limit + 1)).all()
    return [{**row.document, "plant": row.plant, "at": row.time} for row in rows[:limit]], len(rows) > limit


def event(connection: sa.Connection, plant: str, number: int) -> tuple[dict[str, Any], int] | None:
    place = (events.c.plant == plant) & (events.c.number == number)
    row = connection.execute(sa.select(events.c.document, events.c.time).where(place)).one_or_none()
    return None if row is None else ({**row.document, "plant": plant}, row.time)


def course(connection: sa.Connection, plant: str, number: int) -> tuple[Documents, list[int]]:
    """What happened to an alarm until the next one, and the times in microseconds."""
    after = sa.select(events.c.document, events.c.time, events.c.kind).where(
        events.c.plant == plant, events.c.number > number, events.c.kind.in_(("alarm", *_OPEN))
    )
    found, times = [], []
    for row in connection.execute(after.order_by(events.c.number)):
        if row.kind == "alarm":
            break
        found.append({**row.document, "plant": plant})
        times.append(row.time)
    return found, times


def courses(connection: sa.Connection, plant: str, first: int, stop: int | None) -> Documents:
    """What happened to alarms from event `first` on, before event `stop`."""
    found = sa.select(events.c.document).where(
        events.c.plant == plant,
        events.c.number >= first,
        events.c.kind.in_(("alarm", "joined", "left", "over", "acknowledged")),
    )
    if stop is not None:
        found = found.where(events.c.number < stop)
    return list(connection.execute(found.order_by(events.c.number)).scalars())


def reported(
    connection: sa.Connection, plant: str, kinds: Sequence[str], most: int | None = None
) -> list[tuple[dict[str, Any], int]]:
    """The events of some kinds in order, or the last ones, each with its time in microseconds."""
    found = sa.select(events.c.document, events.c.time).where(events.c.plant == plant, events.c.kind.in_(kinds))
    rows = connection.execute(found.order_by(events.c.number.desc()).limit(most)).all()
    return [(row.document, row.time) for row in reversed(rows)]


def comments_of(connection: sa.Connection, plant: str, number: int) -> Documents:
    found = sa.select(comments).where(comments.c.plant == plant, comments.c.number == number).order_by(comments.c.id)
    return [dict(row._mapping) for row in connection.execute(found)]


def actions(connection: sa.Connection, plant: str | None, before: int | None, limit: int) -> tuple[Documents, bool]:
    """What was done, the newest first; before: an id."""
    found = sa.select(audit)
    if plant is not None:
        found = found.where(audit.c.plant == plant)
    return _newest(connection, found, audit, before, limit)


def checks_of(connection: sa.Connection, plant: str, number: int) -> Documents:
    """The sensors of an incident that were read by hand, in the order in which they were."""
    mine = (audit.c.plant == plant) & (audit.c.action == "check")
    found = connection.execute(sa.select(audit.c.document).where(mine).order_by(audit.c.id)).scalars()
    return [document for document in found if document["number"] == number]


def alerts(connection: sa.Connection, before: int | None, limit: int) -> tuple[Documents, bool]:
    """The messages of the outbox, the newest first."""
    return _newest(connection, sa.select(outbox), outbox, before, limit)


def _newest(
    connection: sa.Connection, found: sa.Select[Any], table: sa.Table, before: int | None, limit: int
) -> tuple[Documents, bool]:
    if before is not None:
        found = found.where(table.c.id < before)
    rows = connection.execute(found.order_by(table.c.id.desc()).limit(limit + 1)).all()
    return [dict(row._mapping) for row in rows[:limit]], len(rows) > limit


def era_of(connection: sa.Connection, plant: str, number: int) -> tuple[int, str]:
    """The era of an event, and the digest of its model."""
    found = sa.select(eras.c.era, eras.c.digest).where(eras.c.plant == plant, eras.c.number < number)
    row = connection.execute(found.order_by(eras.c.era.desc()).limit(1)).one()
    return row.era, row.digest


def model_content(connection: sa.Connection, digest: str) -> bytes:
    return connection.execute(sa.select(models.c.content).where(models.c.digest == digest)).scalar_one()


def model_name(connection: sa.Connection, digest: str) -> str:
    return connection.execute(sa.select(models.c.name).where(models.c.digest == digest)).scalar() or ""


def _inside(plant: str, start: int | None, stop: int | None) -> list[Any]:
    limits = [windows.c.plant == plant]
    limits += [] if start is None else [windows.c.start >= start]
    return limits + ([] if stop is None else [windows.c.start < stop])
