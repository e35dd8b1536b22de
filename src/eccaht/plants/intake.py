"""Rows become windows as they come: from Python calls, a growing file or the sources of the service.

Rows arrive with raw values by name. An `Intake` brings them into the columns of the model, drops impossible values,
scales the others and holds them until their window is complete. A recording is cut by the same `Cut`, all at once
(`Model.prepare`).
"""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import Clock
from eccaht.base.codec import Field, Fields, Part, Sizes
from eccaht.plants.data.growing import GrowingFile, Note
from eccaht.plants.data.horizon import BelievedTime, latest_believed
from eccaht.plants.data.layout import MISSING, is_number
from eccaht.plants.data.lines import Faults
from eccaht.plants.data.recorded import Missing
from eccaht.plants.data.windows import Batch, Cut, Moved, Sample
from eccaht.plants.model.model import IMPOSSIBLE, Model, Notation, has_moved, impossible

REMEMBERED = 120  # complete windows whose rows are known if they come again
_MOST_SEEN = 100_000  # rows of a complete window that are known
_LONGEST_NUMBER = 400  # characters
_MOST_LATE = 10  # windows whose rows may all be late without a word
_MISSING = frozenset(MISSING)
_TRUTH = {True: ("true", "True", "TRUE", "1"), False: ("false", "False", "FALSE", "0")}
Moments = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Readings as they came, in raw units.

    times: (N,), datetime64[us] on the clock of the plant's model. names: of the M columns, distinct; unknown ones are
    ignored and counted. values: (N, M), NaN where a reading is missing or bad, never the last value.
    """

    times: NDArray[np.datetime64]
    names: tuple[str, ...]
    values: Array

    def __post_init__(self) -> None:
        times = np.asarray(self.times).astype("datetime64[us]")
        values = np.asarray(self.values, dtype=np.float64)
        if values.shape != (len(times), len(self.names)):
            raise ValueError(f"{len(times)} rows of {len(self.names)} columns cannot have values of {values.shape}")
        if len(set(self.names)) < len(self.names):
            raise ValueError("two columns have the same name: rename one")
        if np.isnat(times).any():
            raise ValueError("a row has no time: leave the row out")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "values", values)


def number_of(value: Any) -> float:
    """A number, NaN where there is none: null, a text that files have in its place, or what is not finite.

    >>> number_of(2), number_of("-1.5e3"), number_of(True), number_of("N/A"), number_of(1e999)
    (2.0, -1500.0, 1.0, nan, nan)
    """
    if value is None:
        return math.nan
    if isinstance(value, str):
        value = value.strip()
        if value in _MISSING:
            return math.nan
        if len(value) > _LONGEST_NUMBER or not is_number(value):
            raise ValueError(f"{value[:40]!r} is not a number")
    try:
        number = float(value)
    except OverflowError:  # a whole number with hundreds of digits
        return math.nan
    except (TypeError, ValueError):
        raise ValueError(f"a value must be a number, not {_kind(value)}") from None
    return number if math.isfinite(number) else math.nan


def level_of(value: Any, levels: Sequence[str]) -> float:
    """The place of a status among the texts that it had in the history; NaN if it is missing or not among them.

    >>> [level_of(value, ["1", "off", "true"]) for value in ("off", 1, True, "on", None)]
    [1.0, 0.0, 2.0, nan, nan]
    """
    texts: Sequence[str] = ()
    if isinstance(value, bool | np.bool_):
        texts = _TRUTH[bool(value)]
    elif isinstance(value, str):
        texts = (value.strip(),)
    elif value is not None:
        try:
            with suppress(OverflowError):
                texts = (f"{float(value):g}",)
        except (TypeError, ValueError):
            raise ValueError(f"a status must be a text or a number, not {_kind(value)}") from None
    return next((float(levels.index(text)) for text in texts if text in levels), math.nan)


def _kind(value: Any) -> str:
    return {"dict": "an object", "list": "a list"}.get(type(value).__name__, type(value).__name__)


@dataclass(frozen=True, eq=False)
class SeenReadings:
    """Which readings of a window came: times in microseconds, increasing, (N,), and of which columns, (N, M)."""

    times: Moments
    present: NDArray[np.bool_]

    @staticmethod
    def of(rows: Batch) -> SeenReadings:
        return SeenReadings(rows.times.view(np.int64), ~np.isnan(rows.values))

    def with_more(self, more: SeenReadings) -> tuple[SeenReadings, int]:
        """The same and more readings, whose times may repeat, and how many of these rows bring none that is new."""
        places = {time: k for k, time in enumerate(self.times.tolist())}
        rows, known = list(self.present), 0
        for time, present in zip(more.times.tolist(), more.present, strict=True):
            if (place := places.get(time)) is None:
                if len(rows) < _MOST_SEEN:
                    places[time] = len(rows)
                    rows.append(present)
            elif (present & ~rows[place]).any():
                rows[place] = rows[place] | present
            else:
                known += 1
        times = np.array(list(places), dtype=np.int64)
        order = np.argsort(times)
        return SeenReadings(times[order], np.array(rows).reshape(len(rows), -1)[order]), known

    def to_bytes(self) -> bytes:
        bits = np.packbits(self.present, axis=1).tobytes()
        return len(self.times).to_bytes(4, "little") + self.times.astype("<i8").tobytes() + bits

    @staticmethod
    def parse(content: bytes, size: int) -> SeenReadings:
        count = int.from_bytes(content[:4], "little")
        times = np.frombuffer(content, "<i8", count, 4).astype(np.int64)
        bits = np.frombuffer(content, np.uint8, offset=4 + 8 * count).reshape(count, -1)
        return SeenReadings(times, np.unpackbits(bits, axis=1, count=size).astype(bool))


@dataclass(frozen=True, eq=False)
class ReleasedWindows:
    """What rows led to.

    samples: the complete windows. new: the rows that wait now and did not before. late: how many came after their
    window was complete; duplicate: how many were there before; ahead: how many are left out, because too many wait
    already that are ahead of all others. seen: of which readings each window is made, in bytes; again: windows that
    were complete, by their start, and which readings of them have come now; both where rows of one time are one row.
    """

    samples: tuple[Sample, ...]
    new: Batch
    late: int = 0
    duplicate: int = 0
    ahead: int = 0
    seen: tuple[bytes, ...] = ()
    again: Mapping[int, bytes] = field(default_factory=dict)


_ROWS: Fields = (Field("times", ("N",), np.datetime64), Field("values", ("N", "columns"), nan=True))


class Intake:
    """Takes the rows of a plant in any order and returns its windows.

    A window is complete once a row came that is `lateness` after its end and is believed (`BelievedTime`), or as soon
    as too many rows wait; what comes for it later is late. In each `Sample` is how many rows came late before it, and
    which constants of the history moved in it.

    clock: of the rows, the model's unless given. most: rows that may wait; if there are more, the oldest windows are
    complete. merging: rows of one time are one row, of which each reading counts once, the first that came, and what
    comes again is a duplicate; else all rows count. faults: takes impossible values.

    columns: the sensors of the model and what it left out; rows that wait have these, sensors in robust units.
    position: start of the last complete window, microseconds. n_late: rows so far that came too late; unreported: those
    of them that no window has reported.
    """

    FIELDS = (
        Field("position", (), int, low=-(2**60), high=2**60, optional=True),
        Field("n_late", (), int),
        Field("unreported", (), int),
        Part("horizon"),
        Part("waiting", Batch, fields=_ROWS),
    )

    def __init__(
        self,
        model: Model,
        clock: Clock | None = None,
        *,
        lateness: float = 0.0,
        most: int | None = None,
        merging: bool = False,
        faults: Faults | None = None,
    ) -> None:
        self.model, self.clock = model, model.clock if clock is None else clock
        self.columns = (*model.names, *model.left_out)
        self.most = most
        self.position: int | None = None
        self.n_late = self.unreported = 0
        self.waiting = _no_rows(len(self.columns))
        self._step = round(model.seconds * 1e6)
        self.horizon = BelievedTime(self._step, round(lateness * 1e6))
        self._merging, self._faults = merging, faults
        self._places = {name: k for k, name in enumerate(self.columns)}
        self._low, self._high = np.array(list(model.left_out.values())).reshape(-1, 2).T
        self._seen: OrderedDict[int, bytes] = OrderedDict()

    def add(self, rows: Rows, limit: int | None = None) -> ReleasedWindows:
        """Take rows; return the windows that they complete. limit: see `BelievedTime.hear`."""
        return self.add_scaled(self.scaled(rows), limit)

    def unknown(self, rows: Rows) -> tuple[str, ...]:
        """The columns that the model does not have."""
        return tuple(name for name in rows.names if name not in self._places)

    def scaled(self, rows: Rows) -> Batch:
        """Rows in the columns of the intake: sensors in robust units, the others as they are."""
        K = len(self.model.names)
        if rows.names == self.columns:
            values = rows.values.copy()
        else:
            known = [k for k, name in enumerate(rows.names) if name in self._places]
            values = np.full((len(rows.times), len(self.columns)), np.nan)
            values[:, [self._places[rows.names[k]] for k in known]] = rows.values[:, known]
        values[np.isinf(values)] = np.nan
        scaled = self.model.scaled(self.model.rounded(values[:, :K]))
        far = np.abs(scaled) > IMPOSSIBLE  # never for NaN
        if far.any():
            if self._faults is not None:
                self._report(far, values, rows.times)
            scaled[far] = np.nan
        values[:, :K] = scaled
        return Batch(rows.times, values)

    def _report(self, far: NDArray[np.bool_], values: Array, times: NDArray[np.datetime64]) -> None:
        """Count impossible values."""
        assert self._faults is not None
        for k in np.flatnonzero(far.any(axis=0)).tolist():
            row = int(far[:, k].argmax())
            text, when, why = impossible(values[row, k], times[row], self.clock)
            self._faults.bad_values(self.model.names[k], int(far[:, k].sum()), f"the row of {when}", text, why)

    def add_scaled(self, rows: Batch, limit: int | None = None) -> ReleasedWindows:
        """The same for rows as `scaled` returns them."""
        late = known = 0
        again: dict[int, bytes] = {}
        if self.position is not None:
            behind = self._starts(rows.times) <= self.position
            known = self._count_known(_pick(rows, behind), again)
            late = int(behind.sum()) - known
            rows = _pick(rows, ~behind)
        self.n_late += late
        self.unreported += late
        before, arrived = self.waiting.times, rows.times.view(np.int64)
        rows = _pick(rows, np.argsort(rows.times, kind="stable"))
        self.waiting, fresh = (_merged if self._merging else _joined)(self.waiting, rows)
        self.horizon.hear(arrived, self.waiting.times.view(np.int64), limit)
        new, ahead = self._bounded(_pick(rows, fresh), before)
        return self._release(self._complete(), new, late, known + int((~fresh).sum()), ahead, again)

    def _count_known(self, rows: Batch, again: dict[int, bytes]) -> int:
        """How many rows of complete windows came before; the others are known from now on."""
        if not self._seen or not len(rows.times):
            return 0
        known, starts = 0, self._starts(rows.times)
        for start in np.unique(starts).tolist():
            if (content := self._seen.get(start)) is None:  # of a window too long ago, or without any row
                continue
            chosen = SeenReadings.of(_pick(rows, starts == start))
            seen, known_here = SeenReadings.parse(content, len(self.columns)).with_more(chosen)
            known += known_here
            if known_here < len(chosen.times):
                self._seen[start], again[start] = seen.to_bytes(), chosen.to_bytes()
        return known

    def _bounded(self, new: Batch, before: NDArray[np.datetime64]) -> tuple[Batch, int]:
        """The new rows without those that are ahead of all others, if half of the most wait for that; their number."""
        if self.most is None or self.held <= self.most // 2:
            return new, 0
        assert self.horizon.time is not None
        furthest = np.datetime64(self.horizon.time + self.horizon.reach, "us")
        far = (new.times > furthest) & ~np.isin(new.times, before)
        self.waiting = _pick(self.waiting, ~np.isin(self.waiting.times, new.times[far]))
        return _pick(new, ~far), int(far.sum())

    @property
    def held(self) -> int:
        """How many of the rows that wait are ahead of all others."""
        return self.horizon.ahead(self.waiting.times.view(np.int64))

    def drop_doubted(self) -> NDArray[np.datetime64]:
        """Leave out the rows that are still doubted; return their times."""
        count = len(self.waiting.times) - self.held
        doubted = self.waiting.times[count:]
        self.waiting = _pick(self.waiting, slice(count))
        return doubted

    @property
    def is_one_window(self) -> bool:
        """Whether all rows that wait are of one window."""
        return len(np.unique(self._starts(self.waiting.times))) == 1

    def finish(self) -> ReleasedWindows:
        """The windows that no later row has completed."""
        return self._release(len(self.waiting.times), _no_rows(len(self.columns)))

    def _starts(self, times: NDArray[np.datetime64]) -> Moments:
        return self.clock.floor(times.view(np.int64), self._step)

    def _complete(self) -> int:
        """How many of the rows, which are in order, are in complete windows."""
        count, horizon, times = 0, self.horizon, self.waiting.times
        if horizon.time is not None:
            first_open = self.clock.floor(np.array([horizon.time - horizon.lateness]), self._step)[0]
            count = int(np.searchsorted(times.view(np.int64), first_open))
        too_many = 0 if self.most is None else len(times) - self.held - self.most
        if too_many > count:
            starts = self._starts(times[too_many - 1 :])
            count = too_many - 1 + int(np.searchsorted(starts, starts[0], side="right"))
        return count

    def _release(
        self,
        count: int,
        new: Batch,
        late: int = 0,
        duplicate: int = 0,
        ahead: int = 0,
        again: Mapping[int, bytes] | None = None,
    ) -> ReleasedWindows:
        """The windows of the first rows that wait, which leave the intake."""
        done, K = _pick(self.waiting, slice(count)), len(self.model.names)
        cut = Cut.of(done.times, self.model.seconds, self.clock)
        windows = cut.windows(done.values[:, :K], self.model.names, self.model.seconds, self.clock)
        seen: tuple[bytes, ...] = ()
        samples: list[Sample] = []
        if count:
            self.waiting = _pick(self.waiting, slice(count, None))
            moved = self._moved(done)
            step = np.timedelta64(self._step, "us")
            for sample in windows.samples():
                inside = tuple(each for each in moved if each.since < sample.start + step)
                samples.append(sample._replace(late=self.unreported, moved=inside))
                self.unreported = 0
            starts = cut.starts.astype(np.int64).tolist()
            self.position = starts[-1]
            if self._merging:
                edges = [*cut.first.tolist(), count]
                seen = tuple(SeenReadings.of(_pick(done, slice(a, b))).to_bytes() for a, b in itertools.pairwise(edges))
                for start, content in zip(starts, seen, strict=True):
                    self.remember(start, content)
            new = _pick(new, self._starts(new.times) > self.position)
        return ReleasedWindows(tuple(samples), new, late, duplicate, ahead, seen, again or {})

    def _moved(self, rows: Batch) -> list[Moved]:
        """The columns that are no sensors and read here what they never did in the history."""
        K = len(self.model.names)
        away = has_moved(rows.values[:, K:], self._low, self._high)
        moved = []
        for k in np.flatnonzero(away.any(axis=0)).tolist():
            row = int(away[:, k].argmax())
            read = float(rows.values[row, K + k])
            ends = float(self._low[k]), float(self._high[k])
            moved.append(Moved.of(self.columns[K + k], *ends, read, rows.times[row]))
        return moved

    def remember(self, start: int, seen: bytes) -> None:
        """A window is complete that is made of these readings."""
        self.position = start
        self._seen[start] = seen
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)

    def remember_late(self, start: int, late: bytes) -> None:
        """These readings of a complete window came too late."""
        if (known := self._seen.get(start)) is not None:
            size = len(self.columns)
            self._seen[start] = SeenReadings.parse(known, size).with_more(SeenReadings.parse(late, size))[0].to_bytes()

    def to_bytes(self, rows: Batch) -> bytes:
        """Rows that are new, and how far times are believed now, for `put` after a restart."""
        horizon = self.horizon
        known = [] if horizon.time is None else [horizon.time, horizon.usual, *horizon.doubted]
        return (
            len(rows.times).to_bytes(8, "little")
            + rows.times.astype("<i8").tobytes()
            + rows.values.astype("<f8").tobytes()
            + np.array(known, dtype="<i8").tobytes()
        )

    def put(self, content: bytes) -> None:
        """Rows that were new when they came, of which some may be in complete windows by now."""
        count, size = int.from_bytes(content[:8], "little"), len(self.columns)
        times = np.frombuffer(content, "<i8", count, 8).astype("datetime64[us]")
        values = np.frombuffer(content, "<f8", count * size, 8 + 8 * count).reshape(count, size)
        rows = Batch(times, values.copy())
        kept = rows if self.position is None else _pick(rows, self._starts(times) > self.position)
        self.waiting, _ = _merged(self.waiting, kept)
        known = np.frombuffer(content, "<i8", offset=8 + 8 * count * (size + 1)).tolist()
        if known:
            self.horizon.time, self.horizon.usual, self.horizon.doubted = known[0], known[1], tuple(known[2:])

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        times, values = self.waiting.times, self.waiting.values[:, : len(self.model.names)]
        if (times[1:] < times[:-1]).any() or (np.abs(values) > IMPOSSIBLE).any():
            raise ValueError("its rows are damaged: they are in no order, or impossible")


def _no_rows(columns: int) -> Batch:
    return Batch(np.zeros(0, dtype="datetime64[us]"), np.zeros((0, columns)))


def _pick(rows: Batch, which: slice | NDArray[Any]) -> Batch:
    return Batch(rows.times[which], rows.values[which])


def _joined(before: Batch, more: Batch) -> tuple[Batch, NDArray[np.bool_]]:
    """All rows in order of time; all of `more`, which are in order, are new."""
    fresh = np.ones(len(more.times), dtype=bool)
    if not len(before.times):
        return more, fresh
    times, values = np.concatenate([before.times, more.times]), np.concatenate([before.values, more.values])
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
    return Batch(times, values), fresh


def _merged(before: Batch, more: Batch) -> tuple[Batch, NDArray[np.bool_]]:
    """Rows of one time as one, and which rows of `more`, which are in order, bring a new reading or a new time."""
    n = len(before.times)
    both = np.concatenate([before.times, more.times])
    if (both[1:] > both[:-1]).all():  # as rows mostly come
        return Batch(both, np.concatenate([before.values, more.values])), np.ones(len(more.times), dtype=bool)
    times, first, place = np.unique(both, return_index=True, return_inverse=True)
    values = np.concatenate([before.values, more.values])[first]
    fresh = np.zeros(len(both), dtype=bool)
    fresh[first] = True
    for row in (np.flatnonzero(~fresh[n:]) + n).tolist():  # of a time that is there
        there = values[place[row]]
        gaps = np.isnan(there) & ~np.isnan(more.values[row - n])
        there[gaps] = more.values[row - n][gaps]
        fresh[row] = gaps.any()
    return Batch(times, values), fresh[n:]


class Follower:
    """Yields one window after the other while a CSV file grows, of all sensors of the model.

    A window is complete once a row of a later window has arrived, and the last one when following ends (see
    `GrowingFile`). Rows that come too late for their window are left out and counted. An error after the first window
    ends the following as the end of the data would, with a note.
    """

    def __init__(
        self,
        model: Model,
        path: Path,
        *,
        missing: Missing = "refuse",
        notation: Notation | None = None,
        poll: float = 1.0,
        timeout: float | None = None,
        note: Note = lambda _: None,
    ) -> None:
        if path.suffix.lower() in (".gz", ".parquet", ".pq"):
            raise ValueError(f"{path} cannot be followed: only plain CSV files grow line by line")
        if not model.reading.get("time_columns"):
            raise ValueError("--follow needs rows with times, and the history of this model had none")
        expected = (notation or Notation()).expected(model)
        self.file = GrowingFile(path, expected, missing=missing, poll=poll, timeout=timeout, note=note)
        self.end = self.file.end
        self._model = model
        self._silent = False  # whether it was said that all rows come too late

    @property
    def clock(self) -> Clock:
        """What the times mean, known from the first row on."""
        return self.file.clock

    @property
    def notes(self) -> list[str]:
        """All that a user should know once it is over."""
        return [*self.file.said, *self.file.faults.notes()]

    def __iter__(self) -> Iterator[Sample]:
        some = False
        try:
            for sample in self._samples():
                some = True
                yield sample
        except (ValueError, OSError) as error:
            if not some:
                raise
            self.file.say(f"following ended: {error}")
        if not some:
            raise ValueError(self._nothing())

    def _samples(self) -> Iterator[Sample]:
        file, intake = self.file, None
        for batch in file.batches():
            if intake is None:  # the clock is known from the first row on
                intake = Intake(self._model, file.clock, faults=file.faults)
            rows = Rows(batch.times, file.names, batch.values)
            samples = intake.add(rows, latest_believed(file.clock)).samples
            file.faults.late = intake.n_late
            if not samples:
                self._listen(intake)
            if not file.cut_short:  # otherwise the last window lacks rows that were not read
                yield from samples
        if intake is not None:
            file.leave_out(intake.drop_doubted())
            if not file.cut_short:
                yield from intake.finish().samples

    def _listen(self, intake: Intake) -> None:
        """Say it once if rows come and all of them too late, so that there is no window to say anything of."""
        file, late = self.file, intake.unreported
        if late > _MOST_LATE * self._model.usual_rows and not self._silent:
            file.say(f"no data: the last {late} rows of {file.path} came too late for their windows")
            self._silent = True

    def _nothing(self) -> str:
        """The message where there was no window: what was waited for."""
        file, bad = self.file, "; ".join(self.file.faults.notes())
        what = f"waited for {file.waits_for}"
        if file.last is not None:
            what = f"waited for a window, of its {file.rows} rows the last is at {file.clock.show(file.last)}"
        return f"nothing was read from {file.path}: {what}" + (f"; {bad}" if bad else "")
