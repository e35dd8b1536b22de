"""Mean and covariance of the scaled windows, by name.

`empirical` with a ridge of 1e-6 is the paper's. `ledoit-wolf` works on windows that were standardised to unit variance
and are scaled back: robust scaling leaves variances that differ by orders of magnitude between quiet and jumpy sensors,
and shrinking towards one common variance would hide the quiet ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from eccaht.base.arrays import Array, as_number
from eccaht.base.extras import need
from eccaht.base.presentation.text import unknown

if TYPE_CHECKING:
    from eccaht.streams import Dense

PAPER_RIDGE = 1e-6
FEWEST_WINDOWS = 10


def estimate(values: Array, estimator: str = "ledoit-wolf", ridge: float | None = None) -> tuple[Array, Dense]:
    """Return mean and covariance of windows, shape (T, K), without gaps; `ridge` is added to the diagonal."""
    check_estimator(estimator)
    if estimator != "empirical":
        need("sklearn")
    ridge = default_ridge(estimator, ridge)
    T, K = values.shape
    needed = max(FEWEST_WINDOWS, K + 1 if estimator == "empirical" else 0)
    if needed > T:
        raise ValueError(
            f"{T} windows are too few for {estimator} with {K} sensors, which needs {needed}: "
            "give a longer history, shorter windows, or another estimator"
        )
    mean = values.mean(axis=0)
    spread = values.std(axis=0)
    if not (np.isfinite(spread).all() and (spread > 0).all()):
        raise ValueError(f"the windows of sensor {int(np.argmin(spread > 0))} do not vary: leave it out")
    return mean, ESTIMATORS[estimator](values, mean, spread, ridge)


def preload(estimator: str) -> None:
    """Import what the estimator needs, which takes about a second that reading the files can hide."""
    if estimator != "empirical":
        with suppress(ImportError):  # `estimate` will raise it
            import_module("sklearn.covariance")


def check_estimator(name: str) -> None:
    """Refuse an unknown name, with the nearest known one."""
    if name not in ESTIMATORS:
        raise unknown(name, ESTIMATORS, "estimator")


def default_ridge(estimator: str, ridge: float | None) -> float:
    """The ridge that is added: the paper's for `empirical`, none for the others, unless one is given."""
    if ridge is None:
        return PAPER_RIDGE if estimator == "empirical" else 0.0
    if as_number(ridge, "ridge") < 0:
        raise ValueError(f"ridge must not be negative, not {ridge!r}")
    return float(ridge)


def _empirical(values: Array, mean: Array, spread: Array, ridge: float) -> Dense:  # noqa: ARG001
    return _dense(np.cov(values, rowvar=False).reshape(mean.size, mean.size), ridge)


def _ledoit_wolf(values: Array, mean: Array, spread: Array, ridge: float) -> Dense:
    """Shrink standardised windows towards independent sensors, as scikit-learn does."""
    from sklearn.covariance import LedoitWolf

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks below judge the numbers that they are about
        fitted = LedoitWolf(store_precision=False, assume_centered=True).fit((values - mean) / spread)
    return _dense(fitted.covariance_ * np.outer(spread, spread), ridge)


def _dense(matrix: Array, ridge: float) -> Dense:
    """Add the ridge; a matrix that is not positive definite is refused with the ridge that would mend it."""
    from eccaht.streams import Dense

    return Dense(0.5 * (matrix + matrix.T) + ridge * np.eye(len(matrix)))


ESTIMATORS: dict[str, Callable[[Array, Array, Array, float], Dense]] = {
    "ledoit-wolf": _ledoit_wolf,
    "empirical": _empirical,
}
