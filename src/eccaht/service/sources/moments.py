"""Times of readings as sources write them, on the clock of a plant's model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import Any, Literal

from eccaht.base.clock import Clock, tz_of
from eccaht.plants.data.times import EPOCHS, SINCE_1970

Unit = Literal["auto", "s", "ms", "us", "ns"]
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_NUMBER = re.compile(r"[+-]?\d{1,20}(\.\d{0,20})?", re.ASCII)
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_FIRST, _LAST = -2_208_988_800_000_000, 7_258_118_400_000_000  # 1900 and 2200
_LONGEST_TEXT, _MOST_ROWS = 64, 10**18


@dataclass(frozen=True)
class TimeReader:
    """Reads times: ISO 8601 texts, and numbers since 1970 in seconds, milli-, micro- or nanoseconds.

    clock: of the plant's model; where it counts rows, a time is the number of a row. unit: of numbers; auto goes by
    their size, as for files: from 1e17 on nanoseconds, from 1e14 microseconds, from 1e11 milliseconds, else seconds, of
    which there must be 1e8 (1973). Smaller numbers are seconds as they stand where the model's times have no zone, as
    in a file that counts from its beginning. zone: where the plant is, for texts without an offset, and for numbers
    since 1970 if the model's times have no zone. now: nanoseconds since 1970.
    """

    clock: Clock
    unit: Unit = "auto"
    zone: str | None = None
    now: Callable[[], int] = time_ns

    def read(self, value: Any) -> int:
        """Microseconds on the clock; a ValueError of one line if that is no time.

        >>> moments = TimeReader(Clock("UTC"))
        >>> moments.read("1970-01-02T00:00Z") == moments.read("1970-01-02 00:00:00") == 86_400_000_000
        True
        >>> moments.read(1_700_000_000) == moments.read(1_700_000_000_000) == moments.read("1700000000.0")
        True
        """
        if self.clock.row_interval is not None:
            return checked(_row(self.clock, value))
        if isinstance(value, str):
            text = value.strip()
            if len(text) > _LONGEST_TEXT:
                raise ValueError("the time is too long to be one")
            if _NUMBER.fullmatch(text):
                return self.read(float(text) if "." in text else int(text))
            return checked(self._of_datetime(self._parsed(text)))
        if isinstance(value, datetime):
            return checked(self._of_datetime(value))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"a time must be a text or a number, not {type(value).__name__}")
        if self.unit == "auto" and self.clock.zone is None and abs(value) < SINCE_1970:
            return checked(round(value * 1e6))
        return self.placed(self._microseconds(value))

    def present(self) -> int:
        """The present, for readings that come without a time."""
        if self.clock.row_interval is not None:
            raise ValueError("the rows of this model are counted: give the number of each row as its time")
        return self.placed(self.now() // 1000)

    def placed(self, microseconds: int) -> int:
        """A moment in UTC, in microseconds since 1970, on the clock."""
        return checked(self._placed(_moment(checked(microseconds))))

    def _parsed(self, text: str) -> datetime:
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{text[:40]!r} is not a time: write it as 2017-10-09T18:00:00Z") from None

    def _of_datetime(self, moment: datetime) -> int:
        if moment.tzinfo is not None:
            return self._placed(moment)
        zone = self.zone or self.clock.zone
        if self.clock.zone is None or zone is None:
            return (moment.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
        return self._placed(moment.replace(tzinfo=tz_of(zone)))

    def _placed(self, moment: datetime) -> int:
        """A moment on the clock: in UTC, or as the clocks of the plant show it if the model knows no zone."""
        if self.clock.zone is None:
            if self.zone is None:
                raise ValueError("the model's times have no zone: set the timezone of the source")
            moment = moment.astimezone(tz_of(self.zone)).replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MICROSECOND

    def _microseconds(self, value: float) -> int:
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("the time is not finite")
        size = abs(value)
        if self.unit == "auto":
            if size < SINCE_1970:
                raise ValueError(f"{value!r} is too small for a time since 1970: set time_unit, or write ISO 8601")
            per_second = next(round(1e6 / unit) for least, unit in EPOCHS if size >= least)
        else:
            per_second = _PER_SECOND[self.unit]
        if size > _LAST // 1_000_000 * per_second:
            raise ValueError("the time lies after the year 2200 or before 1770")
        if isinstance(value, int):
            return value * 1_000_000 // per_second
        return round(value * (1_000_000 / per_second))


def _row(clock: Clock, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("a time must be the number of a row: the model's history has no times")
    if len(value) > _LONGEST_TEXT if isinstance(value, str) else abs(value) >= _MOST_ROWS:
        raise ValueError("the number of a row is too large")
    return int(clock.parse(str(value), "time").astype("int64"))


def checked(moment: int) -> int:
    """A time in microseconds since 1970, if that is one of readings."""
    if not _FIRST <= moment <= _LAST:
        raise ValueError("the time lies outside the years 1900 to 2200")
    return moment


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
