"""Readings on their way into a plant: rows, what became of them, and how their values, times and qualities are read.

Whichever way they come, the same rules hold. What is not good is missing. The values of some uncertain OPC codes are no
readings of their moment: the last usable value, a substitute, an initial value. These are missing whatever the settings
say.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from time import time_ns
from typing import Any, Literal, NamedTuple, get_args

from eccaht.base.clock import Clock, tz_of
from eccaht.plants.data.reading import EPOCHS, SINCE_1970
from eccaht.plants.model.model_file import check_text

Unit = Literal["auto", "s", "ms", "us", "ns"]
Codes = Literal["opc-ua", "opc-classic"]
Severity = Literal["good", "uncertain", "bad"]
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_NUMBER = re.compile(r"[+-]?\d{1,20}(\.\d{0,20})?", re.ASCII)
_LEAP = re.compile(r"(T?\d\d:\d\d):60", re.ASCII)
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_FIRST, _LAST = -2_208_988_800_000_000, 7_258_118_400_000_000  # 1900 and 2200
_LONGEST_TEXT, _MOST_ROWS = 64, 10**18
_NOT_OF_NOW = frozenset({0x408F, 0x4090, 0x4091, 0x4092})  # upper half: last usable (2), substitute, initial value
_LAST_USABLE = 0x44  # OPC Classic: uncertain, last usable value
_SEVERITIES: tuple[Severity, ...] = get_args(Severity)


class Receipt(NamedTuple):
    """What became of rows: how many came; of these, how many too late for their window, how many were there before.

    windows: how many they completed. unknown: columns that the model does not have. ahead: rows from the future, left
    out. held: rows that wait now because they are ahead of all others, until others agree with them.
    """

    rows: int
    late: int
    duplicate: int
    windows: int
    unknown: tuple[str, ...] = ()
    ahead: int = 0
    held: int = 0


class Busy(Exception):
    """Not at the moment; after: seconds after which to try again; broken: it is the store that fails."""

    def __init__(self, message: str, after: float = 1.0, *, broken: bool = False) -> None:
        super().__init__(message)
        self.after, self.broken = after, broken


class UnknownPlant(KeyError):
    """There is no plant of this name."""

    def __str__(self) -> str:
        return f"there is no plant {self.args[0]!r}"


@dataclass(frozen=True)
class SourceState:
    """What a source says of itself; rows: delivered so far, last: when the last of them came."""

    state: Literal["connecting", "running", "waiting", "broken"]
    since: datetime
    detail: str = ""
    rows: int = field(default=0)
    last: datetime | None = None


@lru_cache(maxsize=4096)
def checked_name(name: str) -> str:
    """The name of a sensor, which must be one that a model can have."""
    if not name:
        raise ValueError("the name of a sensor is empty")
    check_text(name, "the name of a sensor")
    return name


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
            return checked_time(_row(self.clock, value))
        if isinstance(value, str):
            text = value.strip()
            if len(text) > _LONGEST_TEXT:
                raise ValueError("the time is too long to be one")
            if _NUMBER.fullmatch(text):
                return self.read(float(text) if "." in text else int(text))
            try:
                value = _moment(text)
            except ValueError:
                raise ValueError(f"{text[:40]!r} is not a time: write it as 2017-10-09T18:00:00Z") from None
        if isinstance(value, datetime):
            return checked_time(self._of_datetime(value))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"a time must be a text or a number, not {type(value).__name__}")
        if self.unit == "auto" and self.clock.zone is None and abs(value) < SINCE_1970:
            return checked_time(round(value * 1e6))
        return self.placed(self._microseconds(value))

    def present(self) -> int:
        """The present, for readings that come without a time."""
        if self.clock.row_interval is not None:
            raise ValueError("the rows of this model are counted: give the number of each row as its time")
        return self.placed(self.now() // 1000)

    def placed(self, microseconds: int) -> int:
        """A moment in UTC, in microseconds since 1970, on the clock."""
        return checked_time(self._placed(_EPOCH + timedelta(microseconds=checked_time(microseconds))))

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
                raise ValueError(
                    "the model's times have no zone, so a time with an offset needs one: give timezone, in the "
                    "settings of the source or in the address of HTTP (?timezone=Europe/Berlin), or send times "
                    "without an offset"
                )
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


def _moment(text: str) -> datetime:
    """A time as ISO 8601 writes it; a leap second is the first one of the next minute, as in CSV.

    >>> _moment("2016-12-31T23:59:60Z").isoformat()
    '2017-01-01T00:00:00+00:00'
    """
    plain = _LEAP.sub(r"\1:59", text, count=1)
    return datetime.fromisoformat(plain) + timedelta(seconds=plain != text)


def _row(clock: Clock, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("a time must be the number of a row: the model's history has no times")
    if len(value) > _LONGEST_TEXT if isinstance(value, str) else abs(value) >= _MOST_ROWS:
        raise ValueError("the number of a row is too large")
    return int(clock.parse(str(value), "time").astype("int64"))


def checked_time(moment: int) -> int:
    """A time in microseconds since 1970, if that is one of readings."""
    if not _FIRST <= moment <= _LAST:
        raise ValueError("the time lies outside the years 1900 to 2200")
    return moment


def severity_of_status(code: int) -> Severity:
    """The severity of an OPC UA status code, by its two highest bits; the reserved fourth counts as bad.

    >>> severity_of_status(0), severity_of_status(0x40940000), severity_of_status(0x80050000)
    ('good', 'uncertain', 'bad')
    >>> severity_of_status(0x40900000)  # UncertainLastUsableValue
    'bad'
    """
    if not 0 <= code < 1 << 32:
        raise ValueError(f"{_short(code)} is no OPC UA status code")
    if code >> 16 in _NOT_OF_NOW:
        return "bad"
    return ("good", "uncertain", "bad", "bad")[code >> 30]


def severity_of_classic(code: int) -> Severity:
    """The severity of an OPC Classic quality, by bits 7 and 6 of its low byte.

    >>> severity_of_classic(192), severity_of_classic(80), severity_of_classic(68), severity_of_classic(0)
    ('good', 'uncertain', 'bad', 'bad')
    """
    if not 0 <= code < 1 << 16:
        raise ValueError(f"{_short(code)} is no OPC Classic quality")
    if code & 0xFC == _LAST_USABLE:
        return "bad"
    return ("bad", "uncertain", "bad", "good")[code >> 6 & 3]


def severity(quality: Any, codes: Codes | None) -> Severity:
    """The severity of a quality as payloads have it: true, a word such as GoodClamped, or a number of a known kind.

    0 is good in OPC UA and bad in OPC Classic, so numbers need the setting that says which.

    >>> severity(True, None), severity("Bad_NoCommunication", None), severity(192, "opc-classic")
    ('good', 'bad', 'good')
    """
    if isinstance(quality, bool):
        return "good" if quality else "bad"
    if isinstance(quality, int):
        if codes is None:
            raise ValueError("the quality is a number: set quality_codes to opc-ua or opc-classic")
        return severity_of_status(quality) if codes == "opc-ua" else severity_of_classic(quality)
    if isinstance(quality, str):
        word = quality.strip().lower().replace("_", "")
        if word.startswith(("uncertainlastusable", "uncertainnocomm", "uncertainsubstitute", "uncertaininitial")):
            return "bad"
        for meaning in _SEVERITIES:
            if word.startswith(meaning):
                return meaning
    raise ValueError(f"the quality {_short(quality)} is neither good, uncertain, bad, true, false nor a code")


def _short(value: Any) -> str:
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge number"
    return repr(value)[:40]
