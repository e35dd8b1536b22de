"""Payloads by HTTP and from brokers become readings by the same rules.

JSON is a number, an object of one reading, an object of many sensors, a list of objects, or objects in lines; CSV is a
piece of a file with its column names, read as the history of the model was. Sizes are bounded before anything is
parsed; whatever an untrusted sender sends, the worst is a `BadPayload` of one short line.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eccaht.plants import Chunk, Expected
from eccaht.plants.data.layout import lines_of
from eccaht.plants.data.reading import TimeRule
from eccaht.plants.intake import Rows, level_of, number_of
from eccaht.service.rows import Severity, TimeReader, checked_name, checked_time, severity
from eccaht.service.sources.settings import Format, ReadingSettings

if TYPE_CHECKING:
    from eccaht.service.sources.feed import Target

LARGEST_PAYLOAD = 1 << 18  # bytes
MOST_READINGS = 10_000  # of one payload
MOST_ROWS, MOST_CELLS = 1000, 1_000_000  # of one delivery
_COLUMNS = 20_000
_SMALL = 4096  # bytes that are read at once
_SENSOR, _VALUES = "sensor", "values"
_TIMES = frozenset({"time", "timestamp", "datetime", "date", "ts"})  # what others call the time
_WORDS = {"null": None, "true": True, "false": False}
_LONGEST_REASON = 200  # characters


class BadPayload(ValueError):
    """A payload that holds no readings, with the reason in one line."""


class TooLarge(BadPayload):
    """A payload, or the body of a request, that holds more than it may."""


class SensorReading(NamedTuple):
    """One value of one sensor; time in microseconds on the clock of the plant, NaN where there is no good value."""

    time: int
    sensor: str
    value: float


class Most(NamedTuple):
    """How much may come at once: bytes, rows, and readings, of sensors that are silent too."""

    bytes: int
    rows: int
    cells: int

    def check(self, rows: int, columns: int = 1) -> None:
        """Refuse more, before it is read."""
        if rows > self.rows:
            raise TooLarge(f"there are {rows} rows, more than {self.rows} at once: send less at a time")
        if columns > _COLUMNS or rows * columns > self.cells:
            raise TooLarge(f"{rows} rows of {columns} sensors are too much at once: send less at a time")


MESSAGE = Most(LARGEST_PAYLOAD, MOST_READINGS, MOST_READINGS)  # of a broker


@dataclass(frozen=True)
class Payloads:
    """How payloads are read.

    moments: how times are, in CSV only where the history does not say it. expected: by the model; a status is its place
    among the levels of its sensor. how: the keys of JSON objects (that of the time is also its column in CSV, if it is
    not called as in the history), and what counts as good. names: sensors of the model by their names in payloads.
    most: how much one payload may hold. known: the columns of the model; those of CSV that it does not have are not
    read, and stand as missing.
    """

    moments: TimeReader
    expected: Expected
    how: ReadingSettings = field(default_factory=ReadingSettings)
    names: Mapping[str, str] = field(default_factory=dict)
    format: Format = "json"
    most: Most = MESSAGE
    known: frozenset[str] | None = None

    @classmethod
    def of(
        cls,
        how: ReadingSettings,
        target: Target,
        *,
        format: Format,
        names: Mapping[str, str] | None = None,
        most: Most = MESSAGE,
    ) -> Payloads:
        moments = TimeReader(target.clock, how.time_unit, how.timezone)
        return cls(moments, target.expected, how, names or {}, format, most, target.known)

    def read(self, payload: bytes, sensor: str | None = None, arrived: int | None = None) -> list[SensorReading]:
        """The readings of a payload.

        sensor: whose it is, if that is known (from a topic); otherwise the payload names its sensors. arrived: the time
        of readings without one, in microseconds on the clock; the present if absent.
        """
        with _explained():
            if self.format == "csv":
                if sensor is not None:
                    raise BadPayload("CSV names its sensors: it cannot be that of one")
                return list(readings_of(_with_missing(*self._csv(payload))))
            found = list[SensorReading]()
            for reading in self._json(payload, sensor, arrived):
                found.append(reading)
                if len(found) > self.most.cells:
                    raise TooLarge(f"the payload holds more than {self.most.cells} readings")
            return found

    async def read_beside(
        self, payload: bytes, sensor: str | None = None, arrived: int | None = None
    ) -> list[SensorReading]:
        """The same on the loop; a large payload is read in a thread, so that others need not wait."""
        if len(payload) <= _SMALL:
            return self.read(payload, sensor, arrived)
        return await asyncio.to_thread(self.read, payload, sensor, arrived)

    def rows(self, payload: bytes) -> Rows:
        """All of a payload that names its sensors as rows in order of time, one for each time."""
        with _explained():
            if self.format == "csv":
                rows, unknown = self._csv(payload)
                later = np.diff(rows.times) > np.timedelta64(0)
                found = rows if later.all() else rows_of(readings_of(rows))
                return _with_missing(found, unknown)
            readings = self.read(payload)
            self.most.check(len({reading.time for reading in readings}), len({reading.sensor for reading in readings}))
            return rows_of(readings)

    def good(self, found: Severity) -> bool:
        """Whether a value of this severity counts."""
        return found == "good" or (found == "uncertain" and self.how.uncertain == "good")

    def number(self, value: Any, sensor: str) -> float:
        """A value as a float: NaN where there is none; a status is its place among the levels of its sensor.

        What is no value is an error, unless the model does not have the sensor.
        """
        levels = self.expected.levels
        try:
            return level_of(value, levels[sensor]) if sensor in levels else number_of(value)
        except ValueError:
            if sensor in self.expected.names:
                raise
            return math.nan

    def _check_size(self, payload: bytes) -> None:
        if len(payload) > self.most.bytes:
            raise TooLarge(f"the payload has {len(payload)} bytes, more than {self.most.bytes}")

    def _json(self, payload: bytes, sensor: str | None, arrived: int | None) -> Iterator[SensorReading]:
        self._check_size(payload)
        present = cache(lambda: self.moments.present() if arrived is None else arrived)
        named = None if sensor is None else self._name(sensor)
        documents, several = _documents(payload.decode("utf-8-sig"), self.most)
        timeless = set[str]()
        for k, document in enumerate(documents, 1):
            try:
                if isinstance(document, dict):
                    yield from self._of_object(document, named, present, timeless)
                elif several or named is None:
                    raise BadPayload("it must be an object of JSON that names its sensors")
                else:
                    yield SensorReading(present(), named, self.number(document, named))
            except ValueError as error:
                raise BadPayload(f"row {k}: {error}" if several else str(error)) from None

    def _of_object(
        self, document: dict[str, Any], sensor: str | None, present: Callable[[], int], timeless: set[str]
    ) -> Iterator[SensorReading]:
        key = self.how.time_key
        time = document.get(key)
        moment = present() if time is None else self.moments.read(time)
        if sensor is None and _SENSOR in document and self.how.value_key in document:
            sensor = self._name(document[_SENSOR])
        if sensor is not None:
            found: Iterable[SensorReading] = [SensorReading(moment, sensor, self._value(document, sensor))]
        else:
            found = self._of_row(document, moment)
        for reading in found:
            if time is None and reading.time == moment:
                if reading.sensor in timeless:
                    raise BadPayload(f"{reading.sensor!r:.40} comes twice without a time: give it as {key!r}")
                timeless.add(reading.sensor)
            yield reading

    def _of_row(self, document: dict[str, Any], moment: int) -> Iterator[SensorReading]:
        """The readings of an object that has a value for each sensor, nested or beside the time."""
        nested = document.get(_VALUES, document)
        if not isinstance(nested, dict):
            raise BadPayload(f"its {_VALUES!r} must be an object")
        own_keys = (self.how.time_key, self.how.quality_key)
        flat = {name: value for name, value in document.items() if name not in own_keys}
        if self.how.time_key not in document and (others := [name for name in flat if name.casefold() in _TIMES]):
            raise BadPayload(f"it has no {self.how.time_key!r}, but {others[0]!r}: give that as time_key")
        whole = self._counts(document)
        for key, value in (flat if nested is document else nested).items():
            name, own = self._name(key), moment
            if isinstance(value, dict):
                if value.get(self.how.time_key) is not None:
                    own = self.moments.read(value[self.how.time_key])
                number = self._value(value, name)
            else:
                number = self.number(value, name)
            yield SensorReading(own, name, number if whole else math.nan)

    def _name(self, name: Any) -> str:
        if not isinstance(name, str):
            raise BadPayload("the name of a sensor must be a text")
        return checked_name(self.names.get(name, name))

    def _value(self, document: dict[str, Any], sensor: str) -> float:
        if self.how.value_key not in document and sensor in self.expected.names:
            raise BadPayload(f"the object of {sensor!r:.40} has no {self.how.value_key!r}")
        value = self.number(document.get(self.how.value_key), sensor)
        return value if self._counts(document) else math.nan

    def _counts(self, document: dict[str, Any]) -> bool:
        quality = document.get(self.how.quality_key)
        return quality is None or self.good(severity(quality, self.how.quality_codes))

    def _csv(self, payload: bytes) -> tuple[Rows, tuple[str, ...]]:
        """The rows as they stand there, and the columns that were not read because the model does not have them."""
        self._check_size(payload)
        clock = self.moments.clock
        chunk = Chunk.of(payload, replace(self.expected, zone=clock.zone and (self.moments.zone or clock.zone)))
        renamed = tuple(map(self._name, chunk.layout.names))
        if len(set(renamed)) < len(renamed):
            raise ValueError("two columns have the same name: rename one")
        chunk = replace(chunk, layout=replace(chunk.layout, names=renamed))
        self.most.check(chunk.rows, len(renamed))
        rule = self._time_rule(chunk)
        columns = chunk.columns(rule.columns)
        names = tuple(name for name in columns if self.known is None or name in self.known) or columns[:1]
        times: Sequence[int]
        # numbers of rows, or since 1970, are read as in JSON
        if clock.row_interval is not None or (len(rule.columns) == 1 and chunk.counts_time(rule.columns[0])):
            numbers, table = chunk.numbered(rule.columns[0], names)
            if np.isnan(numbers).any():
                raise ValueError(f"row {int(np.isnan(numbers).argmax()) + 1} has no time")
            times = [self.moments.read(number) for number in numbers.tolist()]
        else:
            table = chunk.read(rule, names)
            # in UTC if the model knows a zone, else as the clocks of the plant show them
            placed = self.moments.placed if clock.zone is None and table.clock.zone is not None else checked_time
            times = [placed(time) for time in table.times.astype("datetime64[us]").astype(np.int64).tolist()]
        values = np.column_stack([table.coded(name, self.expected.levels.get(name)) for name in names])
        rows = Rows(np.array(times, dtype=np.int64).astype("datetime64[us]"), names, values)
        return rows, tuple(name for name in columns if name not in names)

    def _time_rule(self, chunk: Chunk) -> TimeRule:
        """How to read the times: as the history's, or else by the column that is called like the time."""
        before = [chunk.layout.place(name) is not None for name in self.expected.times.columns]
        named = chunk.layout.place(self.how.time_key) is not None
        if self.moments.clock.row_interval is not None and not named:
            raise ValueError(f"the rows of this model are counted: number them in a column {self.how.time_key!r}")
        as_before = before and all(before)
        if named and not as_before:
            return TimeRule((self.how.time_key,))
        try:
            return chunk.time_rule
        except ValueError:  # which names options of commands
            key = self.how.time_key
            raise ValueError(f"no column of times: call it {key!r}, or name it by time_key (?time_key=NAME)") from None


