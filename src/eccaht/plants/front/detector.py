"""The engine as a detector of scikit-learn, for those who compare detectors or build pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from eccaht.base.arrays import Array, as_number
from eccaht.plants.data.source import Arrays
from eccaht.plants.front.calibration import calibrate
from eccaht.plants.incident.alarms import run_engine
from eccaht.plants.model.fitting import FEWEST_NORMAL

if TYPE_CHECKING:  # the classes of scikit-learn have no types

    class BaseEstimator:
        """What scikit-learn's does."""

        def __sklearn_tags__(self) -> Any: ...

    class OutlierMixin:
        """What scikit-learn's does."""

        def fit_predict(self, X: ArrayLike, y: object = None) -> NDArray[np.int64]: ...

else:
    from sklearn.base import BaseEstimator, OutlierMixin


class Detector(OutlierMixin, BaseEstimator):
    """Is something wrong, row by row? Fitted to rows of normal operation; NaN is a missing reading.

    Rows follow each other in time, and each is a window: what a row shows depends on the rows before it. Which sensors
    are wrong, and since when, `model_.identify(X)` says.

    false_alarm_every: rows to a false alarm in the mean; what the history can carry if None. estimator: of the
    covariance, as for `eccaht.calibrate`.

    >>> X = np.random.default_rng(0).standard_normal((400, 3))
    >>> detector = Detector().fit(X[:300])
    >>> X[380:, 1] += 8.0
    >>> detector.predict(X[300:])[[0, 79, 80, 99]]
    array([ 1,  1, -1, -1])
    """

    def __init__(self, *, false_alarm_every: float | None = None, estimator: str = "ledoit-wolf") -> None:
        self.false_alarm_every = false_alarm_every
        self.estimator = estimator

    def fit(self, X: ArrayLike, y: object = None) -> Detector:  # noqa: ARG002
        """Calibrate on rows of normal operation, (N, K), at least 40 of at least 2 sensors."""
        rows = self._rows(X, reset=True, ensure_min_features=2)
        if len(rows) < FEWEST_NORMAL:
            raise ValueError(
                f"n_samples = {len(rows)}, and {FEWEST_NORMAL} rows are the fewest that show what is normal"
            )
        self.model_ = calibrate(rows, names=self._names(rows), drills=0, estimator=self.estimator, progress=False)
        self.every_ = (
            self.model_.usual_rate
            if self.false_alarm_every is None
            else as_number(self.false_alarm_every, "false_alarm_every")
        )
        self.offset_ = 0.0
        return self

    def score_samples(self, X: ArrayLike) -> Array:
        """How normal each row is: minus the largest value of a detector beyond its threshold."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        windows = self.model_.prepare(Arrays(rows, names=self._names(rows)), bad="skip")
        assert self.model_.normal is not None
        run = run_engine(self.model_.normal, windows.values, self.every_, gaps=self.model_.gaps * len(rows))
        return -run.passed

    def decision_function(self, X: ArrayLike) -> Array:
        """The same as `score_samples`, less `offset_`: below 0 there is an alarm."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """-1 for each row with an alarm, 1 for the others."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def _rows(self, X: ArrayLike, **options: Any) -> Array:
        if not len(getattr(X, "columns", "X")):
            raise ValueError("X has no columns: give a column of numbers for each sensor")
        try:
            rows: Array = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", **options)
        except (TypeError, ValueError):
            if (name := _no_numbers(X)) is None:
                raise
            raise ValueError(
                f"column {name!r} of X does not hold numbers: leave it out, or give NaN where a reading is missing"
            ) from None
        return rows

    def _names(self, rows: Array) -> list[str]:
        """The columns of the frame that was fitted, or x0, x1, ..."""
        return list(getattr(self, "feature_names_in_", (f"x{k}" for k in range(rows.shape[1]))))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _no_numbers(X: Any) -> str | None:
    """The first column of a frame that does not hold numbers; None if all do, or if it is no frame."""
    for name in getattr(X, "columns", ()):
        column = np.asarray(X[name])
        try:
            column.astype(np.float64)
        except (TypeError, ValueError):
            return str(name)
        if column.dtype.kind in "mM":
            return str(name)
    return None
