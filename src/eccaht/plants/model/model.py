"""A calibrated history as one object and one file, and new data prepared exactly as that history was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, as_count, as_number
from eccaht.base.clock import Clock, as_zone, check_limits, parse_duration
from eccaht.base.files import archive_bytes, parse_archive, read_archive, write_archive
from eccaht.base.presentation.text import did_you_mean, unknown
from eccaht.plants.data.cleaning import ColumnReport
from eccaht.plants.data.reading import TimeRule
from eccaht.plants.data.recorded import Expected, Faults, Limits, Missing, Recorded, recorded_of
from eccaht.plants.data.windows import Away, Cut, Table, Times, Windows, decimals_by_name, rows_that_count
from eccaht.plants.model.estimators import ESTIMATORS
from eccaht.plants.model.model_file import (
    VECTORS,
    History,
    check_names,
    check_scaling,
    check_summary,
    check_times,
    checked_fields,
    parts_of,
)
from eccaht.plants.model.residuals import Normal, freeze

if TYPE_CHECKING:
    from eccaht.plants.data.growing import GrowingFile
    from eccaht.streams import Covariance, Problem, Shift

_KIND, _VERSION = "model", 4
IMPOSSIBLE = 1e8  # robust units from the centre: beyond, a value is no reading
ROUNDING = 1e-9  # of the value of a constant: files round
# attributes by the words of other libraries
_MEANT = {
    "predict": "identify",
    "sensors": "names",
    "summary": "text",
    "to_html": "html",
    "to_json": "to_dict",
    "why": "text",
}


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A model of normal operation: how to scale new readings, and their mean and covariance.

    names: the K sensors. center, scale: readings are scaled as (reading - center) / scale.
    seconds: length of a window. mean, covariance: of the scaled windows.
    estimator, ridge, n_windows, first, last: how and from what they were estimated.
    columns: what was decided about each column of the history. reading: how to read new data the same way.
    summary: what `diagnose` needs. normal: what normal windows do, and how rare what is not normal is.
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
    summary: History
    normal: Normal | None = None
    drilled: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        check_names(self.names)
        size = len(self.names)
        freeze(self, dict.fromkeys(VECTORS, (size,)))
        if (self.scale <= 0).any():
            raise ValueError(f"the scale of {self.names[int(np.argmin(self.scale))]!r} must be positive")
        if callable(self.covariance):  # a file's, which has been checked: made where it is asked for
            self.__dict__["_covariance"] = self.__dict__.pop("covariance")
        elif getattr(self.covariance, "size", None) != size:
            raise ValueError(f"the covariance does not fit {size} sensors")
        parse_duration(self.seconds, "the length of a window")
        as_count(self.n_windows, "the number of windows", least=1)
        if self.estimator not in ESTIMATORS:
            raise unknown(self.estimator, ESTIMATORS, "estimator")
        if as_number(self.ridge, "ridge") < 0:
            raise ValueError("the ridge must not be negative")
        check_times(self.first, self.last, (self.n_windows - 1) * self.seconds)
        kept = [column.name for column in self.columns if column.kept]
        if kept != list(self.names):
            raise ValueError("the report of the columns does not agree with the sensors")
        if self.normal is not None and self.normal.size != size:
            raise ValueError(f"its normal operation does not fit {size} sensors")
        check_summary(self.summary, self.n_windows, self.mean)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The covariance of a model file: alarms and names need none, so that few ask for it."""
            if name != "covariance" or "_covariance" not in vars(self):
                raise no_attribute(self, name, "a model")
            self.__dict__[name] = self.__dict__.pop("_covariance")()
            return self.__dict__[name]

    def __repr__(self) -> str:
        history = f"{self.n_windows} windows of {self.clock.length(self.seconds)} from {self.clock.show(self.first)}"
        return f"Model({len(self.names)} sensors, {history}, {self.estimator})"

    def problem(
        self,
        *,
        shift: Shift,
        n_anomalies: int | tuple[int, int],
        budget: float,
        names: Sequence[str] | None = None,
        readout_noise: float = 0.0,
    ) -> Problem:
        """Pose the search among all sensors, or among `names` only, in that order.

        shift: in robust units, that is in units of the scaled windows, one value or one per sensor of the problem.
        """
        from eccaht.streams import Problem

        covariance, mean = self.covariance, self.mean
        if names is not None:
            chosen = self.places(names)
            covariance, mean = _restricted(covariance, chosen), mean[chosen]
        return Problem(
            covariance,
            shift=shift,
            n_anomalies=n_anomalies,
            budget=budget,
            mean=mean,
            names=self.names if names is None else list(names),
            readout_noise=readout_noise,
        )

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
            summary=self.summary.of(chosen),
            normal=None if self.normal is None else self.normal.of(chosen),
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

        data: paths of files, a frame, an array or a source, as `eccaht.plants.data.as_source` takes them.
        Columns are matched by name: their order is free, further columns are ignored (`unknown_columns` lists them),
        absent ones are refused by name unless missing="allow". Gaps are not interpolated over: a sensor without any
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

    def unknown_columns(self, data: Any, notation: Notation | None = None) -> tuple[str, ...]:
        """The columns of new data that the history did not have; those that were dropped from it are not listed."""
        source = (notation or Notation()).recorded(self, data)
        return source.unknown([column.name for column in self.columns])

    @property
    def constants(self) -> dict[str, float]:
        """The columns of numbers that never changed in the history, and their value."""
        return {column.name: column.constant for column in self.columns if column.constant is not None}

    @property
    def clock(self) -> Clock:
        """What the times of the history mean."""
        reading = self.reading
        return Clock(reading.get("timezone"), reading.get("row_interval"), bool(reading.get("counted")))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model; an existing file is replaced only once the new one is complete."""
        write_archive(path, _KIND, _VERSION, *self.parts())

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes."""
        return archive_bytes(_KIND, _VERSION, *self.parts())

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All of it as a header and arrays, of which `build` makes it again."""
        return parts_of(self)

    @staticmethod
    def build(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
        """From a header and arrays of an untrusted file."""
        model = Model(**checked_fields(header, arrays))
        check_scaling(model.summary, model.center, model.scale, [how.scaled_by for how in model.columns if how.kept])
        return model


def no_attribute(holder: object, name: str, what: str) -> AttributeError:
    """The error for an attribute that an object does not have, with the one that was probably meant; what: its name."""
    public = [each for each in dir(holder) if not each.startswith("_")]
    meant = _MEANT.get(name, name)
    hint = "" if name.startswith("_") else did_you_mean(meant, public, cutoff=0.6)
    return AttributeError(f"{what} has no {name}{hint}", name=name)  # with the name, Python adds no second hint


def load_model(path: str | PathLike[str]) -> Model:
    """Read a model file; any fault of it is a ValueError of one line."""
    return read_archive(path, _KIND, _VERSION, Model.build, again="calibrate again")


def parse_model(content: bytes, name: str) -> Model:
    """The same from the content of a model file; name: what messages call it."""
    return parse_archive(content, _KIND, _VERSION, Model.build, name=name, again="calibrate again")


def _restricted(covariance: Covariance, chosen: NDArray[np.intp]) -> Covariance:
    from eccaht.streams import Dense, LowRankPlusDiagonal

    if isinstance(covariance, LowRankPlusDiagonal):
        parameters = covariance.parameters()
        return LowRankPlusDiagonal(parameters["factors"][chosen], parameters["diagonal"][chosen], parameters["weights"])
    return Dense(covariance.dense()[np.ix_(chosen, chosen)])


# -- new data --------------------------------------------------------------------------------------------


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
    constants = model.constants
    table = source.read_as(expected, missing=missing, limits=limits, faults=faults, beside=list(constants))
    cut = Cut.of(table.times, model.seconds, table.clock)
    shape = (len(cut.starts), len(model.names))
    values, rows, flat = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape, dtype=bool)
    sensors = [name for name in table.names if name not in constants]
    numbers = set(table.names) - table.texts
    for name in sensors:
        k = model.names.index(name)
        column = table.coded(name, expected.levels.get(name))
        column = scaled_readings(model, table, name, column, table.times, faults)
        values[:, k], rows[:, k], flat[:, k] = cut.means_of_present(column), cut.present(column), cut.flat(column)
    return Windows(
        cut.starts,
        values,
        model.names,
        model.seconds,
        rows_that_count(rows, flat),
        flat,
        model=model,
        clock=table.clock,
        notes=(*table.notes, *(faults.notes() if faults else ())),
        interval=table.interval or None,  # of a single row it is not known
        decimals=_decimals(table, sensors),
        away={name: _away(table, name, usual) for name, usual in constants.items() if name in numbers},
    )


def scaled_readings(
    model: Model, source: Table | GrowingFile, name: str, readings: Array, times: Times, faults: Faults | None
) -> Array:
    """The readings of a sensor, (N,), in robust units.

    faults: counts impossible values, which then become NaN; without it they raise.
    """
    k = model.names.index(name)
    scaled = model.scaled(model.rounded(readings, k), k)
    far = np.flatnonzero(np.abs(scaled) > IMPOSSIBLE)
    if far.size:
        text, when = f"{readings[far[0]]:g}", source.clock.show(times[far[0]])
        why = f"more than {IMPOSSIBLE:g} times its usual spread away"
        if faults is None:
            raise ValueError(
                f"column {name!r} of {source.label} holds {text} at {when}, {why}: mend it, or leave the field empty"
            )
        faults.bad_values(name, far.size, f"the row of {when}", text, why)
        scaled[far] = np.nan
    return scaled


def _decimals(table: Table, sensors: Sequence[str]) -> dict[str, int | None]:
    """The decimals of the readings of each sensor that has numbers.

    A column with few distinct readings proves little by itself: it is taken to be written as finely as the finest.
    """
    numbers = [name for name in sensors if name not in table.texts]
    found = decimals_by_name({name: table.numbers(name) for name in numbers})
    if not found:
        return {}
    finest = None if None in found.values() else max(places for places in found.values() if places is not None)
    return {name: found.get(name, finest) for name in numbers}


def _away(table: Table, name: str, usual: float) -> Away:
    """The rows in which a constant of the history reads another value."""
    readings = table.numbers(name)
    away = np.abs(readings - usual) > ROUNDING * abs(usual)  # never for NaN
    return Away(usual, table.times[away], readings[away])
