"""A plant watched row by row: rows become windows, windows events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, as_count, as_number
from eccaht.base.clock import Clock, from_microseconds, microseconds
from eccaht.base.files import check_keys, part_of, read_archive, write_archive
from eccaht.base.labels import named_values
from eccaht.base.presentation.text import counted
from eccaht.plants.data.windower import Windower, latest_believed
from eccaht.plants.data.windows import Batch, Moved, Windows
from eccaht.plants.front.model import PlantModel
from eccaht.plants.model.model import IMPOSSIBLE, ROUNDING, Model
from eccaht.plants.watch.events import Event, Hearing
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.session import Session, moved_by, rate_line
from eccaht.streams import Alarm, State

_KIND, _VERSION = "row-watch", 1
_NOT_KEPT = {"late": 0, "hearing": None}  # by files of earlier versions


class RowWatch:
    """The watch of a plant, as `model.watch` begins it: give it each row, and it returns the events.

    Rows are scaled and cut into windows as the history was; a window is judged once a row of a later one has come.
    session: the windows so far, and what operators ordered. n_rows: rows so far.
    """

    def __init__(self, session: Session) -> None:
        self.session, self.model = session, session.model
        self._rows = Windower(self.model.names, self.model.seconds, self.model.clock)
        self._hearing = Hearing(float(self.model.summary.row_counts[0]), self.model.seconds)
        self.n_rows = self._late = 0  # rows, and those of them that came too late since the last window
        self._moved: dict[str, Moved] = {}  # constants of the history that have moved

    @staticmethod
    def begin(model: Model, every: float) -> RowWatch:
        """A new watch; every: windows to a false alarm."""
        return RowWatch(Session(PlantWatch(model, false_alarm_every=every)))

    def __repr__(self) -> str:
        sensors, windows = counted(len(self.model.names), "sensor"), counted(self.session.windows, "window")
        return f"RowWatch({sensors}, {windows} so far, {self.state}; {rate_line(self.session.watch).split(',')[0]})"

    @property
    def state(self) -> State:
        """Where it stands: "quiet", "suspicious" or "alarm"."""
        return self.session.watch.state

    @property
    def alarm(self) -> Alarm | None:
        """The alarm as it is now, sizes in units of the readings; None if there is none."""
        return self.session.watch.in_units(self.session.watch.alarm)

    def update(self, row: Any, time: Any = None) -> list[Event]:
        """Take a row: a mapping or a series by name, or the readings of all sensors in the order of the model.

        Sensors that are not in it, and NaN, are missing; further columns are ignored. time: of the row, as a datetime,
        a datetime64 (UTC if the history has a time zone) or a text; the number of the row where rows have no times, by
        default the next one. The events are those of the windows that this row completes.
        """
        refuse_table(row, "update takes one row")
        moment = self._time(time)
        values = self._values(row, moment)
        self.n_rows += 1
        before = self._rows.n_late
        done = self._rows.add(Batch(np.array([moment]), values[None, :]), latest_believed(self._rows.clock))
        late = self._rows.n_late - before
        self._late += late
        return self._take(done) or (self._lost(moment) if late else [])

    def finish(self) -> list[Event]:
        """The events of the windows that no later row has completed: the data have ended."""
        return self._take(self._rows.finish())

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file from which `eccaht.load_watch` goes on exactly where this watch is; it holds the model too."""
        parts = {"model": self.model.parts(), "session": self.session.parts(), "rows": self._rows.parts()}
        header: dict[str, Any] = {name: each[0] for name, each in parts.items()}
        arrays = {f"{name}.{key}": array for name, (_, of) in parts.items() for key, array in of.items()}
        moved = [[each.name, each.read, microseconds(each.since)] for each in self._moved.values()]
        header |= {"moved": moved, "count": self.n_rows, "late": self._late, "hearing": self._hearing.header()}
        write_archive(path, _KIND, _VERSION, header, arrays)

    def _take(self, windows: Windows) -> list[Event]:
        session, clock, events = self.session, self._rows.clock, list[Event]()
        for sample in windows.samples():
            moved = moved_by(self._moved.values(), sample, session, clock)
            events += session.take(sample, clock, late=self._late, moved=moved)
            events += session.hear(self._hearing, sample, self._late, clock)
            self._late = 0
        session.settle()  # who called has them
        return events

    def _lost(self, time: np.datetime64) -> list[Event]:
        """The event where so many rows come too late that no window is completed."""
        if not self._hearing.listen(self._late):
            return []
        events = self.session.report(*self._hearing.news, time, self._rows.clock)
        self.session.settle()
        return events

    def _time(self, time: Any) -> np.datetime64:
        clock = self._rows.clock
        if time is None and clock.row_interval is None:
            raise ValueError("give the time of the row: update(row, time)")
        try:
            return clock.parse(self.n_rows + 1 if time is None else time)
        except ValueError:
            if clock.zone is not None or clock.row_interval is not None:
                raise
            Clock("UTC").parse(time)  # what is no time at all is refused by it too
            raise ValueError(
                f"time {time!r:.60} has a time zone, but the history has none: give times without one, or calibrate "
                "on times with one"
            ) from None

    def _values(self, row: Any, time: np.datetime64) -> Array:
        """The readings in robust units, (K,), NaN where there is none."""
        names, values = self.model.names, named_values(row)
        if values is None:
            given = list(row)
            if len(given) != len(names):
                raise ValueError(f"a row has {len(names)} readings, one for each sensor, not {len(given)}")
            values = dict(zip(names, given, strict=True))
        if not any(name in values for name in names):
            raise ValueError(f"the row has none of the model's sensors, which are {', '.join(names[:5])}, ...")
        self._notice(values, time)
        read = np.array([self._number(name, values.get(name)) for name in names])
        scaled = self.model.scaled(self.model.rounded(read[None, :]))[0]
        scaled[np.abs(scaled) > IMPOSSIBLE] = np.nan
        return scaled

    def _number(self, name: str, value: Any) -> float:
        """A reading, or the place of the text of a status among those of the history."""
        levels = self.model.reading["levels"].get(name)
        if value is None or value != value or value == "":
            return np.nan
        if levels is None:
            try:
                number = float(value)
            except (TypeError, ValueError):
                raise ValueError(f"{name} reads {value!r:.40}, which is no number: give NaN if it is missing") from None
            return number if math.isfinite(number) else np.nan
        text = value if isinstance(value, str) else f"{value:g}"
        return float(levels.index(text)) if text in levels else np.nan

    def _notice(self, row: Mapping[Any, Any], time: np.datetime64) -> None:
        """Keep when a column that never changed in the history first reads something else."""
        for name, usual in self.model.constants.items():
            if name in row and name not in self._moved:
                read = self._number(name, row[name])
                if abs(read - usual) > ROUNDING * abs(usual):  # never for NaN
                    self._moved[name] = Moved(name, usual, read, time)


