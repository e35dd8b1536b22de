"""What the time of a row means: a moment in a time zone, a time as the file has it, or the number of a row.

Inside, a time is a datetime64[us]: in UTC where a zone is known, as the file has it where none is. Rows without times
are counted from 1970-01-01 on; these dates are used internally only and never shown.
"""

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from itertools import product
from typing import Any, overload
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np
from numpy.typing import NDArray

from eccaht.base.presentation.text import did_you_mean

_UNITS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)\s*")
_ROWS = re.compile(r"\s*([1-9]\d{0,8})\s*rows?\s*")
_LONGEST = 366 * 86400.0
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")
_ROW = re.compile(r"(?:row\s*)?([1-9]\d*)", re.IGNORECASE)
_LONGEST_NUMBER = 18  # digits of a row's
_SECOND, _WEEK, _EPOCH = 1_000_000, timedelta(days=7), datetime(1970, 1, 1, tzinfo=UTC)
DIFFERENT = "different offsets"  # in place of the zone of a file
_DATE = re.compile(r"%\w[^%]*%\w[^%]*%\w")  # the part of a format
_HOURS = ("", "%H", "%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
_YEARS = (1900, 2200)  # outside these years the offset at the nearer end is used


def parse_duration(text: str | float, what: str = "duration") -> float:
    """Return a length of time in seconds; a bare number is one already.

    >>> parse_duration("1min"), parse_duration("0.5s"), parse_duration("2h")
    (60.0, 0.5, 7200.0)
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        seconds = float(text) if abs(text) <= _LONGEST else math.inf  # a whole number may be too large for a float
    else:
        match = _DURATION.fullmatch(text.lower()) if isinstance(text, str) else None
        if match is None or match[2] not in _UNITS:
            raise ValueError(f"{what} {text!r} is not a length of time: write it as 30s, 1min, 2h or 0.5s")
        seconds = float(match[1]) * _UNITS[match[2]]
    if not (math.isfinite(seconds) and 1e-6 <= seconds <= _LONGEST):
        raise ValueError(f"{what} {text!r} must be between a microsecond and a year")
    return round(seconds * 1e6) / 1e6


def parse_window(text: str | float) -> tuple[float, bool]:
    """The length of a window in seconds, or in rows if it is given so, and which of both.

    >>> parse_window("1min"), parse_window("60rows")
    ((60.0, False), (60.0, True))
    """
    match = _ROWS.fullmatch(text.lower()) if isinstance(text, str) else None
    return (parse_duration(text, "window"), False) if match is None else (float(match[1]), True)


def show_duration(seconds: float) -> str:
    """Write seconds the way they are read.

    >>> show_duration(60.0), show_duration(0.5), show_duration(5400.0)
    ('1min', '0.5s', '90min')
    """
    for unit in ("d", "h", "min"):
        if seconds >= _UNITS[unit] and seconds % _UNITS[unit] == 0:
            return f"{seconds / _UNITS[unit]:g}{unit}"
    return f"{seconds:.10g}s"


def show_time(time: np.datetime64) -> str:
    """Write a time to the second where that is exact.

    >>> show_time(np.datetime64("2017-10-09T18:00:00.000000"))
    '2017-10-09 18:00:00'
    """
    text = str(time.astype("datetime64[us]")).replace("T", " ")
    return text.removesuffix(".000000")


Microseconds = NDArray[np.int64]
Array = NDArray[Any]
Times = NDArray[np.datetime64]


def as_zone(text: str) -> str:
    """The usual name of a zone: UTC, an offset, or its name in the IANA database.

    >>> as_zone("utc"), as_zone("+0530"), as_zone("Europe/Berlin")
    ('UTC', '+05:30', 'Europe/Berlin')
    """
    if text.upper() in ("UTC", "Z"):
        return "UTC"
    if match := _OFFSET.fullmatch(text):
        sign, hours, minutes = match.groups()
        if int(hours) < 16 and int(minutes) < 60:
            return "UTC" if hours == minutes == "00" else f"{sign}{hours}:{minutes}"
    try:
        return ZoneInfo(text).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        written = ": write it as Europe/Berlin, UTC or +02:00"
        hint = did_you_mean(text, sorted(available_timezones()), otherwise=written, cutoff=0.6)
        raise ValueError(f"unknown time zone {text!r}{hint}") from None


@cache
def tz_of(zone: str) -> tzinfo:
    if zone == "UTC":
        return UTC
    if match := _OFFSET.fullmatch(zone):
        sign, hours, minutes = match.groups()
        length = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-length if sign == "-" else length)
    return ZoneInfo(zone)


@dataclass(frozen=True)
class Clock:
    """How times are read and shown.

    zone: as `as_zone` gives it; None where times are taken as they stand.
    row_interval: seconds between rows that have no times; counted: that is not known either, a "second" is a row.
    formats: how the data write their times, which says whether the day or the month of a date comes first.
    """

    zone: str | None = None
    row_interval: float | None = None
    counted: bool = False
    formats: tuple[str, ...] = field(default=(), compare=False)

    def parse(self, value: Any, what: str = "time") -> np.datetime64:
        """A time as people write it: in this zone unless it says another; the number of a row where there are no times.

        >>> Clock("+02:00").parse("2024-05-01 08:00"), Clock(row_interval=1.0).parse("11")
        (np.datetime64('2024-05-01T06:00:00.000000'), np.datetime64('1970-01-01T00:00:10.000000'))
        >>> Clock(formats=("%d.%m.%Y %H:%M",)).parse("01.05.2024")
        np.datetime64('2024-05-01T00:00:00.000000')
        """
        if isinstance(value, np.datetime64) and not np.isnat(value):  # already in the internal form
            return value.astype("datetime64[us]")
        if self.row_interval is not None:
            match = _ROW.fullmatch(str(value).strip())
            if match is None:
                raise ValueError(f"{what} {value!r:.60} is not the number of a row, and the data have no times")
            number = match[1][: _LONGEST_NUMBER + 1]
            if (start := (int(number) - 1) * self.row_interval * _SECOND) >= 2.0**62:
                raise ValueError(f"{what}: there is no row {number}, that is too far")
            return np.datetime64(round(start), "us")
        moment = value if isinstance(value, datetime) else _moment(value, self.formats)
        if moment is None:
            like = " or as the data do" if self.formats else ""
            raise ValueError(f"{what} {value!r:.60} is not a time: write it as 2017-10-09T18:00{like}")
        if moment.tzinfo is None and self.zone is not None:
            moment = moment.replace(tzinfo=tz_of(self.zone))
        if moment.tzinfo is not None and self.zone is None:
            raise ValueError(
                f"{what} {value!r:.60} has a time zone, but the times of the data have none: say which with --timezone"
            )
        try:
            return np.datetime64(moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None), "us")
        except OverflowError:  # in the first or the last hours of the calendar
            raise ValueError(f"{what} {value!r:.60} lies outside the years 1 to 9999") from None

    def show(self, time: np.datetime64) -> str:
        """Local time without its offset, except in an hour that occurs twice.

        >>> Clock("Europe/Berlin").show(np.datetime64("2024-05-01T06:00"))
        '2024-05-01 08:00:00'
        >>> Clock(row_interval=2.0).show(np.datetime64(8, "s"))
        'row 5'
        """
        if self.row_interval is not None:
            return f"row {self.seen(time)}"
        if self.zone is None:
            return show_time(time)
        there = self._there(time)
        twice = there.replace(fold=0).utcoffset() != there.replace(fold=1).utcoffset()
        return there.isoformat(" ") if twice else there.replace(tzinfo=None).isoformat(" ")

    def briefly(self, time: np.datetime64, beside: np.datetime64 | None = None) -> str:
        """A time without seconds if there are none, and without its date beside another time of the same day.

        >>> morning = np.datetime64("2024-03-07T08:00")
        >>> Clock().briefly(morning), Clock().briefly(morning + 1, morning)
        ('2024-03-07 08:00', '08:01')
        """
        shown = self.show(time.astype("datetime64[us]"))
        shown = shown.removesuffix(":00") if shown.count(":") == 2 else shown
        if beside is not None and self.row_interval is None:
            day, _, hour = shown.partition(" ")
            return hour if self.show(beside.astype("datetime64[us]")).startswith(f"{day} ") else shown
        return shown

    def exact(self, time: np.datetime64) -> str:
        """The same with its offset, for programs.

        >>> Clock("Europe/Berlin").exact(np.datetime64("2024-05-01T06:00"))
        '2024-05-01 08:00:00+02:00'
        """
        return self.show(time) if self.zone is None else self._there(time).isoformat(" ")

    @overload
    def seen(self, time: np.datetime64) -> np.datetime64 | int: ...

    @overload
    def seen(self, time: np.datetime64 | None) -> np.datetime64 | int | None: ...

    def seen(self, time: np.datetime64 | None) -> np.datetime64 | int | None:
        """A time as users of Python see it: the number of a row, from 1, where there are no times.

        >>> Clock(row_interval=2.0).seen(np.datetime64(8, "s"))
        5
        """
        if time is None or self.row_interval is None or np.isnat(time):
            return time
        return round(microseconds(time) / (self.row_interval * _SECOND)) + 1

    def length(self, seconds: float) -> str:
        """A length of time, in rows if nothing else is known.

        >>> Clock().length(60.0), Clock(row_interval=1.0, counted=True).length(60.0)
        ('1min', '60 rows')
        """
        return f"{seconds:g} row{'' if seconds == 1.0 else 's'}" if self.counted else show_duration(seconds)

    @property
    def said(self) -> str:
        """The note about the time zone that is shown once beside times; empty if there is no zone."""
        return "" if self.zone is None else f" (times in {self.zone})"

    def axis(self, times: Times) -> tuple[Array, tzinfo | None]:
        """Places on an axis and the zone of its dates; the numbers of rows, which are no dates, have none.

        >>> Clock(row_interval=2.0).axis(np.array([0, 8], dtype="datetime64[s]"))
        (array([1., 5.]), None)
        """
        if self.row_interval is None:
            return times, UTC if self.zone is None else tz_of(self.zone)
        return times.astype("datetime64[us]").astype(np.int64) / (self.row_interval * _SECOND) + 1.0, None

    def floor(self, times: Microseconds, step: int) -> Microseconds:
        """The start of the window of each time: whole windows of the local clock, cut where the clock is changed."""
        if self.zone is None or self.zone == "UTC" or not len(times):
            return times // step * step
        changes, offsets = _changes(self.zone, times)
        place = np.searchsorted(changes, times, side="right")
        own = offsets[place]
        starts = (times + own) // step * step - own
        since = np.concatenate([[np.iinfo(np.int64).min], changes])[place]
        return np.maximum(starts, since)

    def to_utc(self, local: Microseconds, before: int | None = None) -> tuple[Microseconds, list[str]]:
        """Local times in the order of their rows as UTC, and what a user should know of it.

        In an hour that occurs twice, rows after a step back by about an hour are the second pass. before: the time in
        UTC of the row before the first, if there was one.
        """
        if self.zone is None or not len(local):
            return local, []
        changes, offsets = _changes(self.zone, local)
        place = np.searchsorted(changes + np.maximum(offsets[:-1], offsets[1:]), local, side="right")
        moments = local - offsets[place]
        notes: list[str] = []
        for change, old, new in zip(changes.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            inside = np.flatnonzero((local >= change + min(old, new)) & (local < change + max(old, new)))
            if not inside.size:
                continue
            hour = f"between {_plain(change + min(old, new))} and {_plain(change + max(old, new))} in {self.zone}"
            if new > old:
                later = show_duration((new - old) / _SECOND)
                notes.append(f"{inside.size} rows have times {hour}, which do not exist: read as {later} later")
            elif (second := self._second_pass(local, inside, change, (old, new), before)) is None:
                notes.append(f"{inside.size} rows have times {hour}, which occur twice: read as the first of both")
            else:
                moments[second] = local[second] - new
        return moments, notes

    def _second_pass(
        self, local: Microseconds, inside: NDArray[np.intp], change: int, offsets: tuple[int, int], before: int | None
    ) -> NDArray[np.intp] | None:
        """Which of these rows are the second pass of an hour; None where their order does not show it."""
        if before is not None and before >= change:
            return inside
        old, new = offsets
        steps = np.abs(np.diff(local))
        usual = min(int(np.median(steps[steps > 0])) if (steps > 0).any() else 0, old - new)
        if local[0] > local[-1]:  # the newest row first
            inside = inside[::-1]
        earlier = [] if before is None else [before + old]
        drops = np.flatnonzero(np.diff(np.concatenate([earlier, local[inside]])) <= (usual + new - old) / 2)
        if len(drops) == 1:
            return inside[drops[0] + 1 - len(earlier) :]
        begun = before is not None or local[inside[0]] > local.min()
        ended = local[inside].max() == local.max()
        return inside[:0] if begun and ended and not len(drops) else None  # the second pass is still to come

    def _there(self, time: np.datetime64) -> datetime:
        assert self.zone is not None
        return (_EPOCH + timedelta(microseconds=microseconds(time))).astimezone(tz_of(self.zone))


PLAIN = Clock()


def _moment(text: Any, formats: tuple[str, ...]) -> datetime | None:
    """A time in ISO 8601, or a date and perhaps a time of day with the date as in these formats; None if it is none."""
    if not isinstance(text, str):
        return None
    with suppress(ValueError):
        return datetime.fromisoformat(text.strip())
    dates = [found[0] for form in formats[:1] if (found := _DATE.match(form))]
    for date, hours, zone in product(dates, _HOURS, ("", "%z")):
        with suppress(ValueError):
            return datetime.strptime(text.strip().replace("T", " "), f"{date} {hours}{zone}".strip())
    return None


def check_limits(start: Any, stop: Any) -> None:
    """Refuse limits that can be no times or row numbers, before any file is read: it says how dates are written."""
    for limit, what in ((start, "start"), (stop, "stop")):
        if limit is not None and not str(limit).strip().lower().removeprefix("row").strip()[:1].isdigit():
            Clock("UTC").parse(limit, what)


def between(clock: Clock, start: Any, stop: Any) -> tuple[np.datetime64 | None, np.datetime64 | None]:
    """The times between which rows are read; None is no limit."""
    first = None if start is None else clock.parse(start, "start")
    last = None if stop is None else clock.parse(stop, "stop")
    if first is not None and last is not None and last <= first:
        raise ValueError(f"stop {clock.show(last)} must be later than start {clock.show(first)}")
    return first, last


def common_zone(zones: Sequence[str | None]) -> tuple[str | None, list[str]]:
    """The zone in which to show times of files with these zones (None: as written), and a note if they differ."""
    if all(zone is None for zone in zones):
        return None, []
    if any(zone is None for zone in zones):
        raise ValueError("some files have times with an offset, others without: say where the latter are by --timezone")
    if len(set(zones)) == 1 and zones[0] != DIFFERENT:
        return zones[0], []
    return "UTC", ["the times have different offsets and are shown in UTC: give --timezone for local times"]


def _changes(zone: str, times: Microseconds) -> tuple[Microseconds, Microseconds]:
    """When the offset of a zone changes around these times, in UTC, and the offsets before, between and after."""
    years = (
        np.array([times.min(), times.max()]).astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970
    )
    first, last = np.clip(years, *_YEARS).tolist()
    return _changes_between(zone, first - 1, last + 1)


@cache
def _changes_between(zone: str, first: int, last: int) -> tuple[Microseconds, Microseconds]:
    place, changes, offsets = tz_of(zone), [], []
    moment, end = datetime(first, 1, 1, tzinfo=UTC), datetime(last + 1, 1, 1, tzinfo=UTC)
    offsets.append(moment.astimezone(place).utcoffset())
    while moment < end:
        later = moment + _WEEK
        if (offset := later.astimezone(place).utcoffset()) != offsets[-1]:
            low, high = moment, later
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
                low, high = (middle, high) if middle.astimezone(place).utcoffset() == offsets[-1] else (low, middle)
            changes.append(high)
            offsets.append(offset)
        moment = later
    microsecond = timedelta(microseconds=1)
    at = np.array([(change - _EPOCH) // microsecond for change in changes], dtype=np.int64)
    return at, np.array([(offset or timedelta()) // microsecond for offset in offsets], dtype=np.int64)


def microseconds(time: np.datetime64) -> int:
    """A time as a whole number, as files keep it."""
    return int(time.astype("datetime64[us]").astype(np.int64))


def _plain(local: int) -> str:
    return show_time(np.datetime64(local, "us"))
