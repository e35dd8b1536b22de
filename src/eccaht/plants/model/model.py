"""A calibrated history as one object and one file: it identifies, watches, drills and is brought up to date.

What it is asked is answered by packages above this one, which are loaded when they are asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import Clock, as_zone, check_limits, parse_duration
from eccaht.base.codec import settle
from eccaht.base.files import archive_bytes, parse_archive, read_archive, write_archive
from eccaht.base.lazy import no_attribute
from eccaht.base.presentation.text import did_you_mean, shown_progress
from eccaht.plants.data.cleaning import ColumnReport
from eccaht.plants.data.lines import Faults
from eccaht.plants.data.reading import TimeRule
from eccaht.plants.data.recorded import Expected, Limits, Missing, Recorded, recorded_of
from eccaht.plants.data.windows import Away, Cut, Table, Windows, decimals, decimals_by_name
from eccaht.plants.model.estimators import check_estimator
from eccaht.plants.model.model_file import (
    MODEL,
    check_times,
    checked_model,
    stored_model,
)
from eccaht.plants.model.residuals import Normal

if TYPE_CHECKING:
    from eccaht.plants.answer import Answer
    from eccaht.plants.front.drills import Drills
    from eccaht.plants.front.reading_drills import ReadingDrills
    from eccaht.plants.front.rows import RowWatch
    from eccaht.plants.retrain import Update
    from eccaht.streams import Covariance, Problem, Shift

_KIND, _VERSION = "model", 7
IMPOSSIBLE = 1e8  # robust units from the centre: beyond, a value is no reading
_ROUNDING = 1e-9  # of the value of a constant: files round
_HINTS = {
    **dict.fromkeys(("fit", "train", "partial_fit"), "eccaht.calibrate(history) makes a model, update(new) renews one"),
    **dict.fromkeys(("detect", "diagnose", "anomalies", "find", "run"), "write identify(data)"),
    **dict.fromkeys(("transform", "residuals", "expected", "predict_proba"), "write predict(data)"),
    **dict.fromkeys(
        ("score", "score_samples", "decision_function"), "predict(data) has deviations, and see eccaht.Detector"
    ),
    **dict.fromkeys(("load", "open"), "write eccaht.load_model(path)"),
    **dict.fromkeys(("sensors", "features", "feature_names"), "write names"),
    **dict.fromkeys(("plot", "summary", "evaluate"), "write drill().plot(), or identify(data).plot()"),
}


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A model of normal operation: how to scale new readings, and their mean and covariance.

    `eccaht.calibrate` makes it of a history, and `eccaht.load_model` reads it from a file. Data are paths of CSV or
    Parquet files, one or several, a frame of pandas or polars, or an array, whose columns are those of the history
    unless `names` are given.

    names: the K sensors. center, scale: readings are scaled as (reading - center) / scale.
    seconds: length of a window. mean, covariance: of the scaled windows.
    estimator, ridge, n_windows, first, last: how and from what they were estimated.
    columns: what was decided about each column of the history. reading: how to read new data the same way.
    gaps: the longest share of the rows in which each sensor delivered nothing, (K,). usual_rows: of a window.
    normal: what normal windows do, and how rare what is not normal is.
    history: the windows of the history in robust units, (T, K), or evenly spaced stretches of a long one, with a row of
    NaN where windows are missing: on which a watch with few readings counts its thresholds.
    drilled: what was counted on faults injected into the history, as values of JSON; what counted it knows the meaning.
    """

    names: tuple[str, ...]
    center: Array
    scale: Array
    seconds: float
    mean: Array
    covariance: Covariance
    estimator: str
    ridge: float
    n_windows: int
    first: np.datetime64
    last: np.datetime64
    columns: tuple[ColumnReport, ...]
    reading: dict[str, Any]
    gaps: Array
    usual_rows: float
    normal: Normal | None = None
    drilled: dict[str, Any] | None = None
    history: Array | None = None

    FIELDS = MODEL

    def __post_init__(self) -> None:
        settle(self)
        size = len(self.names)
        if not size or len(set(self.names)) != size:
            raise ValueError("the names of the sensors must be distinct")
        if callable(self.covariance):  # a file's, which has been checked: made where it is asked for
            self.__dict__["_covariance"] = self.__dict__.pop("covariance")
        elif getattr(self.covariance, "size", None) != size:
            raise ValueError(f"the covariance does not fit {size} sensors")
        parse_duration(self.seconds, "the length of a window")
        check_estimator(self.estimator)
        check_times(self.first, self.last, (self.n_windows - 1) * self.seconds)
        kept = [column.name for column in self.columns if column.kept]
        if kept != list(self.names):
            raise ValueError("the report of the columns does not agree with the sensors")
        if self.history is not None and (np.isnan(self.history).any(axis=1) != np.isnan(self.history[:, 0])).any():
            raise ValueError("its history is damaged: a window lacks some sensors")
        if self.normal is not None and self.normal.size != size:
            raise ValueError(f"its normal operation does not fit {size} sensors")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The covariance of a model file: alarms and names need none, so that few ask for it."""
            if name != "covariance" or "_covariance" not in vars(self):
                raise no_attribute(self, "a model", name, _HINTS)
            self.__dict__[name] = self.__dict__.pop("_covariance")()
            return self.__dict__[name]

    def __repr__(self) -> str:
        history = f"{self.n_windows} windows of {self.clock.length(self.seconds)} from {self.clock.show(self.first)}"
        return f"Model({len(self.names)} sensors, {history}, {self.estimator})"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of how the history was read."""
        return tuple(self.reading["notes"])

    def identify(
        self,
        data: Any,
        *,
        start: Any = None,
        stop: Any = None,
        anomalies: int | tuple[int, int] | None = None,
        least: float | None = None,
        alpha: float = 0.05,
        false_alarms: str | None = None,
        missing: Missing = "refuse",
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
        robust units. alpha: error level; 0.05 asks for a confidence of 95 %. false_alarms: as for `watch`. missing:
        "allow" data that lack sensors of the model. timezone, decimal_comma, header: how the data are written, if not
        as the history or not to be seen in them. names, times: of the columns and rows of an array. progress: shown on
        a terminal.
        """
        from eccaht.plants.front.identify import identify

        return identify(
            self,
            data,
            start=start,
            stop=stop,
            anomalies=anomalies,
            least=least,
            alpha=alpha,
            false_alarms=false_alarms,
            missing=missing,
            notation=Notation(timezone, decimal_comma, header),
            names=names,
            times=times,
            progress=progress,
        )

    def predict(
        self,
        data: Any,
        *,
        wrong: Sequence[str] | str = (),
        start: Any = None,
        stop: Any = None,
        missing: Missing = "refuse",
        timezone: str | None = None,
        decimal_comma: bool | None = None,
        header: bool | None = None,
        names: Sequence[str] | None = None,
        times: ArrayLike | None = None,
    ) -> Any:
        """What each sensor should read, given the others in the same window, as a frame: one row a window and sensor.

        Its columns are time (the start of the window; `row` where rows have no times), sensor, read (the mean of the
        window), expected, low and high (its 95 % band), residual (read less expected, in units of the readings) and
        deviations (the same in standard deviations). It is of pandas if that is installed, else of polars;
        `.pivot(index="time", columns="sensor", values="residual")` makes it wide.

        wrong: sensors that predict no other, such as `answer.named`: what they read would mislead the predictions of
        sound ones. missing: "allow" data that lack sensors, which are predicted all the same. The other options are
        those of `identify`.
        """
        from eccaht.plants.front.identify import data_of
        from eccaht.plants.front.predict import predict

        given, notation = data_of(self, data, names, times), Notation(timezone, decimal_comma, header)
        windows = self.prepare(given, start=start, stop=stop, missing=missing, bad="skip", notation=notation)
        return predict(self, windows, wrong)

    def watch(
        self,
        false_alarms: str | None = None,
        *,
        readings: float | None = None,
        costs: Mapping[str, float] | None = None,
        at_least_every: Mapping[str, str] | None = None,
        progress: bool = True,
    ) -> RowWatch:
        """Watch the plant row by row, from now on.

        false_alarms: how many are bearable in the long run: "1/30d" is one a month, "1/5000w" one in 5,000 windows;
        what the history can carry if not given. readings: read only so many sensors in a window, those that `.ask()`
        names; everything if not given. costs: of sensors whose reading costs more than 1, by name; `readings` is the
        budget of a window then. at_least_every: a time such as "1h" within which a sensor must be read, by name.
        """
        from eccaht.plants.front.rows import begin_watch

        return begin_watch(self, false_alarms, readings, costs=costs, at_least_every=at_least_every, progress=progress)

    @overload
    def drill(self, data: Any = None, *, readings: None = None, **options: Any) -> Drills: ...

    @overload
    def drill(self, data: Any = None, *, readings: Sequence[float | None], **options: Any) -> ReadingDrills: ...

    def drill(  # type: ignore[misc]  # which takes just these options
        self,
        data: Any = None,
        *,
        readings: Sequence[float | None] | None = None,
        runs: int | None = None,
        seed: int | None = None,
        alpha: float | None = None,
        false_alarms: str | None = None,
        names: Sequence[str] | None = None,
        times: ArrayLike | None = None,
        progress: bool = True,
    ) -> Drills | ReadingDrills:
        """How well faults would be found in this plant.

        Without data: what `calibrate` found on the history. data: quiet data that the model has not seen, into which
        `runs` faults are injected, 1000 if not given, drawn from the seed. alpha: 1 less the confidence of a confident
        answer. false_alarms: as for `watch`. The other options are those of `identify`.

        readings: how well they would be found with so many readings in a window, None: all of them; 200 faults, if
        `runs` are not given, in windows of the history or in the data.
        """
        from eccaht.plants.front.drills import drill
        from eccaht.plants.front.reading_drills import drill_readings

        asked = {"runs": runs, "seed": seed, "alpha": alpha, "false_alarms": false_alarms}
        if readings is not None:
            return drill_readings(self, data, readings, asked, names=names, times=times, progress=progress)
        return drill(self, data, asked, names=names, times=times, progress=progress)

    def update(
        self,
        new: Any,
        *,
        history: Any = None,
        learn: Sequence[tuple[Any, Any]] = (),
        drills: int = 1000,
        progress: bool = True,
    ) -> Update:
        """The model brought up to date with new data of normal operation, beside this one: `calibrate --update`.

        new: incidents that this model finds there are left out. history: what this model was calibrated on, whose
        oldest rows are dropped; without it the new one knows the new data alone.
        learn: stretches of the new data, as (start, stop), that are normal from now on though they are an alarm.
        drills: faults injected to compare both, 0: none. `.model` of the result is the new one, `.better` says which.
        """
        from eccaht.plants.front.identify import data_of
        from eccaht.plants.retrain import update_model

        given, before = (None if data is None else data_of(self, data, None, None) for data in (new, history))
        with shown_progress("reading the data", shown=progress) as bar:
            return update_model(
                self,
                given,
                history=before,
                learn=learn,
                drills=drills,
                stage=lambda what, total: bar.total(total, what),
                progress=bar.advance,
            )

    def problem(
        self,
        *,
        shift: Shift,
        n_anomalies: int | tuple[int, int],
        budget: float,
        names: Sequence[str] | None = None,
        readout_noise: float = 0.0,
    ) -> Problem:
        """Pose the search among all sensors, or among `names` only, in that order; the other options are `Problem`'s.

        Mean and covariance are those of `Problem.from_samples` of the windows of the history, the model's own where it
        has too few to keep.

        shift: in robust units, that is in units of the scaled windows, one value or one per sensor of the problem.

        >>> import eccaht
        >>> rows = np.random.default_rng(0).standard_normal((200, 3)) + [[1.0], [0.0]] * 100
        >>> model = eccaht.calibrate(rows, names=["a", "b", "c"], drills=0, progress=False)
        >>> problem = model.problem(shift=2.0, n_anomalies=1, budget=4.0)
        >>> policy, world = eccaht.make_policy("joint", problem), eccaht.Simulator(problem, anomalies=[1])
        >>> eccaht.search(policy, world.measure, max_measurements=200).names
        ('b',)
        """
        from eccaht.streams import Problem

        chosen = self.places(self.names if names is None else names)
        options: dict[str, Any] = {"names": [self.names[k] for k in chosen], "readout_noise": readout_noise}
        options |= {"shift": shift, "n_anomalies": n_anomalies, "budget": budget}
        if self.history is not None:
            return Problem.from_samples(self.quiet[0][:, chosen], **options)
        options |= {"mean": self.mean[chosen], "estimated_from": self.n_windows, "calibrated": True}
        return Problem(_restricted(self.covariance, chosen), **options)

    def places(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Where these sensors are among the model's; an unknown name is refused with the nearest known one."""
        known = {name: k for k, name in enumerate(self.names)}
        for name in names:
            if name not in known:
                raise ValueError(f"the model has no sensor {name!r}{did_you_mean(name, self.names)}")
        return np.array([known[name] for name in names], dtype=np.intp)

    def of(self, names: Sequence[str]) -> Model:
        """The model of some of its sensors, in their order here, as if the others had been excluded.

        It has no drills unless it has all sensors: they were counted with all of them.
        """
        kept = set(names)
        chosen = self.places([name for name in self.names if name in kept])
        return replace(
            self,
            names=tuple(self.names[k] for k in chosen),
            center=self.center[chosen],
            scale=self.scale[chosen],
            mean=self.mean[chosen],
            covariance=_restricted(self.covariance, chosen),
            columns=tuple(
                column if column.name in kept or not column.kept else ColumnReport(column.name, False, "excluded")
                for column in self.columns
            ),
            gaps=self.gaps[chosen],
            normal=None if self.normal is None else self.normal.of(chosen),
            history=None if self.history is None else self.history[:, chosen],
            drilled=self.drilled if len(chosen) == len(self.names) else None,
        )

    def prepare(
        self,
        data: Any,
        *,
        start: Any = None,
        stop: Any = None,
        missing: Missing = "refuse",
        bad: Literal["refuse", "skip"] = "refuse",
        notation: Notation | None = None,
    ) -> Windows:
        """Read new data, scale it and cut it into windows exactly as the history was.

        data: paths of files, a frame, an array or a source, as `eccaht.plants.data.read_table` takes them.
        Columns are matched by name: their order is free, further columns are ignored, absent ones are refused by name
        unless missing="allow". Gaps are not interpolated over: a sensor without any
        reading in a window is NaN there. So is one whose value is no number if bad="skip", which also leaves out lines
        that are no rows and says so in the notes of the windows. notation: how the data are written, if not as usual.
        """
        return _prepared(self, data, (start, stop), missing, bad, notation or Notation())

    def rounded(self, readings: Array, k: int | None = None) -> Array:
        """Readings of all sensors, (N, K), or of the k-th, (N,), with no more decimals than the history had.

        What is finer cannot be judged by it.
        """
        if k is not None:
            places = self.reading.get("decimals", {}).get(self.names[k])
            return readings if places is None else np.round(readings, places)
        readings = np.array(readings)
        for places, columns in self._by_decimals.items():
            readings[:, columns] = np.round(readings[:, columns], places)
        return readings

    def scaled(self, readings: Array, sensors: Any = slice(None)) -> Array:
        """Readings of these sensors, (..., n), in robust units; NaN stays."""
        return np.asarray((readings - self.center[sensors]) / self.scale[sensors])

    def raw(self, values: Array, sensors: Any = slice(None)) -> Array:
        """Values in robust units, (..., n), as these sensors would read them."""
        return np.asarray(self.center[sensors] + self.scale[sensors] * values)

    @cached_property
    def _by_decimals(self) -> dict[int, list[int]]:
        """The sensors of each number of decimals."""
        found: dict[int, list[int]] = {}
        for k, name in enumerate(self.names):
            if (places := self.reading.get("decimals", {}).get(name)) is not None:
                found.setdefault(places, []).append(k)
        return found

    @property
    def constants(self) -> dict[str, float]:
        """The columns of numbers that never changed in the history, and their value."""
        return {column.name: column.constant for column in self.columns if column.constant is not None}

    @property
    def timed_seconds(self) -> float | None:
        """The length of a window, None where rows have no times."""
        return None if self.clock.counted else self.seconds

    @property
    def usual_rate(self) -> float:
        """Windows to a false alarm that the history can carry: three times its length, at most 30 days."""
        most = np.inf if self.timed_seconds is None else 30 * 86_400.0 / self.timed_seconds
        return float(max(min(3.0 * self.n_windows, most), 1.0))

    @property
    def left_out(self) -> dict[str, tuple[float, float]]:
        """The columns of numbers that are no sensors, and the ends of their readings in the history."""
        changing = {each.name: (each.low, each.high) for each in self.columns if each.low is not None}
        ends = {name: (value, value) for name, value in self.constants.items()} | changing
        return {name: (low, high) for name, (low, high) in ends.items() if high is not None}

    @property
    def quiet(self) -> tuple[Array, NDArray[np.intp]]:
        """The windows of the history that are kept, and how many are missing before each: none, or as good as all."""
        assert self.history is not None
        there = ~np.isnan(self.history[:, 0])
        missing = np.where(np.concatenate([[True], there[:-1]]), 0, 1 << 20)
        return np.ascontiguousarray(self.history[there]), missing[there]

    @property
    def longest_gaps(self) -> Array:
        """For how many windows each sensor was silent in the history, at most, (K,)."""
        return self.gaps * self.n_windows

    @property
    def clock(self) -> Clock:
        """What the times of the history mean."""
        reading = self.reading
        formats = tuple(reading.get("time_format", ()))
        return Clock(reading.get("timezone"), reading.get("row_interval"), bool(reading.get("counted")), formats)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model; an existing file is replaced only once the new one is complete."""
        write_archive(path, _KIND, _VERSION, self.stored())

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes."""
        return archive_bytes(_KIND, _VERSION, self.stored())

    def stored(self) -> dict[str, Any]:
        """All of it, of which `build` makes it again."""
        return stored_model(self)

    @staticmethod
    def build(state: Any) -> Model:
        """From what an untrusted file says."""
        return Model(**checked_model(state))


def load_model(path: str | PathLike[str]) -> Model:
    """Read a model file; any fault of it is a ValueError of one line."""
    return read_archive(path, _KIND, _VERSION, Model.build)


def parse_model(content: bytes, name: str) -> Model:
    """The same from the content of a model file; name: what messages call it."""
    return parse_archive(content, _KIND, _VERSION, Model.build, name=name)


def _restricted(covariance: Covariance, chosen: NDArray[np.intp]) -> Covariance:
    from eccaht.streams import Dense

    return Dense(covariance.dense()[np.ix_(chosen, chosen)])


@dataclass(frozen=True)
class Notation:
    """How new data are written; None: found automatically, or as in the history."""

    timezone: str | None = None
    decimal_comma: bool | None = None
    header: bool | None = None

    def expected(self, model: Model) -> Expected:
        reading = model.reading
        return Expected(
            names=model.names,
            levels={name: levels for name, levels in reading["levels"].items() if name in model.names},
            times=TimeRule(
                tuple(reading["time_columns"]),
                tuple(reading["time_format"]),
                reading["row_interval"],
                bool(reading.get("counted")),
            ),
            zone=model.clock.zone if self.timezone is None else as_zone(self.timezone),
            header=bool(reading.get("header", True)) if self.header is None else self.header,
            decimal_comma=self.decimal_comma,
        )

    def recorded(self, model: Model, data: Any, *, strict: bool = False) -> Recorded:
        expected = self.expected(model)
        return recorded_of(data, decimal_comma=expected.decimal_comma, header=expected.header, strict=strict)


def _prepared(model: Model, data: Any, limits: Limits, missing: Missing, bad: str, notation: Notation) -> Windows:
    for option, given, known in (("missing", missing, ("refuse", "allow")), ("bad", bad, ("refuse", "skip"))):
        if given not in known:
            raise ValueError(f"{option} must be {known[0]!r} or {known[1]!r}, not {given!r}")
    check_limits(*limits)
    expected, faults = notation.expected(model), Faults() if bad == "skip" else None
    source = notation.recorded(model, data, strict=bad == "refuse")
    left_out = model.left_out
    table = source.read_as(expected, missing=missing, limits=limits, faults=faults, beside=list(left_out))
    cut = Cut.of(table.times, model.seconds, table.clock)
    shape = (len(cut.starts), len(model.names))
    values, rows, flat = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape, dtype=bool)
    sensors = [name for name in table.names if name not in left_out]
    numbers = set(table.names) - table.texts
    for name in sensors:
        k = model.names.index(name)
        column = table.coded(name, expected.levels.get(name))
        column = _scaled(model, table, name, column, faults)
        values[:, k], rows[:, k], flat[:, k] = cut.means_of_present(column), cut.present(column), cut.flat(column)
    return Windows(
        cut.starts,
        values,
        model.names,
        model.seconds,
        rows,
        flat,
        model=model,
        clock=table.clock,
        notes=(*table.notes, *(faults.notes() if faults else ())),
        interval=table.interval or None,  # of a single row it is not known
        decimals=_decimals(table, sensors),
        away={name: _away(table, name, *ends) for name, ends in left_out.items() if name in numbers},
    )


