"""The model that users hold: it identifies, watches and drills."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import as_count, as_positive, check_alpha
from eccaht.base.clock import Clock, between, check_limits
from eccaht.base.presentation.text import hinting, shown_progress
from eccaht.plants.data.recorded import Recorded
from eccaht.plants.data.source import Arrays
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.advice import Again
from eccaht.plants.incident.answer import Answer
from eccaht.plants.incident.counts import kept
from eccaht.plants.incident.drill import ALPHA, RUNS, drill_history, drill_trials, keeping
from eccaht.plants.incident.investigate import Number, investigate_incident
from eccaht.plants.incident.trials import FEWEST_WINDOWS
from eccaht.plants.model import model as models
from eccaht.plants.model.calibration import calibrate_with_windows
from eccaht.plants.model.model import Model, Notation
from eccaht.plants.watch.session import false_alarm_every

if TYPE_CHECKING:
    from eccaht.plants.front.drills import Drills
    from eccaht.plants.front.rows import RowWatch
    from eccaht.plants.retrain import Update


_LOG = logging.getLogger("eccaht")
_READ = 0.4  # share of the time that reading takes, about
# keywords by the options of the shell and the words of other libraries
_MEANT = {"data": "new", "end": "stop", "no_drill": "drills=0", "out": "save(path) of the result"}
# of a search alone: the document of whole windows has them too, so that both have the same keys
_OF_SEARCHES = ("policy", "budget", "per_window", "vectors", "readout_noise", "stopping", "outliers", "seed")


class PlantModel(Model):
    """A model of normal operation, as `eccaht.calibrate` makes it and `eccaht.load_model` reads it.

    `eccaht.Model`. Data are paths of CSV or Parquet files, one or several, a frame of pandas or polars, or an array,
    whose columns are those of the history unless `names` are given.
    """

    @staticmethod
    def of_model(model: Model) -> PlantModel:
        """The same model with what users call."""
        made = object.__new__(PlantModel)
        made.__dict__.update(vars(model))  # checked when it was made, and a covariance that nothing has asked for waits
        return made

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of how the history was read."""
        return tuple(self.reading["notes"])

    @hinting(_MEANT)
    def identify(
        self,
        data: Any,
        *,
        start: Any = None,
        stop: Any = None,
        anomalies: Number = None,
        least: float | None = None,
        alpha: float = 0.05,
        missing: Literal["refuse", "allow"] = "refuse",
        timezone: str | None = None,
        decimal_comma: bool | None = None,
        header: bool | None = None,
        names: Sequence[str] | None = None,
        times: ArrayLike | None = None,
        progress: bool = True,
    ) -> Answer:
        """Which sensors are wrong in these data, since when, how, and why: what `eccaht identify` answers.

        start, stop: look at this stretch; rows before `start` show what was normal just before. anomalies: how many
        sensors are wrong, or (least, most) of them, if that is known. least: the smallest deviation that matters, in
        robust units. alpha: error level; 0.05 asks for a confidence of 95 %. missing: "allow" data that lack sensors
        of the model. timezone, decimal_comma, header: how the data are written, if not as the history or not to be
        seen in them. names, times: of the columns and rows of an array. progress: shown on a terminal.
        """
        options: dict[str, Any] = {"alpha": check_alpha(alpha)}
        options |= {} if least is None else {"least": as_positive(least, "least")}
        options |= {} if anomalies is None else {"number": anomalies}
        notation = Notation(timezone, decimal_comma, header)
        given = self._source(data, names, times)
        with shown_progress("reading the data", 1.0, shown=progress) as bar:
            windows, first, source = _read(self, given, start, stop, missing, notation)
            sensors = len(windows.names)
            _check_number(anomalies, sensors)
            bar.stage(f"looking for incidents of {sensors} sensors", _READ)
            answer = investigate_incident(self, windows, start=first, moved=windows.moved(start), **options)
        limits = {name: None if time is None else str(time) for name, time in (("start", start), ("stop", stop))}
        settings: dict[str, Any] = {**limits, "missing": missing, **dict.fromkeys(_OF_SEARCHES)}
        number = list(anomalies) if isinstance(anomalies, tuple) else anomalies
        settings |= {"anomalies": number, "least": least, "alpha": alpha, "sensors": sensors}
        about = [*_files(data), f"Windows of {windows.clock.length(windows.seconds)}"]
        notes = tuple(dict.fromkeys([*windows.notes, *answer.notes]))
        asked = {
            "stop": limits["stop"],
            "anomalies": anomalies,
            "least": least,
            "alpha": None if alpha == ALPHA else alpha,
        }
        again = _again(self, data, source, windows.clock, notation, asked)
        return replace(
            answer,
            incidents=tuple(each.by(windows.clock) for each in answer.incidents),
            looked_at=answer.looked_at.by(windows.clock),
            clock=windows.clock,
            settings=settings,
            about=tuple(about),
            notes=notes,
            again=again,
        )

    def watch(self, false_alarms: str | None = None) -> RowWatch:
        """Watch the plant row by row, from now on.

        false_alarms: how many are bearable in the long run: "1/30d" is one a month, "1/5000w" one in 5,000 windows;
        what the history can carry if not given.
        """
        from eccaht.plants.front.rows import RowWatch, refuse_table

        refuse_table(false_alarms, "watch takes a rate of false alarms such as '1/30d'")
        return RowWatch.begin(self, false_alarm_every(false_alarms, self, "false_alarms"))

    def drill(
        self,
        data: Any = None,
        *,
        runs: int | None = None,
        seed: int | None = None,
        alpha: float | None = None,
        false_alarms: str | None = None,
        names: Sequence[str] | None = None,
        times: ArrayLike | None = None,
        progress: bool = True,
    ) -> Drills:
        """How well faults would be found in this plant.

        Without data: what `calibrate` found on the history. data: quiet data that the model has not seen, into which
        `runs` faults are injected, 1000 if not given, drawn from the seed. alpha: 1 less the confidence of a confident
        answer. false_alarms: as for `watch`. The other options are those of `identify`.
        """
        from eccaht.plants.front.drills import Drills, not_quiet, seen_before

        asked = {"runs": runs, "seed": seed, "alpha": alpha, "false_alarms": false_alarms}
        options = {name: value for name, value in asked.items() if value is not None}
        if data is None:
            if options:
                raise ValueError(f"{next(iter(options))} needs new drills: give quiet data that the model has not seen")
            if (found := kept(self)) is None:
                raise ValueError(
                    "the model has no drills: give quiet data, or calibrate with drills on at least 100 windows"
                )
            return Drills(self, found)
        settings: dict[str, Any] = {"runs": RUNS, "seed": 0, "alpha": ALPHA} | options
        settings.pop("false_alarms", None)
        settings["every"] = false_alarm_every(false_alarms, self, "false_alarms")
        with shown_progress("reading the data", shown=progress) as bar:
            windows = self.prepare(self._source(data, names, times), bad="skip")
            bar.total(settings["runs"], "drills")
            result, trials = drill_trials(self, windows, **settings, unseen=True, progress=bar.advance)
        notes = (*windows.notes, *seen_before(self, windows), *not_quiet(result.counts))
        return Drills(self, result, settings=settings, windows=windows, trials=tuple(trials), notes=notes)

    @hinting(_MEANT)
    def update(self, new: Any, *, history: Any = None, drills: int = RUNS, progress: bool = True) -> Update:
        """The model brought up to date with new data of normal operation, beside this one: `calibrate --update`.

        new: incidents that this model finds there are left out. history: what this model was calibrated on, whose
        oldest rows are dropped; a model holds no rows, so that without it the new one knows the new data alone.
        drills: faults injected to compare both, 0: none. `.model` of the result is the new one, `.better` says which.
        """
        from eccaht.plants.retrain import update_model

        with shown_progress("reading the data", shown=progress) as bar:
            update = update_model(
                self,
                self._source(new, None, None),
                history=None if history is None else self._source(history, None, None),
                drills=drills,
                stage=lambda what, total: bar.total(total, what),
                progress=bar.advance,
            )
        return replace(update, model=PlantModel.of_model(update.model))

    def with_drills(self, drills: Drills) -> PlantModel:
        """The model that keeps these drills instead of its own."""
        made = keeping(self, drills.drilled)
        assert isinstance(made, PlantModel)
        return made

    def _source(self, data: Any, names: Sequence[str] | None, times: ArrayLike | None) -> Any:
        """The data; an array has the columns of the history, all or those that are sensors."""
        if names is None and getattr(data, "ndim", 0) == 2 and isinstance(data, np.ndarray):
            columns = [column.name for column in self.columns if column.reason != "time"]
            names = {len(columns): columns, len(self.names): list(self.names)}.get(data.shape[1])
            if names is None:
                raise ValueError(
                    f"the array has {data.shape[1]} columns and the model {len(self.names)} sensors: give the names"
                )
        return as_data(data, names, times)


