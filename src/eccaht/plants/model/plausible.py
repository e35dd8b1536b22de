"""Checks that the summaries in a model file could come from a real history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unicodedata import category

import numpy as np

from eccaht.base.arrays import Array, as_number
from eccaht.base.clock import as_zone
from eccaht.base.durations import parse_duration
from eccaht.base.stored import check_bounded, check_gram
from eccaht.plants.data.cleaning import ColumnReport
from eccaht.plants.data.resolution import MOST_DECIMALS
from eccaht.plants.model.history import MOST_BLOCKS, MOST_LAGS, History, is_covariance
from eccaht.plants.model.normal import Normal

_ROUNDING = 1e-6
LONGEST_TEXT = 500  # characters of a name
_LARGEST = 1e60  # of raw readings, as in calibration
_SMALLEST = 1e-30  # spread in robust units
_EARLIEST, _LATEST = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31", "us")
_USUAL: dict[str, Any] = {"timezone": None, "counted": False, "header": True, "decimals": {}}  # of data that do not say
_READING = {"time_columns", "time_format", "decimal_comma", "row_interval", "interval", "kinds", "levels", "notes"}


def check_text(text: str, what: str) -> None:
    """Refuse a text that a terminal or a page could not show as it is."""
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"{what} is longer than {LONGEST_TEXT} characters: {text[:20]!r}...")
    if any(category(letter) in ("Cc", "Cs") for letter in text):
        raise ValueError(f"{what} holds control characters: {text[:60]!r}")


def check_summary(history: History, n_windows: int, mean: Array) -> None:
    """Refuse summaries that are impossible for this number of windows and this mean."""
    T, sizes, lags = n_windows, history.block_sizes, history.autocorrelation
    for name, array in history.arrays().items():
        check_bounded(array, name, _LARGEST**2)
    edges = np.linspace(0, T, min(MOST_BLOCKS, T // 10) + 1).round()
    checks = {
        "autocorrelation": len(lags) == min(MOST_LAGS, T // 4) + 1
        and bool((np.abs(lags[0] - 1.0) <= _ROUNDING).all() and (np.abs(lags) <= 1.0 + _ROUNDING).all()),
        "quantiles": bool((np.diff(history.quantiles, axis=0) >= -_ROUNDING * np.abs(history.quantiles).max(0)).all()),
        "block_sizes": np.array_equal(sizes, np.diff(edges)),
        "skewness": bool((np.abs(history.skewness) <= T**0.5 * (1.0 + _ROUNDING)).all()),
        "stuck": bool(((history.stuck > 0) & (history.stuck <= 1)).all()),
        "half_covariances": all(map(is_covariance, history.half_covariances)),
    }
    least = np.minimum(np.abs(history.skewness), T) ** 2 - 2.0  # Pearson: kurtosis is never below 1 + skewness^2
    checks["kurtosis"] = bool(((history.kurtosis >= least - _ROUNDING * T) & (history.kurtosis <= T)).all())
    if checks["block_sizes"] and sizes.size:
        together = sizes @ history.block_means / T
        scale = np.abs(history.block_means).max(axis=0) + np.abs(mean)
        checks["block_means"] = bool((np.abs(together - mean) <= _ROUNDING * scale).all())
    for name, good in checks.items():
        if not good:
            raise ValueError(f"its {name} are not those of {T} windows")


def check_scaling(history: History, center: Array, scale: Array, scaled_by: Sequence[str]) -> None:
    """Refuse a scaling that is not the robust one of the raw quartiles."""
    low, middle, high = history.raw_quantiles
    spread = high - low
    by_range = np.array([how == "iqr" for how in scaled_by])
    good = (low <= middle) & (middle <= high) & (center == middle) & (np.abs(history.raw_quantiles) <= _LARGEST).all(0)
    good &= np.where(by_range, np.abs(scale - spread) <= _ROUNDING * scale, (spread == 0) & (scale <= _LARGEST))
    if not good.all():
        raise ValueError(f"the scaling of sensor {int(good.argmin())} does not agree with its quartiles")


def checked_reading(reading: Any, names: set[str]) -> dict[str, Any]:
    """Return what a file says about how new data are read, or refuse it."""
    reading = reading if isinstance(reading, dict) else {}
    reading = reading | {key: value for key, value in _USUAL.items() if key not in reading}  # the order stays
    if set(reading) != _READING | set(_USUAL):
        raise ValueError("it does not say how to read new data")
    for key in ("time_columns", "time_format", "notes"):
        _texts(reading[key], key)
    for key in ("decimal_comma", "counted", "header"):
        if type(reading[key]) is not bool:
            raise ValueError(f"{key} must be true or false")
    if reading["timezone"] is not None:
        _texts([reading["timezone"]], "timezone")
        reading["timezone"] = as_zone(reading["timezone"])
    if reading["counted"] and reading["row_interval"] != 1.0:
        raise ValueError("rows that are counted must have the row_interval 1")
    if (reading["row_interval"] is None) != bool(reading["time_columns"]):
        raise ValueError("rows must have either times or a row_interval")
    if reading["row_interval"] is not None:
        parse_duration(as_number(reading["row_interval"], "row_interval"), "row_interval")
    parse_duration(as_number(reading["interval"], "interval"), "interval")
    for key in ("kinds", "levels", "decimals"):
        if not isinstance(reading[key], dict) or not set(reading[key]) <= names:
            raise ValueError(f"{key} must be about the columns of the history")
    if not all(kind in ("continuous", "status") for kind in reading["kinds"].values()):
        raise ValueError("kinds must be continuous or status")
    for levels in reading["levels"].values():
        _texts(levels, "levels")
        if len(set(levels)) != len(levels):
            raise ValueError("levels must be distinct")
    known = (None, *range(MOST_DECIMALS + 1))
    if not all(type(places) in (int, type(None)) and places in known for places in reading["decimals"].values()):
        raise ValueError(f"decimals must be whole numbers from 0 to {MOST_DECIMALS}, or null")
    return reading | {"decimals": dict(reading["decimals"])}  # a dict of its own


def checked_normal(arrays: dict[str, Array]) -> Normal | None:
    """Return what a file says about normal operation, None if nothing, or refuse it."""
    if not arrays:
        return None
    for name, array in arrays.items():
        check_bounded(array, name, _LARGEST**2)
    normal = Normal.build(arrays)
    assert normal.local is not None
    for precision in (normal.precision, normal.local.others, normal.local.both):
        check_gram(precision, "precisions")
    if min(normal.scale.min(), normal.local.unit.min(), normal.local.knots[-1].min()) < _SMALLEST:
        raise ValueError("its spreads are smaller than any readings could have made them")
    return normal


def checked_column(fields: dict[str, Any]) -> ColumnReport:
    """Return what a file says about a column of the history, or refuse it."""
    column = ColumnReport(**fields)
    texts = (column.name, column.reason, column.kind, column.scaled_by)
    good = all(isinstance(text, str) for text in texts) and type(column.kept) is bool
    good = good and column.kept == bool(column.scaled_by) and column.kept != bool(column.reason)
    if not good or column.kind not in ("continuous", "status", "") or column.scaled_by not in ("iqr", "std", ""):
        raise ValueError("its report of the columns is damaged")
    check_text(column.name, "the name of a column")
    check_text(column.reason, "a reason why a column was dropped")
    constant = None if column.constant is None else as_number(column.constant, "a constant")
    if constant is not None and (abs(constant) > _LARGEST or column.kept):
        raise ValueError("the value of a constant column is damaged")
    imputed = as_number(column.imputed, "a share of imputed rows")
    if not 0.0 <= imputed <= 1.0:
        raise ValueError("a share of imputed rows must be between 0 and 1")
    return replace(column, constant=constant, imputed=imputed)


def check_names(names: tuple[str, ...]) -> None:
    """Refuse names of sensors that are not distinct texts."""
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError("the names of the sensors must be texts")
    if len(set(names)) != len(names):
        raise ValueError("the names of the sensors must be distinct")
    for name in names:
        check_text(name, "the name of a sensor")


def check_times(first: np.datetime64, last: np.datetime64, seconds: float) -> None:
    """Check the start times of the first and the last window, which are at least a window apart."""
    if np.isnat(first) or np.isnat(last) or last < first:
        raise ValueError("the history must begin before it ends")
    if not _EARLIEST <= first <= last <= _LATEST:
        raise ValueError("the history must lie between the years 1 and 9999")
    if (last - first) / np.timedelta64(1, "us") < 1e6 * seconds * (1.0 - 1e-9):
        raise ValueError("the history is too short for its windows")


def _texts(value: Any, what: str) -> None:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{what} must be a list of texts")
    for text in value:
        check_text(text, f"one of {what}")
