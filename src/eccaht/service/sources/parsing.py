"""The one door of rows: what comes by HTTP or from a broker becomes readings by the same rules.

JSON is a number, an object of one reading, an object of many sensors, a list of objects, or objects in lines; CSV is a
piece of a file with its column names, read as the history of the model was. Sizes are bounded before anything is
parsed; whatever an untrusted sender sends, the worst is a `BadPayload` of one short line.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from eccaht.plants.data.source import Expected
from eccaht.service.rows import Rows
from eccaht.service.sources.json_text import documents_of
from eccaht.service.sources.moments import TimeReader
from eccaht.service.sources.quality import Codes, Severity, severity
from eccaht.service.sources.settings import Format, ReadingSettings
from eccaht.service.sources.tables import Csv, Most
from eccaht.service.sources.values import checked_name, level_of, number_of

if TYPE_CHECKING:
    from eccaht.service.sources.feed import Target

_SMALL = 4096  # bytes that are read at once
LARGEST_PAYLOAD = 1 << 18  # bytes
MOST_READINGS = 10_000  # of one payload
MESSAGE = Most(LARGEST_PAYLOAD, MOST_READINGS, MOST_READINGS)  # of a broker
MOST_ROWS, MOST_CELLS = 1000, 1_000_000  # of one delivery
_SENSOR, _VALUES = "sensor", "values"
_TIMES = frozenset({"time", "timestamp", "datetime", "date", "ts"})  # what others call the time
_LONGEST_REASON = 200  # characters


class BadPayload(ValueError):
    """A payload that holds no readings, with the reason in one line."""


class SensorReading(NamedTuple):
    """One value of one sensor; time in microseconds on the clock of the plant, NaN where there is no good value."""

    time: int
    sensor: str
    value: float


@dataclass(frozen=True)
class Payloads:
    """How payloads are read.

    moments: how times are. time_key, value_key, quality_key: of JSON objects. codes: what numbers in the place of a
    quality are. uncertain: what uncertain readings count as. levels: the texts of status sensors, whose values are
    places in them. names: sensors of the model by their names in payloads. expected: by the model, for CSV. most: how
    much one payload may hold.
    """

    moments: TimeReader
    time_key: str = "time"
    value_key: str = "value"
    quality_key: str = "quality"
    codes: Codes | None = None
    uncertain: Literal["good", "bad"] = "good"
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    expected: Expected | None = None
    format: Format = "json"
    most: Most = MESSAGE

    @classmethod
    def of(
        cls,
        settings: ReadingSettings,
        target: Target,
        *,
        format: Format = "json",
        names: Mapping[str, str] | None = None,
        most: Most = MESSAGE,
    ) -> Payloads:
        return cls(
            TimeReader(target.clock, settings.time_unit, settings.timezone),
            *(settings.time_key, settings.value_key, settings.quality_key),
            *(settings.quality_codes, settings.uncertain, target.expected.levels),
            names or {},
            target.expected,
            format,
            most,
        )

    def read(self, payload: bytes, sensor: str | None = None, arrived: int | None = None) -> list[SensorReading]:
        """The readings of a payload.

        sensor: whose it is, if that is known (from a topic); otherwise the payload names its sensors. arrived: the time
        of readings without one, in microseconds on the clock; the present if absent.
        """
        with _explained():
            if self.format == "csv":
                return list(readings_of(self._table(payload, sensor)))
            found = list[SensorReading]()
            for reading in self._json(self._checked(payload), sensor, arrived):
                found.append(reading)
                if len(found) > self.most.cells:
                    raise BadPayload(f"the payload holds more than {self.most.cells} readings")
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
                return merged(self._table(payload, None))
            readings = self.read(payload)
            self.most.check(len({reading.time for reading in readings}), len({reading.sensor for reading in readings}))
            return rows_of(readings)

    def good(self, found: Severity) -> bool:
        """Whether a value of this severity counts."""
        return found == "good" or (found == "uncertain" and self.uncertain == "good")

    def number(self, value: Any, sensor: str) -> float:
        """A value as a float: NaN where there is none; a status is its place among the levels of its sensor."""
        return level_of(value, self.levels[sensor]) if sensor in self.levels else number_of(value)

    def _checked(self, payload: bytes) -> bytes:
        if len(payload) > self.most.bytes:
            raise BadPayload(f"the payload has {len(payload)} bytes, more than {self.most.bytes}")
        return payload

    def _table(self, payload: bytes, sensor: str | None) -> Rows:
        if sensor is not None or self.expected is None:
            raise BadPayload("CSV names its sensors: it cannot be that of one")
        return Csv(self.expected, self.moments, self.time_key, self.names).rows(self._checked(payload), self.most)

    # -- JSON -----------------------------------------------------------------------------------------

    def _json(self, payload: bytes, sensor: str | None, arrived: int | None) -> Iterator[SensorReading]:
        present = cache(lambda: self.moments.present() if arrived is None else arrived)
        named = None if sensor is None else self._name(sensor)
        documents, several = documents_of(payload.decode("utf-8-sig"), self.most)
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
        time = document.get(self.time_key)
        moment = present() if time is None else self.moments.read(time)
        if sensor is None and _SENSOR in document and self.value_key in document:
            sensor = self._name(document[_SENSOR])
        if sensor is not None:
            found: Iterable[SensorReading] = [SensorReading(moment, sensor, self._value(document, sensor))]
        else:
            found = self._of_row(document, moment)
        for reading in found:
            if time is None and reading.time == moment:
                if reading.sensor in timeless:
                    raise BadPayload(f"{reading.sensor!r:.40} comes twice without a time: give it as {self.time_key!r}")
                timeless.add(reading.sensor)
            yield reading

    def _of_row(self, document: dict[str, Any], moment: int) -> Iterator[SensorReading]:
        """The readings of an object that has a value for each sensor, nested or beside the time."""
        nested = document.get(_VALUES, document)
        if not isinstance(nested, dict):
            raise BadPayload(f"its {_VALUES!r} must be an object")
        own_keys = (self.time_key, self.quality_key)
        flat = {name: value for name, value in document.items() if name not in own_keys}
        if self.time_key not in document and (others := [name for name in flat if name.casefold() in _TIMES]):
            raise BadPayload(f"it has no {self.time_key!r}, but {others[0]!r}: give that as time_key")
        whole = self.good(self._severity(document))
        for key, value in (flat if nested is document else nested).items():
            name, own = self._name(key), moment
            if isinstance(value, dict):
                if value.get(self.time_key) is not None:
                    own = self.moments.read(value[self.time_key])
                number = self._value(value, name)
            else:
                number = self.number(value, name)
            yield SensorReading(own, name, number if whole else math.nan)

    def _name(self, name: Any) -> str:
        if not isinstance(name, str):
            raise BadPayload("the name of a sensor must be a text")
        return checked_name(self.names.get(name, name))

    def _value(self, document: dict[str, Any], sensor: str) -> float:
        if self.value_key not in document:
            raise BadPayload(f"the object of {sensor!r:.40} has no {self.value_key!r}")
        value = self.number(document[self.value_key], sensor)
        return value if self.good(self._severity(document)) else math.nan

    def _severity(self, document: dict[str, Any]) -> Severity:
        quality = document.get(self.quality_key)
        return "good" if quality is None else severity(quality, self.codes)


@contextmanager
def _explained() -> Iterator[None]:
    """All that can be wrong with a payload is a `BadPayload` of one short line."""
    try:
        yield
    except RecursionError:
        raise BadPayload("the payload is nested too deeply") from None
    except (ValueError, OverflowError) as error:
        raise BadPayload(" ".join(str(error).split())[:_LONGEST_REASON]) from None


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


def readings_of(rows: Rows) -> Iterator[SensorReading]:
    for time, values in zip(rows.times.astype(np.int64).tolist(), rows.values.tolist(), strict=True):
        for name, value in zip(rows.names, values, strict=True):
            yield SensorReading(time, name, value)


def merged(rows: Rows) -> Rows:
    """Rows in order of time, those of one time as one."""
    later = np.diff(rows.times) > np.timedelta64(0)
    return rows if later.all() else rows_of(readings_of(rows))


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