def as_data(data: Any, names: Sequence[str] | None, times: ArrayLike | None) -> Any:
    """Data as they are read; an array with its names and times."""
    if isinstance(data, np.ndarray):
        return Arrays(data, times, names)
    if names is not None or times is not None:
        raise ValueError("names and times are for arrays: files and frames have their own")
    return data


def _read(
    model: Model, data: Any, start: Any, stop: Any, missing: Literal["refuse", "allow"], notation: Notation
) -> tuple[Windows, int | None, Recorded]:
    """Windows of the sensors that the data have, the first one to look at, and where they come from.

    The windows before `start` are read too: they say what was normal just before.
    """
    check_limits(start, stop)
    source = notation.recorded(model, data)
    windows = model.prepare(source, stop=stop, missing=missing, bad="skip", notation=notation)
    notes = list(windows.notes)
    if absent := [name for name in model.names if source.lacks(name)]:
        notes.append(f"not looked at, because the data do not have them: {', '.join(absent)}")
        windows = windows.of([name for name in model.names if name not in absent])
    if unknown := model.unknown_columns(source):
        notes.append(f"ignored, because the model does not know them: {', '.join(unknown)}")
    if (zone := windows.clock.zone) is not None and model.clock.zone is None:
        shown = f"times are shown in {zone}; in Python, onset and end are UTC"
        notes.append(f"the data have a time zone and the history has none: {shown}")
    since, _ = between(windows.clock, start, stop)
    first = 0 if since is None else int(np.searchsorted(windows.starts, since))
    if first >= len(windows.starts):
        raise ValueError(f"the data have no row between {start or 'the beginning'} and {stop or 'the end'}")
    return replace(windows, notes=tuple(notes)), None if since is None else first, source


