"""What people rank sensors by today: ten lines each, from z-scores to detectors that one installs.

A rival learns from a history, (T, K), and then scores the K sensors of a stretch, given the rows right before it: the
higher the score, the more suspect. None of them uses what another sensor reads, except `mahalanobis`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np

from eccaht.base.arrays import Array

BEFORE = 60  # rows before a stretch that say what its level was
_FEWEST = 10  # with no more rows before, the level is the mean of the history
_LEAST = 1e-3  # of the spread around the level, in standard deviations: below, a sensor hardly ever moves
_LARGEST = 5000  # rows of the history that a detector ranks each new row among

Score = Callable[[Array, Array], Array]  # rows before, rows of the stretch -> (K,)
Rival = Callable[[Array], Score]


def z_mean(history: Array) -> Score:
    """The mean over the stretch, in standard deviations of the history from its mean.

    >>> score = z_mean(np.array([[0.0, 0.0], [2.0, 4.0]]))
    >>> score(np.empty((0, 2)), np.array([[4.0, 4.0]]))
    array([3., 1.])
    """
    scaled = _scaling(history)
    return lambda _, rows: np.abs(scaled(rows).mean(axis=0))


def z_max(history: Array) -> Score:
    """The largest deviation from the mean of the history."""
    scaled = _scaling(history)
    return lambda _, rows: np.abs(scaled(rows)).max(axis=0)


def z_local(history: Array) -> Score:
    """The largest deviation from the median of the rows before, in standard deviations of such deviations."""
    scaled = _scaling(history)
    spread = np.maximum(_deviations(scaled(history)).std(axis=0), _LEAST)

    def score(before: Array, rows: Array) -> Array:
        level = np.median(scaled(before), axis=0) if len(before) > _FEWEST else 0.0
        return np.abs((scaled(rows) - level) / spread).max(axis=0)

    return score


def mahalanobis(history: Array) -> Score:
    """The sensor's share of the Mahalanobis distances x'Qx, summed over the stretch as |x_k (Qx)_k|."""
    from sklearn.covariance import LedoitWolf

    scaled = _scaling(history)
    Q = np.linalg.inv(LedoitWolf().fit(scaled(history)).covariance_)
    return lambda _, rows: np.abs(scaled(rows) * (scaled(rows) @ Q)).sum(axis=0)


def ecod(history: Array) -> Score:
    """The mean over the stretch of PyOD's ECOD score of each dimension."""
    with _quietly():
        from pyod.models.ecod import ECOD
    return _by_dimension(ECOD(), history)


def copod(history: Array) -> Score:
    """The mean over the stretch of PyOD's COPOD score of each dimension."""
    with _quietly():
        from pyod.models.copod import COPOD
    return _by_dimension(COPOD(), history)


def skchange(history: Array) -> Score:
    """What each sensor contributes to the anomalies that skchange's CAPA, with its penalty for subsets, finds."""
    with _quietly():
        from skchange.detectors import CAPA

    scaled = _scaling(history)
    detector = CAPA().fit(scaled(history))
    baseline = detector.segment_saving_.baseline_mean_

    def score(before: Array, rows: Array) -> Array:
        x, first = scaled(np.vstack([before, rows])), len(before)
        found = detector.predict_all(x) if len(x) > 1 else {"segment_anomalies": [], "point_anomalies": []}
        ends = [*found["segment_anomalies"], *((t, t + 1) for t in found["point_anomalies"])]
        spans = [(max(start, first), stop) for start, stop in ends if stop > first] or [(first, len(x))]
        savings = [(x[start:stop] - baseline).sum(axis=0) ** 2 / (stop - start) for start, stop in spans]
        return np.sum(savings, axis=0)

    return score


RIVALS: dict[str, Rival] = {
    "z-mean": z_mean,
    "z-max": z_max,
    "z-local": z_local,
    "mahalanobis": mahalanobis,
    "ecod": ecod,
    "copod": copod,
    "skchange": skchange,
}
NEEDS = {"mahalanobis": "sklearn", "ecod": "pyod", "copod": "pyod", "skchange": "skchange"}  # what each imports


def lacking(name: str) -> str | None:
    """The package that this rival needs and that is not installed; None if it can run."""
    package = NEEDS.get(name)
    return package if package is not None and find_spec(package) is None else None


def _scaling(history: Array) -> Callable[[Array], Array]:
    """Rows less the mean of the history, in its standard deviations; a sensor that never moved keeps its units."""
    mean, std = history.mean(axis=0), history.std(axis=0)
    std = np.where(std > 0, std, 1.0)
    return lambda rows: (rows - mean) / std


def _deviations(rows: Array) -> Array:
    """Each row less the median of the rows right before it."""
    import polars as pl

    medians = [pl.Series(column).rolling_median(BEFORE).to_numpy() for column in rows.T]
    deviations: Array = rows[BEFORE:] - np.column_stack(medians)[BEFORE - 1 : -1]
    return deviations


def _by_dimension(detector: Any, history: Array) -> Score:
    """The scores of a PyOD detector for each dimension, which it keeps beside their sum."""
    with _quietly():
        detector.fit(history[:: -(-len(history) // _LARGEST)])

    def score(_: Array, rows: Array) -> Array:
        with _quietly():
            detector.decision_function(rows)  # which ranks the rows among those of the history
        return np.asarray(detector.O)[-len(rows) :].mean(axis=0)

    return score


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the warnings of packages about each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
