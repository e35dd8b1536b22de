"""What people use today, ten lines each: rivals that rank sensors, and control charts that raise alarms.

A rival learns from a history, (T, K), and then scores the K sensors of a stretch, given the rows right before it: the
higher the score, the more suspect. None of them uses what another sensor reads, except `mahalanobis`.

A chart learns from a history too, and gives one number for each new row. Its threshold comes from the history alone:
the statistic on each half of it, learnt from the other half, and then the level that clusters of values pass at the
given rate. All charts have this one rule.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from eccaht.base.arrays import Array

BEFORE = 60  # rows before a stretch that say what its level was
_FEWEST = 10  # with no more rows before, the level is the mean of the history
_LEAST = 1e-3  # of the spread around the level, in standard deviations: below, a sensor hardly ever moves
_LARGEST = 5000  # rows of the history that a detector ranks each new row among

Score = Callable[[Array, Array], Array]  # rows before, rows of the stretch -> (K,)
Rival = Callable[[Array], Score]
NEEDS = {"mahalanobis": "sklearn", "ecod": "pyod", "copod": "pyod", "skchange": "skchange"}  # what each imports
HOLD = 10  # rows that an alarm stays on after the last value beyond the threshold
_GAP = 10  # rows to either side of a maximum that belong to its cluster
_EXPECTED = 3  # clusters in as many rows as the history has: below, the tail is extended
_TAIL = 12  # maxima that it is then estimated from
_EPSILON = 1e-12  # the least mean excess, where the largest maxima are equal
_RIDGE = 1e-3  # of the mean variance, added to all: near-duplicate sensors make the covariance singular
_MEMORY = 0.2  # weight of the newest row in MEWMA
_EXPLAINED = 0.9  # share of the variance that is left out of Q


def z_mean(history: Array) -> Score:
    """The mean over the stretch, in standard deviations of the history from its mean.

    >>> score = z_mean(np.array([[0.0, 0.0], [2.0, 4.0]]))
    >>> score(np.empty((0, 2)), np.array([[4.0, 4.0]]))
    array([3., 1.])
    """
    scaled = _scaling(history)
    return lambda _, rows: np.abs(scaled(rows).mean(axis=0))


def z_max(history: Array) -> Score:
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


def _by_dimension(kind: str, history: Array) -> Score:
    """The mean over the stretch of the scores that a detector of PyOD keeps for each dimension."""
    with _quietly():
        detector = getattr(import_module(f"pyod.models.{kind.lower()}"), kind)()
        detector.fit(history[:: -(-len(history) // _LARGEST)])

    def score(_: Array, rows: Array) -> Array:
        with _quietly():
            detector.decision_function(rows)  # which ranks the rows among those of the history
        return np.asarray(detector.O)[-len(rows) :].mean(axis=0)

    return score


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
    "ecod": partial(_by_dimension, "ECOD"),
    "copod": partial(_by_dimension, "COPOD"),
    "skchange": skchange,
}


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


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the warnings of packages about each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


Flags = NDArray[np.bool_]
Statistic = Callable[[Array], Array]  # rows, (T, K) -> (T,)
Chart = Callable[[Array], Statistic]


def t2(history: Array) -> Statistic:
    """Hotelling's T2: z'Qz of readings in standard deviations, Q the inverse of the shrunk covariance."""
    scaled = _scaling_moving(history)
    Q = _precision(scaled(history))
    return lambda rows: _quadratic(scaled(rows), Q)


def mewma(history: Array) -> Statistic:
    """T2 of w_t = 0.2 z_t + 0.8 w_{t-1}, which starts from 0 (Lowry et al. 1992)."""
    from scipy.signal import lfilter

    scaled = _scaling_moving(history)
    Q = _precision(scaled(history)) * (2.0 - _MEMORY) / _MEMORY  # of w once it is stationary
    return lambda rows: _quadratic(lfilter([_MEMORY], [1.0, _MEMORY - 1.0], scaled(rows), axis=0), Q)


def pca_q(history: Array) -> Statistic:
    """Squared length of what the principal components with 90 % of the variance leave of a row."""
    scaled = _scaling_moving(history)
    _, size, directions = np.linalg.svd(scaled(history), full_matrices=False)
    explained = np.cumsum(size**2) / np.sum(size**2)
    rest = directions[min(int(np.searchsorted(explained, _EXPLAINED)) + 1, len(directions) - 1) :]
    return lambda rows: np.sum((scaled(rows) @ rest.T) ** 2, axis=1)


def ridge(history: Array) -> Statistic:
    """Largest residual of a sensor given the others now and all a row before, in standard deviations.

    One inverse has all regressions: row k of P = (Y'Y/T + r I)^-1 is proportional to (1, -b), b the coefficients of the
    ridge regression of column k of Y = (z_t, z_{t-1}) on the others.
    """
    scaled = _scaling_moving(history)
    y = _with_past(scaled(history))
    P = np.linalg.inv(y.T @ y / len(y) + _RIDGE * np.eye(y.shape[1]))[:, : y.shape[1] // 2]
    spread = (y @ P).std(axis=0)
    return lambda rows: np.abs(_with_past(scaled(rows)) @ P / spread).max(axis=1)


CHARTS: dict[str, Chart] = {"T2": t2, "MEWMA": mewma, "PCA-Q": pca_q, "ridge": ridge}


def _scaling_moving(history: Array) -> Callable[[Array], Array]:
    """The same without the sensors that are constant in the history."""
    moving = np.ptp(history, axis=0) > 0
    if not moving.any():
        raise ValueError("no sensor varies in the history, or in half of it: give a longer one")
    mean, spread = history[:, moving].mean(axis=0), history[:, moving].std(axis=0)
    return lambda rows: (rows[:, moving] - mean) / spread


def _precision(z: Array) -> Array:
    from sklearn.covariance import ledoit_wolf

    S = ledoit_wolf(z)[0]
    inverse: Array = np.linalg.inv(S + _RIDGE * np.trace(S) / len(S) * np.eye(len(S)))
    return inverse


def _quadratic(z: Array, Q: Array) -> Array:
    return np.einsum("tk,tk->t", z @ Q, z)


def _with_past(z: Array) -> Array:
    """Each row beside the one before; the first beside itself."""
    return np.hstack([z, np.vstack([z[:1], z[:-1]])])


def held_out(chart: Chart, history: Array) -> Array:
    """The statistic on each half of the history, learnt from the other half."""
    first, second = np.array_split(history, 2)
    return np.concatenate([chart(second)(first), chart(first)(second)])


class Threshold(NamedTuple):
    """level: where alarms begin. excess: how much higher it is where they are e times as rare, above 0."""

    level: float
    excess: float


def threshold(values: Array, rate: float) -> Threshold:
    """The level that clusters of values pass `rate` times a row.

    A cluster is a maximum with ten rows to either side, the largest first. Where fewer than three are expected in as
    many rows as there are, the tail is taken as exponential beyond the 13th largest maximum u: with the mean excess m
    of the twelve above it, u + m log(12/expected).
    """
    expected = rate * len(values)
    maxima = _maxima(values, max(ceil(expected), _TAIL + 1))
    if len(maxima) < 2 or len(maxima) < expected:
        raise ValueError(
            f"{len(values)} rows are too few for {expected:.3g} false alarms in them: give a longer history"
        )
    above = min(_TAIL, len(maxima) - 1)
    excess = max(float(np.mean(maxima[:above] - maxima[above])), _EPSILON)
    if expected >= _EXPECTED:
        return Threshold(float(maxima[ceil(expected) - 1]), excess)
    return Threshold(float(maxima[above] + excess * np.log(above / expected)), excess)


def _maxima(values: Array, most: int) -> Array:
    """The largest values, without those next to a larger one."""
    left = values.copy()
    maxima: list[float] = []
    while len(maxima) < most and left[t := int(left.argmax())] > -np.inf:
        maxima.append(left[t])
        left[max(0, t - _GAP) : t + _GAP + 1] = -np.inf
    return np.array(maxima)


def held(values: Array, rows: int = HOLD) -> Array:
    """The largest value of each row and of the nine before: an alarm is on where it is beyond the threshold.

    >>> held(np.array([0.0, 2.0, 1.0, 0.0, 0.0]), 3)
    array([0., 2., 2., 2., 1.])
    """
    return sliding_window_view(np.r_[np.full(rows - 1, -np.inf), values], rows).max(axis=1)