@contextmanager
def _explained() -> Iterator[None]:
    """All that can be wrong with a payload is a `BadPayload` of one short line."""
    try:
        yield
    except RecursionError:
        raise BadPayload("the payload is nested too deeply") from None
    except TooLarge:
        raise
    except (ValueError, OverflowError) as error:
        raise BadPayload(" ".join(str(error).split())[:_LONGEST_REASON]) from None


def _documents(text: str, most: Most) -> tuple[Sequence[Any], bool]:
    """What JSON holds, and whether that is several documents, in a list or in lines."""
    text = text.strip()
    if not text:
        raise ValueError("the payload is empty")
    if text[0] not in '[{"':
        return [_WORDS.get(text, text)], False
    try:
        found = _parsed(text)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data" or "\n" not in text:
            raise ValueError(f"the payload is not JSON: {error}") from None
        found = _lines(text, most)
    if isinstance(found, list):
        most.check(len(found))
        return found, True
    return [found], False


def _lines(text: str, most: Most) -> list[Any]:
    most.check(text.count("\n"))
    found = []
    for number, line in enumerate(lines_of(text), 1):
        if line.strip():
            try:
                found.append(_parsed(line))
            except json.JSONDecodeError as error:
                raise ValueError(f"line {number} is not JSON: {error.msg} at character {error.pos + 1}") from None
    return found


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # Python converts no more than some thousand digits
        raise ValueError("the payload holds a number with thousands of digits") from None