def load_watch(path: str | PathLike[str]) -> RowWatch:
    """Read a watch that was saved, its model included; safe for untrusted files."""
    return read_archive(path, _KIND, _VERSION, _build, again="begin anew with model.watch()")


def _build(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> RowWatch:
    header = _NOT_KEPT | header
    check_keys(header, {"model", "session", "rows", "moved", "count", "late", "hearing"}, "header")
    model = PlantModel.of_model(Model.build(header["model"], part_of(arrays, "model")))
    watch = RowWatch(Session.build(header["session"], part_of(arrays, "session"), model=model, digest=""))
    watch._rows.restore(header["rows"], part_of(arrays, "rows"))
    watch.n_rows = as_count(header["count"], "the number of rows", least=0)
    watch._late = as_count(header["late"], "late rows", least=0)
    if header["hearing"] is not None:
        watch._hearing.restore(header["hearing"])
    for entry in header["moved"]:
        name, read, since = entry
        usual = model.constants[name]
        watch._moved[name] = Moved(name, usual, as_number(read, "a reading"), from_microseconds(since))
    return watch


def refuse_table(given: Any, taken: str) -> None:
    """Refuse a frame or an array of rows; taken: what is taken instead."""
    if len(getattr(given, "shape", ())) == 2:
        raise ValueError(
            f"{taken}, not a whole table: rows go one by one to update, as in "
            "'for time, row in frame.iterrows(): watch.update(row, time)'"
        )
