"""What a model file holds, and checks that it could come from a real history: files are not trusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from unicodedata import category

import numpy as np

from eccaht.base.arrays import LARGEST, check_gram
from eccaht.base.clock import as_zone, parse_duration
from eccaht.base.codec import Field, Fields, Part, State, built, state_of
from eccaht.base.files import check_keys
from eccaht.plants.data.cleaning import ColumnReport
from eccaht.plants.data.windows import MOST_DECIMALS
from eccaht.plants.model.local import Local
from eccaht.plants.model.residuals import Normal

if TYPE_CHECKING:
    from eccaht.plants.model.model import Model
    from eccaht.streams import Covariance

LONGEST_TEXT = 500  # characters of a name
_LARGEST = 1e60  # of raw readings, as in calibration
_EARLIEST, _LATEST = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31", "us")


_COLUMN: Fields = (
    Field("name", (), str, high=LONGEST_TEXT),
    Field("kept", (), bool),
    Field("reason", (), str, high=LONGEST_TEXT),
    Field("kind", (), str, among=("continuous", "status", "")),
    Field("imputed", low=0.0, high=1.0),
    Field("scaled_by", (), str, among=("iqr", "std", "")),
    *(Field(name, low=-_LARGEST, high=_LARGEST, optional=True) for name in ("constant", "low", "high")),
)
READING: Fields = (
    *(Field(name, (name,), str, high=LONGEST_TEXT, row=list) for name in ("time_columns", "time_format", "notes")),
    *(Field(name, (), bool) for name in ("decimal_comma", "counted", "header")),
    Field("timezone", (), str, high=LONGEST_TEXT, optional=True),
    Field("row_interval", optional=True),
    Field("interval"),
    Field("kinds", (), str, among=("continuous", "status"), keyed=True),
    Field("levels", ("levels",), str, high=LONGEST_TEXT, keyed=True, row=list),
    Field("decimals", (), int, high=MOST_DECIMALS, keyed=True, optional=True),
)
MODEL: Fields = (
    Field("names", ("K",), str, high=LONGEST_TEXT),
    Field("center", ("K",)),
    Field("scale", ("K",), low=1e-300),
    Field("mean", ("K",)),
    Field("gaps", ("K",), low=0.0, high=1.0),
    Field("usual_rows", low=1.0),
    Field("seconds"),
    Field("estimator", (), str),
    Field("ridge", low=0.0),
    Field("n_windows", (), int, low=1),
    Field("first", (), np.datetime64),
    Field("last", (), np.datetime64),
    Field("history", ("windows", "K"), low=-_LARGEST, high=_LARGEST, nan=True, optional=True),
    Part("columns", ColumnReport, many=True, fields=_COLUMN),
    Part("normal", Normal, optional=True, fields=(*Normal.FIELDS, Part("local", Local, optional=True))),
)


def stored_model(model: Model) -> State:
    """All of a model, as `checked_model` takes it."""
    return {
        "model": state_of(model),
        "reading": {field.key: model.reading[field.key] for field in READING},
        "covariance": model.covariance.dense(),
        "drilled": model.drilled,
    }


def checked_model(state: Any) -> dict[str, Any]:
    """The arguments of a model, from what an untrusted file says."""
    check_keys(state, {"model", "reading", "covariance", "drilled"}, "header")
    arguments: dict[str, Any] = built(dict, state["model"], {}, MODEL, "model")
    for column in arguments["columns"]:
        if column.kept != bool(column.scaled_by) or column.kept == bool(column.reason):
            raise ValueError("its report of the columns is damaged: what was kept is scaled, all else has a reason")
        if column.kept and not column.constant is column.low is column.high is None:
            raise ValueError("its report of the columns is damaged: a constant was kept")
        if (column.low is None) != (column.high is None) or (column.low or 0.0) > (column.high or 0.0):
            raise ValueError("its report of the columns is damaged: a range ends before it begins")
    if (normal := arguments["normal"]) is not None:
        if normal.local is None:
            raise ValueError("its normal operation is damaged: it lacks the levels")
        for precision in (normal.precision, normal.local.others, normal.local.both):
            check_gram(precision, "precisions")
    if state["drilled"] is not None and not isinstance(state["drilled"], dict):
        raise ValueError("its drills are damaged")
    reading: dict[str, Any] = built(dict, state["reading"], {}, READING, "reading")
    _check_reading(reading, {column.name for column in arguments["columns"]})
    covariance = checked_covariance(state["covariance"], len(arguments["names"]))
    return arguments | {"reading": reading, "covariance": covariance, "drilled": state["drilled"]}


def _check_reading(reading: dict[str, Any], names: set[str]) -> None:
    """Refuse what a file says about how new data are read, if it cannot be; bring the time zone into its usual form."""
    if reading["timezone"] is not None:
        reading["timezone"] = as_zone(reading["timezone"])
    if reading["counted"] and reading["row_interval"] != 1.0:
        raise ValueError("rows that are counted must have the row_interval 1")
    if (reading["row_interval"] is None) != bool(reading["time_columns"]):
        raise ValueError("rows must have either times or a row_interval")
    for key in ("row_interval", "interval"):
        if reading[key] is not None:
            parse_duration(reading[key], key)
    for key in ("kinds", "levels", "decimals"):
        if not set(reading[key]) <= names:
            raise ValueError(f"{key} must be about the columns of the history")
    if any(len(set(levels)) != len(levels) for levels in reading["levels"].values()):
        raise ValueError("levels must be distinct")


def checked_covariance(matrix: Any, size: int) -> Covariance | Callable[[], Covariance]:
    """What makes the covariance where that is asked for; the covariance itself where it must be made to check it."""

    def make() -> Covariance:
        from eccaht.streams import Dense

        return Dense(matrix)

    if not isinstance(matrix, np.ndarray) or matrix.shape != (size, size):
        raise ValueError("its covariance does not fit its sensors")
    if not (np.abs(matrix) <= LARGEST**2).all() or not (matrix == matrix.T).all():
        return make()
    values = np.linalg.eigvalsh(matrix)
    return make if values[0] > size * np.finfo(float).eps * values[-1] else make()


def check_text(text: str, what: str) -> None:
    """Refuse a text that a terminal or a page could not show as it is."""
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"{what} is longer than {LONGEST_TEXT} characters: {text[:20]!r}...")
    if any(category(letter) in ("Cc", "Cs") for letter in text):
        raise ValueError(f"{what} holds control characters: {text[:60]!r}")


def check_times(first: np.datetime64, last: np.datetime64, seconds: float) -> None:
    """Check the start times of the first and the last window, which are at least a window apart."""
    if np.isnat(first) or np.isnat(last) or last < first:
        raise ValueError("the history must begin before it ends")
    if not _EARLIEST <= first <= last <= _LATEST:
        raise ValueError("the history must lie between the years 1 and 9999")
    if (last - first) / np.timedelta64(1, "us") < 1e6 * seconds * (1.0 - 1e-9):
        raise ValueError("the history is too short for its windows")
