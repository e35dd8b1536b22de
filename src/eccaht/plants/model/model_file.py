"""What a model file holds, and checks that it could come from a real history: files are not trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import LARGEST, Array, Index, as_number, check_bounded, check_gram
from eccaht.base.clock import as_zone, from_microseconds, microseconds, parse_duration
from eccaht.base.files import check_keys, part_of
from eccaht.plants.data.cleaning import ColumnReport
from eccaht.plants.data.windows import MOST_DECIMALS
from eccaht.plants.model.local import Local
from eccaht.plants.model.residuals import Normal, Peaks, Tails

if TYPE_CHECKING:
    from eccaht.plants.model.model import Model
    from eccaht.streams import Covariance

VECTORS = ("center", "scale", "mean")
OPERATORS = ("Dense", "LowRankPlusDiagonal")  # covariances that can be saved
_KEYS = {"names", "seconds", "operator", "estimator", "ridge", "n_windows", "first", "last", "columns", "reading"}
_PARTS: dict[str, Any] = {"tails": Tails, "drifts": Tails, "distances": Tails, "peaks": Peaks, "local": Local}
_PREFIXES = ("covariance.", "summary.", "normal.")
PROBABILITIES: Array = np.concatenate(
    [[0.001, 0.0025, 0.005, 0.01, 0.0175], np.linspace(0.025, 0.975, 31), [0.9825, 0.99, 0.995, 0.9975, 0.999]]
)
PROBABILITIES.flags.writeable = False
SHARES: Array = np.linspace(0.0, 1.0, 9)  # of the usual rows, at which the factor for runs is kept
SHARES.flags.writeable = False
MOST_LAGS, MOST_BLOCKS = 60, 20
_ROUNDING = 1e-6
LONGEST_TEXT = 500  # characters of a name
_LARGEST = 1e60  # of raw readings, as in calibration
_SMALLEST = 1e-30  # spread in robust units
_EARLIEST, _LATEST = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31", "us")
_USUAL: dict[str, Any] = {"timezone": None, "counted": False, "header": True, "decimals": {}}  # of data that do not say
_READING = {"time_columns", "time_format", "decimal_comma", "row_interval", "interval", "kinds", "levels", "notes"}


@dataclass(frozen=True)
class History:
    """Summaries of T windows of K sensors, all of the scaled windows except `stuck`, `gaps` and `raw_quantiles`.

    autocorrelation: (L + 1, K), lags 0 to L = min(60, T // 4), between consecutive windows.
    quantiles: (Q, K) at PROBABILITIES.
    skewness, kurtosis: (K,), the latter in excess of the normal's.
    block_means, block_sizes: (N, K) and (N,), means of N = min(20, T // 10) consecutive stretches.
    half_covariances: (2, K, K), of the first and the second half; (0, K, K) for more than 500 sensors.
    stuck: (K,), the longest share of the rows in which a sensor repeated one value.
    raw_quantiles: (3, K), quartiles of the raw values.
    coarse, coarse_windows: (C, K) and (1,), means of C consecutive stretches and the number of windows in each,
        from which longer windows can be tried; C is at most 1440, and 0 for more than 500 sensors.
    gaps: (K,), the longest share of the rows in which a sensor delivered nothing.
    row_counts: (2,), rows of a usual window and of the whole history.
    within: (1, K, K), covariance of scaled rows about the mean of their window; (0, K, K) for more than 500 sensors.
    runs: (9,), error variance of the mean of consecutive rows over that of random rows (model/gaps.py).
    """

    autocorrelation: Annotated[Array, "L", "K"]
    quantiles: Annotated[Array, PROBABILITIES.size, "K"]
    skewness: Annotated[Array, "K"]
    kurtosis: Annotated[Array, "K"]
    block_means: Annotated[Array, "N", "K"]
    block_sizes: Annotated[Array, "N"]
    half_covariances: Annotated[Array, "0|2", "K", "K"]
    stuck: Annotated[Array, "K"]
    raw_quantiles: Annotated[Array, 3, "K"]
    coarse: Annotated[Array, "C", "K"]
    coarse_windows: Annotated[Array, 1]
    gaps: Annotated[Array, "K"]
    row_counts: Annotated[Array, 2]
    within: Annotated[Array, "0|1", "K", "K"]
    runs: Annotated[Array, SHARES.size]

    def check(self, size: int) -> None:
        """Refuse arrays of the wrong shape or with values that are not finite."""
        lengths: dict[Any, int] = {"K": size, "L": len(self.autocorrelation), "N": len(self.block_sizes)}
        lengths |= {
            "C": len(self.coarse),
            "0|2": 2 * bool(len(self.half_covariances)),
            "0|1": bool(len(self.within)),
        }
        for name, array in self.arrays().items():
            if array.shape != tuple(lengths.get(length, length) for length in _SHAPES[name]):
                raise ValueError(f"its {name} has shape {array.shape}, which does not fit {size} sensors")
            if not np.isfinite(array).all():
                raise ValueError(f"its {name} holds values that are not finite")
        if min(self.row_counts.min(), self.runs.min(), self.coarse_windows[0]) < 1.0:
            raise ValueError("its counts of rows are damaged")
        if not 0.0 <= self.gaps.min() <= self.gaps.max() <= 1.0:
            raise ValueError("its gaps are no shares of the rows")
        if len(self.within) and not is_covariance(self.within[0]):
            raise ValueError("its covariance of rows within windows is damaged")

    def of(self, chosen: Index) -> History:
        """The summaries of some of the sensors."""
        arrays = self.arrays()
        for name, shape in _SHAPES.items():
            if "K" in shape:
                which = (..., chosen) if shape.count("K") == 1 else (slice(None), chosen[:, None], chosen)
                arrays[name] = arrays[name][which]
        return History(**arrays)

    def arrays(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in _SHAPES}


_SHAPES: dict[str, tuple[Any, ...]] = {
    name: hint.__metadata__ for name, hint in get_type_hints(History, include_extras=True).items()
}


# -- a model as a header and arrays ----------------------------------------------------------------------


def parts_of(model: Model) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """All of a model, as `checked_fields` takes it."""
    operator = type(model.covariance).__name__
    if operator not in OPERATORS:
        raise ValueError(f"a covariance of type {operator} cannot be saved: use {' or '.join(OPERATORS)}")
    header = {
        "names": list(model.names),
        "seconds": model.seconds,
        "operator": operator,
        "estimator": model.estimator,
        "ridge": model.ridge,
        "n_windows": model.n_windows,
        "first": microseconds(model.first),
        "last": microseconds(model.last),
        "columns": [asdict(column) for column in model.columns],
        "reading": model.reading,
        "drilled": model.drilled,
    }
    arrays = {name: getattr(model, name) for name in VECTORS}
    arrays |= {f"covariance.{key}": value for key, value in model.covariance.parameters().items()}
    arrays |= {f"summary.{key}": value for key, value in model.summary.arrays().items()}
    if model.normal is not None:
        arrays |= {f"normal.{name}": array for name, array in model.normal.arrays().items()}
    return header, arrays


def checked_fields(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """The fields of a model from the header and the arrays of an untrusted file."""
    check_keys(header, _KEYS | {"drilled"}, "header")
    if header["operator"] not in OPERATORS:
        raise ValueError("the type of its covariance is unknown")
    if not isinstance(header["names"], list):
        raise ValueError("the names of the sensors must be a list")
    if not all(array.dtype == np.float64 for array in arrays.values()):
        raise ValueError("its arrays are damaged")
    if extra := [name for name in arrays if not name.startswith(_PREFIXES) and name not in VECTORS]:
        raise ValueError(f"it has an unknown array {extra[0]!r:.40}")
    columns = tuple(checked_column(fields) for fields in header["columns"])
    if header["drilled"] is not None and not isinstance(header["drilled"], dict):
        raise ValueError("its drills are damaged")
    return {
        "names": tuple(header["names"]),
        "center": arrays["center"],
        "scale": arrays["scale"],
        "seconds": as_number(header["seconds"], "the length of a window"),
        "mean": arrays["mean"],
        "covariance": checked_covariance(header["operator"], part_of(arrays, "covariance"), len(header["names"])),
        "estimator": header["estimator"],
        "ridge": as_number(header["ridge"], "ridge"),
        "n_windows": header["n_windows"],
        "first": from_microseconds(header["first"]),
        "last": from_microseconds(header["last"]),
        "columns": columns,
        "reading": checked_reading(header["reading"], {column.name for column in columns}),
        "summary": History(**part_of(arrays, "summary")),
        "normal": checked_normal(part_of(arrays, "normal")),
        "drilled": header["drilled"],
    }


def checked_covariance(operator: str, parameters: dict[str, Array], size: int) -> Covariance | Callable[[], Covariance]:
    """What makes the covariance where that is asked for; the covariance itself where it must be made to check it."""

    def make() -> Covariance:
        from eccaht.streams import covariance

        made: Covariance = getattr(covariance, operator)(**parameters)
        return made

    matrix = parameters.get("matrix")
    if operator != "Dense" or len(parameters) != 1 or matrix is None or matrix.shape != (size, size):
        return make()
    if not (np.abs(matrix) <= LARGEST**2).all() or not (matrix == matrix.T).all():
        return make()
    values = np.linalg.eigvalsh(matrix)
    return make if values[0] > size * np.finfo(float).eps * values[-1] else make()


# -- what could come from a real history -----------------------------------------------------------------


def check_text(text: str, what: str) -> None:
    """Refuse a text that a terminal or a page could not show as it is."""
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"{what} is longer than {LONGEST_TEXT} characters: {text[:20]!r}...")
    if any(category(letter) in ("Cc", "Cs") for letter in text):
        raise ValueError(f"{what} holds control characters: {text[:60]!r}")


def check_summary(history: History, n_windows: int, mean: Array) -> None:
    """Refuse summaries that are impossible for this number of windows and this mean, (K,)."""
    history.check(len(mean))
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


def is_covariance(matrix: Array) -> bool:
    """Symmetric, with no negative variance and no correlation above 1."""
    if (matrix.diagonal() < 0).any():
        return False
    deviations = np.sqrt(matrix.diagonal())
    largest = np.outer(deviations, deviations)
    symmetric = np.abs(matrix - matrix.T) <= _ROUNDING * largest
    return bool(symmetric.all() and (np.abs(matrix) <= largest * (1.0 + _ROUNDING)).all())


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
    plain: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        check_bounded(array, name, _LARGEST**2)
        part, _, rest = name.rpartition(".")
        if part:
            parts.setdefault(part, {})[rest] = float(array) if array.ndim == 0 else array
        else:
            plain[name] = array
    check_keys(parts, set(_PARTS), "normal operation")
    for name, kind in _PARTS.items():
        check_keys(parts[name], {field.name for field in fields(kind)}, f"normal operation ({name})")
    check_keys(plain, {field.name for field in fields(Normal)} - set(_PARTS), "normal operation")
    normal = Normal(**plain, **{name: kind(**parts[name]) for name, kind in _PARTS.items()})
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
