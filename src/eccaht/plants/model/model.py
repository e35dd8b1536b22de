"""A calibrated history as one object and one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eccaht.base.archive import archive_bytes, check_keys, parse_archive, read_archive, write_archive
from eccaht.base.arrays import Array, as_count, as_number, frozen
from eccaht.base.clock import Clock
from eccaht.base.durations import parse_duration
from eccaht.base.naming import did_you_mean
from eccaht.plants.data.cleaning import ColumnReport
from eccaht.plants.data.source import Missing
from eccaht.plants.data.windows import Windows
from eccaht.plants.model.counted import Counted
from eccaht.plants.model.estimators import check_estimator
from eccaht.plants.model.history import History
from eccaht.plants.model.normal import Normal
from eccaht.plants.model.plausible import (
    check_names,
    check_scaling,
    check_summary,
    check_times,
    checked_column,
    checked_normal,
    checked_reading,
)
from eccaht.plants.model.prepare import Notation, prepare
from eccaht.streams.covariance import Covariance, Dense, LowRankPlusDiagonal
from eccaht.streams.problem import Problem
from eccaht.streams.shifts import Shift

_KIND, _VERSION = "model", 4
_VECTORS = ("center", "scale", "mean")
_KEYS = {"names", "seconds", "operator", "estimator", "ridge", "n_windows", "first", "last", "columns", "reading"}
_PREFIXES = ("covariance.", "summary.", "normal.")
_OPERATORS: dict[str, type[Covariance]] = {"Dense": Dense, "LowRankPlusDiagonal": LowRankPlusDiagonal}


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A model of normal operation: how to scale new readings, and their mean and covariance.

    names: the K sensors. center, scale: readings are scaled as (reading - center) / scale.
    seconds: length of a window. mean, covariance: of the scaled windows.
    estimator, ridge, n_windows, first, last: how and from what they were estimated.
    columns: what was decided about each column of the history. reading: how to read new data the same way.
    summary: what `diagnose` needs. normal: what normal windows do, and how rare what is not normal is.
    drilled: what was counted on faults injected into the history.
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
    drilled: Counted | None = None

    def __post_init__(self) -> None:
        check_names(self.names)
        size = len(self.names)
        for name in _VECTORS:
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (size,) or not np.isfinite(array).all():
                raise ValueError(f"{name} must hold {size} finite values, one for each sensor")
            object.__setattr__(self, name, frozen(array))
        if (self.scale <= 0).any():
            raise ValueError(f"the scale of {self.names[int(np.argmin(self.scale))]!r} must be positive")
        if not isinstance(self.covariance, Covariance) or self.covariance.size != size:
            raise ValueError(f"the covariance does not fit {size} sensors")
        parse_duration(self.seconds, "the length of a window")
        as_count(self.n_windows, "the number of windows", least=1)
        check_estimator(self.estimator)
        if as_number(self.ridge, "ridge") < 0:
            raise ValueError("the ridge must not be negative")
        check_times(self.first, self.last, (self.n_windows - 1) * self.seconds)
        kept = [column.name for column in self.columns if column.kept]
        if kept != list(self.names):
            raise ValueError("the report of the columns does not agree with the sensors")
        if self.normal is not None and self.normal.size != size:
            raise ValueError(f"its normal operation does not fit {size} sensors")
        self.summary.check(size)
        check_summary(self.summary, self.n_windows, self.mean)

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
        return prepare(self, data, (start, stop), missing=missing, bad=bad, notation=notation)

    def rounded(self, name: str, readings: Array) -> Array:
        """Readings of a sensor with no more decimals than its history had: what is finer cannot be judged by it."""
        decimals = self.reading.get("decimals", {}).get(name)
        return readings if decimals is None else np.round(readings, decimals)

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
        operator = type(self.covariance).__name__
        if operator not in _OPERATORS:
            raise ValueError(f"a covariance of type {operator} cannot be saved: use {' or '.join(_OPERATORS)}")
        header = {
            "names": list(self.names),
            "seconds": self.seconds,
            "operator": operator,
            "estimator": self.estimator,
            "ridge": self.ridge,
            "n_windows": self.n_windows,
            "first": _microseconds(self.first),
            "last": _microseconds(self.last),
            "columns": [asdict(column) for column in self.columns],
            "reading": self.reading,
            "drilled": None if self.drilled is None else self.drilled.header(),
        }
        arrays = {name: getattr(self, name) for name in _VECTORS}
        arrays |= {f"covariance.{key}": value for key, value in self.covariance.parameters().items()}
        arrays |= {f"summary.{key}": value for key, value in self.summary.arrays().items()}
        if self.normal is not None:
            arrays |= {f"normal.{name}": array for name, array in self.normal.arrays().items()}
        return header, arrays

    @staticmethod
    def build(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
        """From a header and arrays of an untrusted file."""

        def part(prefix: str) -> dict[str, Array]:
            return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

        check_keys(header, _KEYS | {"drilled"}, "header")
        operator = _OPERATORS[header["operator"]]
        if not isinstance(header["names"], list):
            raise ValueError("the names of the sensors must be a list")
        if not all(array.dtype == np.float64 for array in arrays.values()):
            raise ValueError("its arrays are damaged")
        if extra := [name for name in arrays if not name.startswith(_PREFIXES) and name not in _VECTORS]:
            raise ValueError(f"it has an unknown array {extra[0]!r:.40}")
        columns = tuple(checked_column(fields) for fields in header["columns"])
        model = Model(
            names=tuple(header["names"]),
            center=arrays["center"],
            scale=arrays["scale"],
            seconds=as_number(header["seconds"], "the length of a window"),
            mean=arrays["mean"],
            covariance=operator(**part("covariance.")),
            estimator=header["estimator"],
            ridge=as_number(header["ridge"], "ridge"),
            n_windows=header["n_windows"],
            first=_time(header["first"]),
            last=_time(header["last"]),
            columns=columns,
            reading=checked_reading(header["reading"], {column.name for column in columns}),
            summary=History(**part("summary.")),
            normal=checked_normal(part("normal.")),
            drilled=Counted.build(header["drilled"], "drills"),
        )
        check_scaling(model.summary, model.center, model.scale, [column.scaled_by for column in columns if column.kept])
        return model


def load_model(path: str | PathLike[str]) -> Model:
    """Read a model file; any fault of it is a ValueError of one line."""
    return read_archive(path, _KIND, _VERSION, Model.build, again="calibrate again")


def parse_model(content: bytes, name: str) -> Model:
    """The same from the content of a model file; name: what messages call it."""
    return parse_archive(content, _KIND, _VERSION, Model.build, name=name, again="calibrate again")


def _restricted(covariance: Covariance, chosen: NDArray[np.intp]) -> Covariance:
    if isinstance(covariance, LowRankPlusDiagonal):
        parameters = covariance.parameters()
        return LowRankPlusDiagonal(parameters["factors"][chosen], parameters["diagonal"][chosen], parameters["weights"])
    return Dense(covariance.dense()[np.ix_(chosen, chosen)])


def _microseconds(time: np.datetime64) -> int:
    return int(time.astype("datetime64[us]").astype(np.int64))


def _time(microseconds: Any) -> np.datetime64:
    if type(microseconds) is not int or abs(microseconds) > 2**60:
        raise ValueError("a time is damaged")
    return np.datetime64(microseconds, "us")
