"""Rows in order of time, and the windows that they are cut into: non-overlapping means.

Windows are whole windows of the clock: window w holds the local times in [w L, (w + 1) L) counted from 1970-01-01, L
the length of a window; where the clock is changed, a window ends. One-minute windows start at whole minutes whatever
the first row is, so that history and new data are cut alike. Windows without any row do not exist. `Cut` says where
they begin, in a recording as in rows as they come (`eccaht.plants.intake`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import PLAIN, Clock

if TYPE_CHECKING:
    import polars as pl

    from eccaht.plants.data.reading import Levels, TimeRule

Times = NDArray[np.datetime64]

# of decimals
MOST_DECIMALS = 6  # readings with more are as good as exact
_SAMPLE = 5000  # readings, evenly spread, that are looked at
_FIRST = 100  # of them, which decide for most columns
_ROUNDING = 1e-9  # of a reading: what writing and reading it may change
_FEWEST = 10  # distinct readings: k of them look a decimal coarser than they are with probability 10^-k
_CLEAR = 2  # decimals fewer that make a column coarser
_VISIBLE = 1e-3  # of the usual spread: a shorter step is lost in the noise


class Batch(NamedTuple):
    """Some rows: their times, (N,), in order, and their values, (N, K), one column a sensor.

    NaN is a missing value, and so is whatever `quality`, (N, K), says is bad (False).
    """

    times: Times
    values: Array
    quality: NDArray[np.bool_] | None = None

    @property
    def readings(self) -> Array:
        """The values, NaN where there is none that is good."""
        return self.values if self.quality is None else np.where(self.quality, self.values, np.nan)


@dataclass(frozen=True)
class Table:
    """Readings with their times, rows in order of time; rows of equal time stay in the order of the files.

    times: datetime64[us], shape (N,). names: the columns that were read; all_names: also those that were not.
    texts: the columns that hold text. clock: what the times mean. label: what messages call the data.
    rule: how the times were read. notes: what a user should know of how the files were read; zone_notes: those of
    them about time zones.
    """

    times: Times
    names: tuple[str, ...]
    all_names: tuple[str, ...]
    texts: frozenset[str]
    rule: TimeRule
    label: str
    notes: tuple[str, ...] = ()
    clock: Clock = field(default_factory=Clock)
    zone_notes: tuple[str, ...] = ()
    decimal_comma: bool = False
    _columns: pl.DataFrame | Mapping[str, Array] = field(repr=False, kw_only=True)
    _levels: Levels = field(default_factory=dict, repr=False, kw_only=True)  # of arrays, which hold codes
    _rows: NDArray[np.intp] | slice = field(repr=False, kw_only=True)

    def numbers(self, name: str, *, infinite: bool = False) -> Array:
        """The readings of a numeric column, NaN where there is no finite one; infinite: leave such as they are."""
        series: Any = self._columns[name]
        if not isinstance(series, np.ndarray):
            if series.null_count():  # much faster than letting to_numpy do it
                series = series.rechunk().fill_null(np.nan)
            series = series.to_numpy()
        column: Array = series[self._rows]  # which may be a read-only view
        with np.errstate(all="ignore"):
            total = column.sum()
        if infinite or np.isfinite(total):  # the quick way to know that nothing is missing or infinite
            return column
        never = np.isinf(column)
        return np.where(never, np.nan, column) if never.any() else column

    def status(self, name: str) -> tuple[Sequence[str], Array]:
        """The distinct texts of a column, sorted, and their number in each row; NaN where there is none."""
        if name in self._levels:
            return self._levels[name], self.numbers(name)
        import polars as pl

        series: pl.Series = self._columns[name]  # type: ignore[assignment]
        levels = sorted(series.drop_nulls().unique().to_list())
        codes = series.replace_strict(levels, list(range(len(levels))), default=None, return_dtype=pl.Float64)
        return levels, codes.to_numpy()[self._rows]

    def coded(self, name: str, known: Sequence[str] | None) -> Array:
        """A column in the form of the history: numbers, or the places of its texts among the known ones."""
        if known is None:
            if name in self.texts:
                text = self.status(name)[0][0]
                raise ValueError(f"column {name!r} of {self.label} holds texts ({text!r}), in the history numbers")
            return self.numbers(name)
        levels: Sequence[str]
        if name in self.texts:
            levels, codes = self.status(name)
        else:
            values, places = np.unique(self.numbers(name), return_inverse=True)
            levels = [f"{value:g}" for value in values[~np.isnan(values)]]
            codes = np.where(places < len(levels), places.astype(np.float64), np.nan)
        new = [level for level in levels if level not in known]
        if new:
            raise ValueError(
                f"column {name!r} of {self.label} holds {new[0]!r}, which the history never had "
                f"({', '.join(map(repr, known[:5]))}): calibrate on a history that has it, or without this column"
            )
        translation = np.array([known.index(level) for level in levels] or [0], dtype=np.float64)
        gaps = np.isnan(codes)
        return np.where(gaps, np.nan, translation[np.where(gaps, 0, codes).astype(np.intp)])

    def readings(self, levels: Levels) -> Array:
        """All rows, (N, K); texts as their places in `levels`."""
        return np.array([self.coded(name, levels.get(name)) for name in self.names]).T

    @property
    def by_column(self) -> bool:
        """Whether the rows are arrays that lie in memory column by column."""
        return isinstance(self._columns, dict) and all(each.flags.c_contiguous for each in self._columns.values())

    @property
    def interval(self) -> float:
        """The usual number of seconds between rows, 0 for a single row."""
        steps = np.diff(self.times).astype(np.int64)
        return float(np.median(steps[steps > 0])) / 1e6 if (steps > 0).any() else 0.0


@dataclass(frozen=True)
class Cut:
    """Where sorted rows fall into windows: row `first[w]` is the first of window w, which has `rows[w]` rows."""

    starts: Times
    first: NDArray[np.intp]
    rows: NDArray[np.intp]

    @staticmethod
    def of(times: Times, seconds: float, clock: Clock = PLAIN) -> Cut:
        starts = clock.floor(times.astype("datetime64[us]").astype(np.int64), round(seconds * 1e6))
        first = np.flatnonzero(np.diff(starts, prepend=starts[:1] - 1))
        rows = np.diff(first, append=len(times))
        return Cut(starts[first].astype("datetime64[us]"), first, rows)

    @property
    def full(self) -> NDArray[np.bool_]:
        """Which windows have at least half of the usual rows."""
        return np.asarray(2 * self.rows >= np.median(self.rows))

    def means(self, readings: Array) -> Array:
        """Mean of each window of a column without gaps, (N,), or of several, (N, K)."""
        return np.add.reduceat(readings, self.first, axis=0) / self._by_window(readings)

    def present(self, readings: Array) -> Array:
        missing = np.isnan(readings)
        if not missing.any():
            return self._by_window(readings) + np.zeros(readings.shape[1:])
        return np.add.reduceat(~missing, self.first, axis=0, dtype=np.float64)

    def flat(self, readings: Array) -> NDArray[np.bool_]:
        low, high = np.fmin.reduceat(readings, self.first, axis=0), np.fmax.reduceat(readings, self.first, axis=0)
        return np.asarray(low == high)

    def means_of_present(self, readings: Array) -> Array:
        """Mean of the readings that are there, NaN where there is none."""
        missing = np.isnan(readings)
        if not missing.any():
            return self.means(readings)
        present = self.present(readings)
        total = np.add.reduceat(np.where(missing, 0.0, readings), self.first, axis=0)
        return np.where(present > 0, total / np.maximum(present, 1), np.nan)

    def windows(self, readings: Array, names: tuple[str, ...], seconds: float, clock: Clock) -> Windows:
        """The windows of scaled readings, (N, K), NaN where there is none."""
        if not len(self.starts):
            none = np.zeros((0, len(names)))
            return Windows(self.starts, none, names, seconds, none.copy(), none.astype(bool), clock=clock)
        values, flat = self.means_of_present(readings), self.flat(readings)
        return Windows(self.starts, values, names, seconds, self.present(readings), flat, clock=clock)

    def _by_window(self, readings: Array) -> Array:
        """The number of rows of each window, to go with its columns."""
        return self.rows.astype(np.float64).reshape(-1, *[1] * (readings.ndim - 1))


class Away(NamedTuple):
    """Rows in which a column that is no sensor reads what it never did in the history, where it read `low` to `high`.

    One that changed there is away beyond its range by as much as the range.
    """

    low: float
    high: float
    times: Times
    readings: Array

    def since(self, name: str, first: int) -> Moved:
        """What it is from row `first` of these on."""
        return Moved.of(name, self.low, self.high, float(self.readings[first]), self.times[first])


class Moved(NamedTuple):
    """A column that is no sensor and read `usual` in all of the history, and `read` at the time `since`.

    width: of its range in the history, whose nearer end is `usual`.
    """

    name: str
    usual: float
    read: float
    since: np.datetime64
    width: float = 0.0

    @staticmethod
    def of(name: str, low: float, high: float, read: float, since: np.datetime64) -> Moved:
        return Moved(name, low if read < low else high, read, since, high - low)

    def text(self, clock: Clock) -> str:
        never = "never beyond " if self.width else ""
        return f"{self.read:.6g} since {clock.show(self.since)}, {never}{self.usual:.6g} in all of the history"


class Sample(NamedTuple):
    """One window: its start, the means of K sensors, how many readings each is of, and which sensors were constant.

    rows and flat are None if not counted. late: rows since the window before that came too late for theirs. moved:
    constants of the history that move in this window; it may have others that moved before.
    """

    start: np.datetime64
    values: Array
    rows: Array | None = None
    flat: NDArray[np.bool_] | None = None
    late: int = 0
    moved: tuple[Moved, ...] = ()


@dataclass(frozen=True)
class Windows:
    """Means of the scaled readings in T windows of K sensors, what the policies work on.

    starts: start of each window, increasing, datetime64[us], shape (T,); counted from 1970-01-01 if rows had no times.
    values: shape (T, K), NaN where a sensor delivered nothing in that window.
    seconds: length of a window.
    rows: (T, K), readings that each mean is of; flat: (T, K), whether they were all the same; None if not counted.
    model: what prepared them, for those who ask it what is usual. clock: what the times mean.
    notes: what a user should know of how the data were read. interval: seconds between rows; decimals: of the readings,
    by sensor; None where they are not known. away: the columns that never changed in the history, by name.
    """

    starts: Times
    values: Array
    names: tuple[str, ...]
    seconds: float
    rows: Array | None = None
    flat: NDArray[np.bool_] | None = None
    model: Any = None
    clock: Clock = PLAIN
    notes: tuple[str, ...] = ()
    interval: float | None = None
    decimals: dict[str, int | None] | None = None
    away: Mapping[str, Away] = field(default_factory=dict)

    def between(self, start: Any = None, stop: Any = None) -> Windows:
        """Return the windows that start at or after `start` and before `stop`."""
        first = 0 if start is None else int(np.searchsorted(self.starts, self.clock.parse(start, "start")))
        last = len(self.starts) if stop is None else int(np.searchsorted(self.starts, self.clock.parse(stop, "stop")))
        return self._pick(slice(first, max(first, last)), slice(None))

    def moved(self, start: Any = None) -> list[Moved]:
        """The columns that are no sensors and read what they never did in the history, in the rows from `start` on."""
        found = []
        for name, away in self.away.items():
            first = 0 if start is None else int(np.searchsorted(away.times, self.clock.parse(start, "start")))
            if first < len(away.times):
                found.append(away.since(name, first))
        return found

    def of(self, names: Sequence[str]) -> Windows:
        """The same windows of some of the sensors, in that order."""
        chosen = np.array([self.names.index(name) for name in names], dtype=np.intp)
        return replace(self._pick(slice(None), chosen), names=tuple(names))

    def samples(self) -> Iterator[Sample]:
        uncounted = [None] * len(self.starts)
        rows, flat = (uncounted if part is None else part for part in (self.rows, self.flat))
        moved: dict[int, tuple[Moved, ...]] = {}
        for each in self.moved(self.starts[0]) if len(self.starts) else ():
            first = int(np.searchsorted(self.starts, each.since, side="right")) - 1
            moved[first] = (*moved.get(first, ()), each)
        for k, parts in enumerate(zip(self.starts, self.values, rows, flat, strict=True)):
            yield Sample(*parts, 0, moved.get(k, ()))

    @staticmethod
    def joined(parts: Sequence[Windows]) -> Windows:
        """Windows that follow each other, of the same sensors, as one."""
        arrays: dict[str, Any] = {}
        for name in ("starts", "values", "rows", "flat"):
            pieces = [getattr(part, name) for part in parts]
            arrays[name] = None if pieces[0] is None else np.concatenate(pieces)
        return replace(parts[0], **arrays)

    def _pick(self, times: slice, sensors: Any) -> Windows:
        rows = None if self.rows is None else self.rows[times, sensors]
        flat = None if self.flat is None else self.flat[times, sensors]
        return replace(self, starts=self.starts[times], values=self.values[times, sensors], rows=rows, flat=flat)


def follows(windows: Windows) -> NDArray[np.bool_]:
    """Whether each window but the first follows the one before it, (T - 1,); a single missing one is no gap."""
    steps = np.diff(windows.starts) / np.timedelta64(1, "us") * 1e-6
    return np.asarray(steps < 2.5 * windows.seconds)


def decimals(column: Array) -> int | None:
    """The number of decimals that all readings of a column have at most; None if more than MOST_DECIMALS or none.

    >>> decimals(np.array([1.25, 3.0, np.nan])), decimals(np.array([700.0])), decimals(np.array([1 / 3]))
    (2, 0, None)
    """
    readings = column[np.isfinite(column)]
    readings = readings[:: max(1, readings.size // _SAMPLE)]
    if not readings.size:
        return None
    least = 0
    for part in (readings[:_FIRST], readings):
        found = next((d for d in range(least, MOST_DECIMALS + 1) if _is_rounded(part, d)), None)
        if found is None:
            return None
        least = found
    return least


def decimals_by_name(columns: Mapping[str, Array]) -> dict[str, int | None]:
    """The decimals of new readings; columns with few distinct readings are left out: they prove nothing.

    >>> decimals_by_name({"a": np.arange(20) / 4, "stuck": np.full(20, 5.0)})
    {'a': 2}
    """
    return {name: decimals(column) for name, column in columns.items() if _are_many(column)}


def coarser(
    history: Mapping[str, int | None], new: Mapping[str, int | None], spread: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """Which columns are written to fewer decimals in new data than in the history.

    A column counts as coarser if it has at least two decimals fewer, or one where the longer step exceeds a thousandth
    of its usual `spread`, if that is given. Columns that are not in both are left out.

    >>> coarser({"a": 4, "b": 1, "c": 2}, {"a": 1, "b": 3, "c": 1}), coarser({"c": 2}, {"c": 1}, {"c": 5.0})
    (('a',), ('c',))
    """

    def is_coarser(name: str) -> bool:
        step = 10.0 ** -_count(new[name])
        visible = spread is not None and name in spread and step > _VISIBLE * spread[name]
        return _count(history[name]) - _count(new[name]) >= (1 if visible else _CLEAR)

    return tuple(name for name in history if name in new and is_coarser(name))


def _is_rounded(readings: Array, places: int) -> bool:
    return bool((np.abs(readings - np.round(readings, places)) <= _ROUNDING * np.abs(readings)).all())


def _are_many(column: Array) -> bool:
    readings = column[np.isfinite(column)]
    return any(np.unique(part).size >= _FEWEST for part in (readings[:_FIRST], readings))


def _count(places: int | None) -> int:
    return MOST_DECIMALS + 1 if places is None else places