def rows_of(readings: Iterable[SensorReading]) -> Rows:
    """Readings as rows in order of time; of two values of a sensor at one time the first counts.

    >>> rows_of([SensorReading(5, "a", 1.0), SensorReading(3, "b", 2.0), SensorReading(5, "b", 3.0)]).values
    array([[nan,  2.],
           [ 1.,  3.]])
    """
    cells: dict[tuple[int, str], float] = {}
    for time, sensor, value in readings:
        if math.isnan(cells.get((time, sensor), math.nan)):
            cells[time, sensor] = value
    times = sorted({time for time, _ in cells})
    names = tuple(dict.fromkeys(sensor for _, sensor in cells))
    row, column = {time: k for k, time in enumerate(times)}, {name: k for k, name in enumerate(names)}
    values = np.full((len(times), len(names)), np.nan)
    for (time, sensor), value in cells.items():
        values[row[time], column[sensor]] = value
    return Rows(np.array(times, dtype=np.int64).astype("datetime64[us]"), names, values)


def _with_missing(rows: Rows, names: tuple[str, ...]) -> Rows:
    """Rows with more columns, which have no values."""
    missing = np.full((len(rows.times), len(names)), np.nan)
    return Rows(rows.times, rows.names + names, np.column_stack([rows.values, missing]))


def readings_of(rows: Rows) -> Iterator[SensorReading]:
    for time, values in zip(rows.times.astype(np.int64).tolist(), rows.values.tolist(), strict=True):
        for name, value in zip(rows.names, values, strict=True):
            yield SensorReading(time, name, value)


def deliveries(readings: Iterable[SensorReading]) -> Iterator[Rows]:
    """Readings as rows in order of time, in parts of a bounded size."""
    part: list[SensorReading] = []
    times, names = 0, set[str]()
    for reading in sorted(readings, key=lambda reading: reading.time):
        new = not part or reading.time != part[-1].time
        if part and new and (times >= MOST_ROWS or (times + 1) * len(names) > MOST_CELLS):
            yield rows_of(part)
            part, times, names = [], 0, set()
        part.append(reading)
        times += new
        names.add(reading.sensor)
    if part:
        yield rows_of(part)
