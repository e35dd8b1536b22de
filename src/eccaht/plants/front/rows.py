"""A plant watched row by row: rows become windows, windows events."""

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from eccaht.base.arrays import Array
from eccaht.base.clock import Clock
from eccaht.base.codec import Field, Part, restore, state_of
from eccaht.base.files import check_keys, read_archive, write_archive
from eccaht.base.labels import named_values
from eccaht.base.presentation.text import counted, shown_progress
from eccaht.plants.data.horizon import latest_believed
from eccaht.plants.intake import Intake, ReleasedWindows, Rows, level_of, number_of
from eccaht.plants.model.model import Model
from eccaht.plants.watch.active import ReadingPlan, budget_of, planned
from eccaht.plants.watch.events import Event
from eccaht.plants.watch.plant import PlantWatch, State
from eccaht.plants.watch.session import Session, false_alarm_every, rate_line
from eccaht.streams import Alarm

_KIND, _VERSION = "row-watch", 4


class RowWatch:
    """The watch of a plant, as `model.watch` begins it: give it each row, and it returns the events.

    Rows are scaled and cut into windows as the history was; a window is judged once a row of a later one has come.
    session: the windows so far, and what operators ordered. n_rows: rows so far.
    """

    FIELDS = (Field("n_rows", (), int), Part("_intake"))

    def __init__(self, session: Session) -> None:
        self.session, self.model = session, session.model
        self._intake = Intake(self.model)
        self.n_rows = 0

    def __repr__(self) -> str:
        sensors, windows = counted(len(self.model.names), "sensor"), counted(self.session.windows, "window")
        return f"RowWatch({sensors}, {windows} so far, {self.state}; {rate_line(self.session.watch).split(' (')[0]})"

    @property
    def state(self) -> State:
        """Where it stands: "quiet", "suspicious", "changed" or "alarm"."""
        return self.session.watch.state

    @property
    def alarm(self) -> Alarm | None:
        """The alarm as it is now, sizes in units of the readings; None if there is none."""
        return self.session.watch.in_units(self.session.watch.alarm)

    def update(self, row: Any, time: Any = None) -> list[Event]:
        """Take a row: a mapping or a series by name, or the readings of all sensors in the order of the model.

        Sensors that are not in it, and NaN, are missing, all of them if few are read and none came, {}; further columns
        are ignored. time: of the row, as a datetime, a datetime64 (UTC if the history has a time zone) or a text; the
        number of the row where rows have no times, by default the next one. The events are those of the windows that
        this row completes.
        """
        refuse_table(row, "update takes one row")
        moment = self._time(time)
        values = self._values(row)
        self.n_rows += 1
        rows = Rows(np.array([moment]), self._intake.columns, values[None, :])
        released = self._intake.add(rows, latest_believed(self.model.clock))
        events = self._take(released) or (self._lost(moment) if released.late else [])
        whole = not self._intake.held and len(self._intake.waiting.times) >= self.model.usual_rows
        if self.session.watch.plan is not None and whole:  # what to ask next depends on this window
            events += self._take(self._intake.finish())
        return events

    def ask(self) -> list[str]:
        """The sensors to read in the rows of the next window, those first that say most; all without `readings`.

        It is the same list until the window is complete. More or fewer may be given to `update`.
        """
        return self.session.watch.ask()

    def finish(self) -> list[Event]:
        """The events of the windows that no later row has completed: the data have ended."""
        return self._take(self._intake.finish())

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file from which `eccaht.load_watch` goes on exactly where this watch is; it holds the model too."""
        state = {"model": self.model.stored(), "session": self.session.stored(), "rows": state_of(self)}
        write_archive(path, _KIND, _VERSION, state)

    def _take(self, released: ReleasedWindows) -> list[Event]:
        session, clock, events = self.session, self.model.clock, list[Event]()
        for sample in released.samples:
            events += session.take(sample, clock) + session.hear(clock)
        session.settle()  # who called has them
        return events

    def _lost(self, time: np.datetime64) -> list[Event]:
        """The event where so many rows come too late that no window is completed."""
        hearing = self.session.hearing
        if not hearing.listen(self._intake.unreported):
            return []
        events = self.session.report(*hearing.news, time, self.model.clock)
        self.session.settle()
        return events

    def _time(self, time: Any) -> np.datetime64:
        clock = self.model.clock
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

    def _values(self, row: Any) -> Array:
        """The readings of the columns of the intake, in raw units, NaN where there is none."""
        names, values = self.model.names, named_values(row)
        if values is None:
            given = list(row)
            if len(given) != len(names):
                raise ValueError(f"a row has {len(names)} readings, one for each sensor, not {len(given)}")
            values = dict(zip(names, given, strict=True))
        if not any(name in values for name in names) and (values or self.session.watch.plan is None):
            raise ValueError(f"the row has none of the model's sensors, which are {', '.join(names[:5])}, ...")
        levels, read = self.model.reading["levels"], []
        for name in self._intake.columns:
            try:
                value = values.get(name)
                read.append(level_of(value, levels[name]) if name in levels else number_of(value))
            except ValueError as error:
                raise ValueError(f"{name}: {error}: give NaN if it is missing") from None
        return np.array(read)


def begin_watch(
    model: Model,
    false_alarms: str | None,
    readings: float | None = None,
    *,
    costs: Mapping[str, float] | None = None,
    at_least_every: Mapping[str, str] | None = None,
    progress: bool = True,
) -> RowWatch:
    """What `Model.watch` returns, where the options are described."""
    refuse_table(false_alarms, "watch takes a rate of false alarms such as '1/30d'")
    every = false_alarm_every(false_alarms, model, "false_alarms")
    plan = begin_plan(model, readings, costs, at_least_every, progress=progress)
    return RowWatch(Session(PlantWatch(model, false_alarm_every=every, plan=plan)))


def begin_plan(
    model: Model,
    readings: float | None,
    costs: Mapping[str, float] | None = None,
    at_least_every: Mapping[str, str] | None = None,
    *,
    progress: bool = True,
) -> ReadingPlan | None:
    """What may be read and what of it is an alarm, counted on the history of the model; None: everything is read."""
    if readings is None:
        if costs or at_least_every:
            raise ValueError("costs and at_least_every are for a watch with few readings: give readings")
        return None
    windows = 0 if model.history is None else len(model.history)
    with shown_progress("replaying the history", windows, shown=progress) as bar:
        return planned(model, budget_of(model, readings, costs, at_least_every), bar.advance)


def load_watch(path: str | PathLike[str]) -> RowWatch:
    """Read a watch that was saved, its model included; safe for untrusted files."""
    return read_archive(path, _KIND, _VERSION, _build)


def _build(state: dict[str, Any]) -> RowWatch:
    check_keys(state, {"model", "session", "rows"}, "header")
    watch = RowWatch(Session.build(state["session"], model=Model.build(state["model"]), digest=""))
    restore(watch, state["rows"], {"columns": len(watch._intake.columns)})
    return watch


def refuse_table(given: Any, taken: str) -> None:
    """Refuse a frame or an array of rows; taken: what is taken instead."""
    if len(getattr(given, "shape", ())) == 2:
        raise ValueError(
            f"{taken}, not a whole table: rows go one by one to update, as in "
            "'for time, row in frame.iterrows(): watch.update(row, time)'"
        )