def _scaled(model: Model, table: Table, name: str, readings: Array, faults: Faults | None) -> Array:
    """The readings of a sensor, (N,), in robust units.

    faults: counts impossible values, which then become NaN; without it they raise.
    """
    k = model.names.index(name)
    scaled = model.scaled(model.rounded(readings, k), k)
    far = np.flatnonzero(np.abs(scaled) > IMPOSSIBLE)
    if far.size:
        text, when, why = impossible(readings[far[0]], table.times[far[0]], table.clock)
        if faults is None:
            raise ValueError(
                f"column {name!r} of {table.label} holds {text} at {when}, {why}: mend it, or leave the field empty"
            )
        faults.bad_values(name, far.size, f"the row of {when}", text, why)
        scaled[far] = np.nan
    return scaled


def impossible(reading: float, time: np.datetime64, clock: Clock) -> tuple[str, str, str]:
    """An impossible value, its time, and what is wrong with it, in words."""
    return f"{reading:g}", clock.show(time), f"more than {IMPOSSIBLE:g} times its usual spread away"


def has_moved(readings: Array, low: float | Array, high: float | Array) -> NDArray[np.bool_]:
    """Whether readings lie beyond their range in the history by as much as the range, 0 for constants; NaN does not."""
    width = np.subtract(high, low)
    below, above = low - width - _ROUNDING * np.abs(low), high + width + _ROUNDING * np.abs(high)
    return np.asarray((readings < below) | (readings > above))


def _decimals(table: Table, sensors: Sequence[str]) -> dict[str, int | None]:
    """The decimals of the readings of each sensor that has numbers.

    A column with few distinct readings proves little by itself: it is taken to be written at least as finely as the
    finest of the others.
    """
    numbers = {name: table.numbers(name) for name in sensors if name not in table.texts}
    found = decimals_by_name(numbers)
    if not found:
        return {}
    finest = _finest(found.values())
    few = {name: _finest([decimals(column), finest]) for name, column in numbers.items() if name not in found}
    return {name: few[name] if name in few else found[name] for name in numbers}


def _finest(places: Collection[int | None]) -> int | None:
    """The most decimals; None, of readings that are as good as exact, is more than any number."""
    return None if None in places else max(each for each in places if each is not None)


def _away(table: Table, name: str, low: float, high: float) -> Away:
    readings = table.numbers(name)
    away = has_moved(readings, low, high)
    return Away(low, high, table.times[away], readings[away])
