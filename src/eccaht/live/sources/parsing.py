"""Payloads of messages become readings; whatever a stranger sends, the worst is a `BadPayload`.

A payload is a plain number, or JSON: a number, an object of one reading, an object of many sensors, or a list of
objects. Sizes are bounded before anything is parsed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from eccaht.data.clock import Clock
from eccaht.live.rows import Rows
from eccaht.live.sources.moments import Moments
from eccaht.live.sources.quality import Codes, Severity, severity
from eccaht.live.sources.settings import PayloadSettings

LARGEST_PAYLOAD = 1 << 18  # bytes
MOST_READINGS = 10_000  # of one payload
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?")
MOST_ROWS, MOST_CELLS = 1000, 1_000_000  # of one delivery
_LONGEST_NAME, _LONGEST_NUMBER = 256, 400
_SENSOR, _VALUES = "sensor", "values"


class BadPayload(ValueError):
    """A payload that holds no readings, with the reason in one line."""


class Reading(NamedTuple):
    """One value of one sensor; time in microseconds on the clock of the plant, NaN where there is no good value."""

    time: int
    sensor: str
    value: float


@dataclass(frozen=True)
class Payloads:
    """How payloads are read.

    moments: how times are. time_key, value_key, quality_key: of JSON objects. codes: what numbers in the place of a
    quality are. uncertain: what uncertain readings count as. levels: the texts of status sensors, whose values are
    places in them.
    """

    moments: Moments
    time_key: str = "time"
    value_key: str = "value"
    quality_key: str = "quality"
    codes: Codes | None = None
    uncertain: Literal["good", "bad"] = "good"
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: PayloadSettings, clock: Clock, levels: Mapping[str, Sequence[str]]) -> Payloads:
        """As settings say, for a model with this clock and these levels."""
        moments = Moments(clock, settings.time_unit, settings.timezone)
        keys = (settings.time_key, settings.value_key, settings.quality_key)
        return cls(moments, *keys, settings.quality_codes, settings.uncertain, levels)

    def read(self, payload: bytes, sensor: str | None = None, arrived: int | None = None) -> list[Reading]:
        """The readings of a payload.

        sensor: whose it is, if that is known (from a topic); otherwise the payload names its sensors. arrived: the time
        of readings without one, in microseconds on the clock; the present if absent.
        """
        if len(payload) > LARGEST_PAYLOAD:
            raise BadPayload(f"it has {len(payload)} bytes, more than {LARGEST_PAYLOAD}")
        try:
            found = []
            for reading in self._readings(_parsed(payload), sensor, arrived):
                found.append(reading)
                if len(found) > MOST_READINGS:
                    raise BadPayload(f"it holds more than {MOST_READINGS} readings")
        except BadPayload:
            raise
        except RecursionError:
            raise BadPayload("it is nested too deeply") from None
        except (ValueError, OverflowError) as error:
            raise BadPayload(" ".join(str(error).split())[:200]) from None
        return found

    def good(self, found: Severity) -> bool:
        """Whether a value of this severity counts."""
        return found == "good" or (found == "uncertain" and self.uncertain == "good")

    def number(self, value: Any, sensor: str) -> float:
        """A value as a float: NaN for null and what is not finite; texts of status sensors are places in levels."""
        if value is None:
            return math.nan
        if isinstance(value, str):
            if sensor in self.levels:
                return float(self.levels[sensor].index(value)) if value in self.levels[sensor] else math.nan
            return _as_number(value.strip())
        if not isinstance(value, int | float):
            raise BadPayload(f"a value must be a number, not {type(value).__name__}")
        try:
            number = float(value)
        except OverflowError:
            return math.nan
        return number if math.isfinite(number) else math.nan

    def _readings(self, parsed: Any, sensor: str | None, arrived: int | None) -> Iterator[Reading]:
        documents = parsed if isinstance(parsed, list) else [parsed]
        for document in documents:
            if isinstance(document, dict):
                yield from self._of_object(document, sensor, arrived)
            elif sensor is None:
                raise BadPayload("it must be a JSON object that names its sensors")
            elif isinstance(parsed, list):
                raise BadPayload("a list must hold objects with their times")
            else:
                yield Reading(self._time(None, arrived), sensor, self.number(document, sensor))

    def _of_object(self, document: dict[str, Any], sensor: str | None, arrived: int | None) -> Iterator[Reading]:
        time = self._time(document.get(self.time_key), arrived)
        if sensor is None and _SENSOR in document and self.value_key in document:
            sensor = _name(document[_SENSOR])
        if sensor is not None:
            if self.value_key not in document:
                raise BadPayload(f"the object has no {self.value_key!r}")
            yield Reading(time, sensor, self._value(document, sensor))
            return
        nested = document.get(_VALUES)
        own_keys = (self.time_key, self.quality_key)
        flat = {name: value for name, value in document.items() if name not in own_keys}
        whole = self.good(self._severity(document))
        for name, value in (nested if isinstance(nested, dict) else flat).items():
            if isinstance(value, dict):
                own = time if value.get(self.time_key) is None else self.moments.read(value[self.time_key])
                number = self._value(value, name)
            else:
                own, number = time, self.number(value, name)
            yield Reading(own, _name(name), number if whole else math.nan)

    def _value(self, document: dict[str, Any], sensor: str) -> float:
        value = self.number(document.get(self.value_key), sensor)
        return value if self.good(self._severity(document)) else math.nan

    def _severity(self, document: dict[str, Any]) -> Severity:
        told = document.get(self.quality_key)
        return "good" if told is None else severity(told, self.codes)

    def _time(self, told: Any, arrived: int | None) -> int:
        if told is not None:
            return self.moments.read(told)
        return self.moments.present() if arrived is None else arrived


def _parsed(payload: bytes) -> Any:
    text = payload.decode("utf-8").strip()
    if not text:
        raise BadPayload("it is empty")
    if text[0] not in '[{"':
        return None if text == "null" else _word(text)
    return json.loads(text, parse_constant=lambda _: None)


def _word(text: str) -> bool | float:
    return text == "true" if text in ("true", "false") else _as_number(text)


def _as_number(text: str) -> float:
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return math.nan
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise BadPayload(f"{text[:40]!r} is not a number")
    number = float(text)
    return number if math.isfinite(number) else math.nan


def _name(name: Any) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
        raise BadPayload(f"the name of a sensor must be a text of at most {_LONGEST_NAME} characters")
    return name


def rows_of(readings: Iterable[Reading]) -> Rows:
    """Readings as rows in order of time; of two values of a sensor at one time the first counts.

    >>> rows_of([Reading(5, "a", 1.0), Reading(3, "b", 2.0), Reading(5, "b", 3.0)]).values
    array([[nan,  2.],
           [ 1.,  3.]])
    """
    cells: dict[tuple[int, str], float] = {}
    for time, sensor, value in readings:
        cells.setdefault((time, sensor), value)
    times = sorted({time for time, _ in cells})
    names = tuple(dict.fromkeys(sensor for _, sensor in cells))
    row, column = {time: k for k, time in enumerate(times)}, {name: k for k, name in enumerate(names)}
    values = np.full((len(times), len(names)), np.nan)
    for (time, sensor), value in cells.items():
        values[row[time], column[sensor]] = value
    return Rows(np.array(times, dtype=np.int64).astype("datetime64[us]"), names, values)


def deliveries(readings: Iterable[Reading]) -> Iterator[Rows]:
    """Readings as rows in order of time, in parts of a bounded size."""
    part: list[Reading] = []
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
