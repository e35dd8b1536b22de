"""The cleaning of each column: kept or dropped and why, filled, scaled."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from eccaht.base.arrays import Array
from eccaht.plants.data.windows import Times

MOST_LEVELS = 10  # a numeric column with at most this many distinct values, all integers, is a status
MOST_TEXTS = 20  # a text column with more distinct texts is no status but free text
LABEL = "looks like a label"  # the reason why such a column is dropped
UNPREDICTED = "no other predicts it"  # the reason why such a status is dropped
_LABEL = re.compile(
    r"(?<![^\W_])((is|has)?anomal(y|ies|ous)|outliers?|labels?|attacks?|att[ _-]?flags?|faults?|faulty"
    r"|change[ _-]?points?|ground[ _-]?truth)(?![^\W_])",
    re.IGNORECASE,
)
_LABEL_NUMBERS = frozenset({-999.0, -1.0, 0.0, 1.0})  # BATADAL has -999 where it does not say
_LABEL_TEXTS = frozenset({"true", "false", "normal", "attack"})

Kind = Literal["continuous", "status", ""]
HEADINGS = ("column", "kept", "type", "imputed", "scaled by", "why dropped")
_SCALES = {"iqr": "IQR", "std": "std (IQR is 0)", "": ""}


@dataclass(frozen=True)
class ColumnReport:
    """What was decided about a column.

    reason: why it was dropped, "" if it was kept.
    kind: "continuous", "status", or "" if the column was dropped before that was decided.
    imputed: share of its rows that had to be filled, 0 to 1.
    scaled_by: "iqr", "std" where the interquartile range is 0, "" if dropped.
    constant: the one value of a column of numbers that was dropped because it never changed.
    low, high: the ends of the readings of a column of numbers that was dropped though it changed.
    """

    name: str
    kept: bool
    reason: str = ""
    kind: Kind = ""
    imputed: float = 0.0
    scaled_by: Literal["iqr", "std", ""] = ""
    constant: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """For people, below HEADINGS."""
        imputed = f"{100 * self.imputed:.2f} %" if self.imputed else ("0" if self.kind else "")
        return self.name, "yes" if self.kept else "no", self.kind, imputed, _SCALES[self.scaled_by], self.reason

    def as_dict(self) -> dict[str, Any]:
        """For JSON; the readings of a dropped column only where there are any."""
        dropped = ("constant", "low", "high")
        return {name: value for name, value in asdict(self).items() if name not in dropped or value is not None}


def kind_of(column: Array) -> Kind:
    """Few whole values are a status, anything else is continuous; `column` may have gaps (NaN).

    >>> kind_of(np.array([0.0, 1.0, np.nan, 2.0])), kind_of(np.array([0.0, 0.5, 1.0]))
    ('status', 'continuous')
    """
    for part in (column[:1000], column):  # the first rows decide for most columns
        levels = np.unique(part)
        levels = levels[~np.isnan(levels)]
        if levels.size > MOST_LEVELS or (levels != np.rint(levels)).any():
            return "continuous"
    return "status"


def looks_like_label(name: str, column: Array, levels: Sequence[str] | None = None) -> bool:
    """Whether a column says which rows are anomalous, and so is no reading: by its name, and by two values at most.

    levels: the texts of a column of texts. In a history of normal operation a label is usually 0 throughout.

    >>> zeros = np.zeros(9)
    >>> [looks_like_label(name, zeros) for name in ("ATT_FLAG", "is_anomaly", "default", "flow")]
    [True, True, False, False]
    >>> looks_like_label("fault", np.array([0.0, 0.4, 1.0]))
    False
    """
    if _LABEL.search(name) is None:
        return False
    if levels is not None:
        return {text.strip().casefold() for text in levels} <= _LABEL_TEXTS
    values = np.unique(column[~np.isnan(column)])
    return values.size <= 2 and _LABEL_NUMBERS.issuperset(values.tolist())


def fill_continuous(column: Array, times: Times) -> Array:
    """Fill gaps by linear interpolation in time; before the first and after the last reading by the nearest one."""
    missing = np.isnan(column)
    gaps = np.flatnonzero(missing)
    if not gaps.size:
        return column
    present = np.flatnonzero(~missing)
    place = gaps - np.arange(gaps.size)  # how many readings come before each gap
    before, after = present[np.maximum(place - 1, 0)], present[np.minimum(place, present.size - 1)]
    t = times.astype("datetime64[us]", copy=False).view(np.int64)
    span = (t[after] - t[before]).astype(np.float64)
    share = (t[gaps] - t[before]) / np.where(span > 0, span, 1.0)
    filled = column.copy()
    filled[gaps] = column[before] + share * (column[after] - column[before])
    return filled


def fill_status(column: Array) -> Array:
    """Fill gaps by the last reading, those at the beginning by the first."""
    missing = np.isnan(column)
    if not missing.any():
        return column
    last = np.where(missing, 0, np.arange(len(column)))
    last[0] = int(np.argmin(missing))
    return column[np.maximum.accumulate(last)]


def robust_scale(column: Array) -> tuple[Array, float, Literal["iqr", "std"]]:
    """Quartiles, and what to divide by: the interquartile range, or the standard deviation where that is 0."""
    quartiles = np.quantile(column, [0.25, 0.5, 0.75])
    scale = float(quartiles[2] - quartiles[0])
    return (quartiles, scale, "iqr") if scale > 0 else (quartiles, float(np.std(column)), "std")


def is_row_number(column: Array) -> bool:
    if len(column) < 3 or column[1] - column[0] != 1.0:
        return False
    return bool((np.diff(column) == 1.0).all())
