"""Rows from a table of a database, polled by time.

Each poll reads what is not older than the newest row less the overlap, so that rows which are committed late are found;
rows that were submitted before are left out. The place from which a poll reads is a time that stands in the table, so
that it needs no conversion, and it is kept once the rows after it are stored.
"""

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from eccaht.service.hiding import database_url
from eccaht.service.rows import TimeReader, severity
from eccaht.service.sources.feed import Feed, OneThread, Sink, Target
from eccaht.service.sources.parsing import Payloads, SensorReading
from eccaht.service.sources.settings import ReadingSettings, SqlSettings

_LARGEST_PAGE = 1_000_000  # rows of one time
_MOST_SEEN = 2_000_000  # rows in the overlap that are remembered
_DAY = 86_400_000_000  # microseconds
_CONNECT = {"connect_timeout": 10, "options": "-c statement_timeout=60000 -c default_transaction_read_only=on"}


class SqlFeed(Feed):
    """Polls one table for one plant."""

    def __init__(self, name: str, settings: SqlSettings, target: Target, sink: Sink) -> None:
        super().__init__(name, sink, [target.name], f"{settings.table} of {settings.url}", settings.secrets())
        self._settings, self._target = settings, target
        self._url = _url(name, settings)
        self._moments = TimeReader(target.clock, settings.time_unit, settings.timezone)
        how = ReadingSettings(quality_codes=settings.quality_codes, uncertain=settings.uncertain)
        self._payloads = Payloads(self._moments, target.expected, how)
        self._overlap = round(settings.overlap * 1e6)
        self._bound: Any = None  # the time from which on the next poll reads, as the table has it
        self._steps: deque[tuple[int, Any]] = deque()  # later times that the bound may move to
        self._seen: dict[bytes, int] = {}  # rows that were submitted, with their times

    async def connect(self) -> None:
        thread = OneThread(f"sql-{self.name}")
        connection: sa.Connection | None = None
        try:
            connection = await thread.call(self._opened)
            sensors, query = await thread.call(self._query, connection)
            if self._settings.layout == "wide" and (missing := len(self._target.expected.names) - len(sensors)):
                self.health.counts["sensors without a column"] = missing
            # go on where the last run ended; a place to begin at is kept at once, so that the next run goes on there
            kept = await self._sink.position(self._target.name, self.name)
            if kept is None and self._settings.first == "newest":
                kept = _to_store(await thread.call(_newest, connection, query))
                await self._sink.set_position(self._target.name, self.name, kept)
            self._bound = None if kept is None else kept["time"]
            if kept is not None and kept["kind"] == "moment":
                self._bound = datetime.fromisoformat(kept["time"])
            self.health.running()
            while True:
                await self._poll(thread, connection, query, sensors)
                await asyncio.sleep(self._settings.poll)
        finally:
            await thread.finish(lambda: None if connection is None else _close(connection))

    def _opened(self) -> sa.Connection:
        if self._url.get_backend_name() == "sqlite" and not Path(self._url.database or "").is_file():
            raise FileNotFoundError(f"there is no file {self._url.database}")
        server = self._url.get_backend_name() == "postgresql"
        engine = sa.create_engine(
            self._url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT", connect_args=_CONNECT if server else {}
        )
        return engine.connect()

    def _query(self, connection: sa.Connection) -> tuple[tuple[str, ...], sa.Select[Any]]:
        """The sensors of a wide table, and what to ask; the columns must be there."""
        settings = self._settings
        there = {column["name"] for column in sa.inspect(connection).get_columns(settings.table, settings.schema_name)}
        sensors: tuple[str, ...] = ()
        if settings.layout == "wide":
            chosen = {sensor: settings.columns.get(sensor, sensor) for sensor in self._target.expected.names}
            sensors = tuple(
                sensor for sensor, column in chosen.items() if column in there or sensor in settings.columns
            )
            if not sensors:
                raise ValueError(f"table {settings.table} has a column for none of the model's sensors")
            asked = [chosen[sensor] for sensor in sensors]
        else:
            asked = [settings.sensor, settings.value, *([settings.quality] if settings.quality else [])]
        needed = [settings.time, *asked, *([settings.plant_column] if settings.plant_column else [])]
        if absent := [column for column in needed if column not in there]:
            raise ValueError(f"table {settings.table} has no column {absent[0]!r}")
        table = sa.table(settings.table, *map(sa.column, dict.fromkeys(needed)), schema=settings.schema_name)
        time = table.c[settings.time]
        query = sa.select(time, *(table.c[column] for column in asked)).where(time.is_not(None)).order_by(time)
        if settings.plant_column:
            query = query.where(table.c[settings.plant_column] == (settings.plant_value or self._target.name))
        return sensors, query

    def _page(self, connection: sa.Connection, query: sa.Select[Any], start: Any) -> tuple[list[Any], Any]:
        """Rows from a time on, complete for each of their times, and the time of the next page; None if it ends."""
        time, size = query.selected_columns[0], self._settings.batch
        asked = query if start is None else query.where(time >= start)
        while True:
            rows = [tuple(row) for row in connection.execute(asked.limit(size))]
            if len(rows) < size:
                return rows, None
            last = rows[-1][0]
            whole = [row for row in rows if row[0] != last]
            if whole:
                return whole, last
            if size >= _LARGEST_PAGE:
                raise ValueError(f"table {self._settings.table} has over {_LARGEST_PAGE} rows with the time {last}")
            size = min(10 * size, _LARGEST_PAGE)

    async def _poll(
        self, thread: OneThread, connection: sa.Connection, query: sa.Select[Any], sensors: Sequence[str]
    ) -> None:
        start, more = self._bound, True
        while more:
            page, start = await thread.call(self._page, connection, query, start)
            more = start is not None
            await self._take(page, sensors)

    async def _take(self, page: Sequence[Any], sensors: Sequence[str]) -> None:
        """Submit the rows that are new, then move the place from which the next poll reads."""
        readings: list[SensorReading] = []
        seen: dict[bytes, int] = {}
        form = type(page[0][0]) if page else None
        for row in page:
            # in few bytes, of its text, in which one NaN is like another
            if (mark := blake2b(repr(row).encode(), digest_size=12).digest()) in self._seen:
                continue
            try:
                if type(row[0]) is not form:
                    raise ValueError(f"times of different types, such as {row[0]!r}")
                moment = self._moments.read(_plain(row[0]))
                readings += self._readings(moment, row[1:], sensors)
            except (ValueError, OverflowError) as error:
                self.health.count("bad rows", str(error))
                moment = 0
            else:
                self._step(moment, row[0])
            seen[mark] = moment
        await self.submit(self._target, readings)
        self._seen |= seen
        await self._move()

    def _readings(self, moment: int, values: Sequence[Any], sensors: Sequence[str]) -> list[SensorReading]:
        if self._settings.layout == "wide":
            return [
                SensorReading(moment, sensor, self._payloads.number(_plain(value), sensor))
                for sensor, value in zip(sensors, values, strict=True)
            ]
        sensor, value, *quality = values
        if not isinstance(sensor, str):
            raise ValueError(f"the sensor {sensor!r} is no text")
        code = quality[0] if quality else None
        good = code is None or self._payloads.good(severity(_plain(code), self._settings.quality_codes))
        return [SensorReading(moment, sensor, self._payloads.number(_plain(value), sensor) if good else math.nan)]

    def _step(self, moment: int, stored: Any) -> None:
        """Remember times that the bound may move to, some twenty in the overlap; none from the future."""
        if moment > self._moments.now() // 1000 + _DAY:
            return
        if not self._steps or moment >= self._steps[-1][0] + self._overlap // 20:
            self._steps.append((moment, stored))

    async def _move(self) -> None:
        """Move the bound to the latest time that lies the overlap behind the newest one."""
        before = self._bound
        while len(self._steps) > 1 and self._steps[1][0] <= self._steps[-1][0] - self._overlap:
            self._steps.popleft()
        if self._steps and self._steps[0][0] <= self._steps[-1][0] - self._overlap:
            moment, self._bound = self._steps[0]
            self._seen = {mark: time for mark, time in self._seen.items() if time >= moment or time == 0}
        if len(self._seen) > _MOST_SEEN:
            self._seen.clear()
        if self._bound is not None and self._bound != before:
            await self._sink.set_position(self._target.name, self.name, _to_store(self._bound))


def _url(name: str, settings: SqlSettings) -> sa.URL:
    try:
        url = database_url(settings.url.get_secret_value())
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        url.get_dialect()
    except sa.exc.ArgumentError:
        raise ValueError(f"source {name!r}: setting url: there is no such kind of database") from None
    except ValueError as error:
        raise ValueError(f"source {name!r}: setting url: {error}") from None
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise ValueError(f"source {name!r}: a database in memory has no rows of others: name a file")
    return url


def _newest(connection: sa.Connection, query: sa.Select[Any]) -> Any:
    time = query.selected_columns[0]
    return connection.execute(query.order_by(None).order_by(time.desc()).limit(1)).scalar()


def _plain(value: Any) -> Any:
    """Numbers of exact types as Python's own."""
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    return value


def _to_store(bound: Any) -> dict[str, Any]:
    if isinstance(bound, datetime):
        return {"kind": "moment", "time": bound.isoformat()}
    return {"kind": "plain", "time": _plain(bound)}


def _close(connection: sa.Connection) -> None:
    try:
        connection.close()
    finally:
        connection.engine.dispose()