def _again(model: Model, data: Any, source: Recorded, clock: Clock, notation: Notation, asked: dict[str, Any]) -> Again:
    """How to calibrate on these data as the model was, and to ask the same; asked: options of `identify`."""
    several = [data] if isinstance(data, str | PathLike) else data if isinstance(data, list | tuple) else []
    excluded = [each.name for each in model.columns if each.reason == "excluded" and not source.lacks(each.name)]
    chosen = {"exclude": excluded or None}
    if len(excluded) > len(model.names):
        chosen = {"columns": [name for name in model.names if not source.lacks(name)]}
    written = asdict(notation) | {"timezone": clock.zone}
    if notation.header is None and not model.reading.get("header", True):
        written["header"] = False
    interval = None if clock.row_interval is None or clock.counted else f"{clock.row_interval:.10g}s"
    return Again(
        data=tuple(map(str, several)),
        calibrating=chosen | written | {"row_interval": interval},
        asking=asked,
        updating=asdict(notation),
    )


def _check_number(number: Number, sensors: int) -> None:
    if number is None:
        return
    counts = number if isinstance(number, tuple) else (number, number)
    if len(counts) != 2 or not all(type(count) is int for count in counts) or not 0 <= counts[0] <= counts[1]:
        raise ValueError(
            f"anomalies is a number of sensors such as 2, or the least and the most such as (1, 4), not {number!r:.60}"
        )
    if sensors <= (most := counts[1]):
        raise ValueError(f"a number of {most} anomalies needs more than the {sensors} sensors that are there")


def _length(window: str | float | timedelta | np.timedelta64 | None) -> str | float | None:
    """A length of time as it is read; a timedelta in seconds."""
    if isinstance(window, np.timedelta64):
        return float(window / np.timedelta64(1, "s"))
    return window.total_seconds() if isinstance(window, timedelta) else window


def _files(data: Any) -> list[str]:
    """For people: the names of the files."""
    several = [data] if isinstance(data, str | PathLike) else data if isinstance(data, list | tuple) else []
    return [f"Data: {', '.join(Path(path).name for path in several)}"] if several else []


@hinting(_MEANT)
def calibrate(
    history: Any,
    *,
    columns: Sequence[str] | str | None = None,
    exclude: Sequence[str] | str = (),
    window: str | float | timedelta | np.timedelta64 | None = None,
    drills: int = RUNS,
    names: Sequence[str] | None = None,
    times: ArrayLike | None = None,
    time_column: str | Sequence[str] | None = None,
    row_interval: str | float | None = None,
    timezone: str | None = None,
    decimal_comma: bool | None = None,
    header: bool = True,
    estimator: str = "ledoit-wolf",
    ridge: float | None = None,
    start: Any = None,
    stop: Any = None,
    progress: bool = True,
    note: Callable[[str], object] = _LOG.warning,
) -> PlantModel:
    """A model of normal operation: what `eccaht calibrate` makes of a history.

    history: paths of CSV or Parquet files, one or several, a frame of pandas or polars, or an array.
    columns, exclude: names, in which * and ? stand for any characters; labels, and status columns that the others do
    not predict, are left out unless they are called by name. window: its length, as "30s", a timedelta or a number of
    seconds, or "60rows" where rows have no times; from the time between rows if not given. drills: faults that are
    injected into the history, so that answers have a confidence; 0: none. names, times: of the columns and rows of an
    array.
    time_column, row_interval, timezone, decimal_comma, header: how the history is written, where that is not found
    automatically. estimator, ridge: of the covariance. start, stop: leave out rows before and from then on.
    progress: shown on a terminal. note: is called with what a user should know of drills that could not be run.
    """
    as_count(drills, "drills", least=0)
    with shown_progress("reading", 1.0, shown=progress) as bar:
        fitted, windows = calibrate_with_windows(
            as_data(history, names, times),
            columns=[columns] if isinstance(columns, str) else columns,
            exclude=[exclude] if isinstance(exclude, str) else exclude,
            time_column=time_column,
            row_interval=row_interval,
            timezone=timezone,
            decimal_comma=decimal_comma,
            header=header,
            window=_length(window),
            estimator=estimator,
            ridge=ridge,
            drop_unpredicted=True,
            start=start,
            stop=stop,
            progress=lambda share, stage: bar.stage(stage, share),
        )
        if drills and len(windows.values) < FEWEST_WINDOWS:
            many = f"the history has {len(windows.values)} windows, and drills need {FEWEST_WINDOWS}"
            note(f"not drilled: {many}; 'eccaht identify' cannot say how often its answers are right")
        elif drills:
            bar.total(drills, "drilling")
            fitted = keeping(fitted, drill_history(fitted, windows, runs=drills, progress=bar.advance))
    return PlantModel.of_model(fitted)


def load_model(path: str | PathLike[str]) -> PlantModel:
    """Read a model file; any fault of it is a ValueError of one line."""
    return PlantModel.of_model(models.load_model(path))
