"""Control charts that people watch plants with today, ten lines each, and the one rule for all their thresholds.

A chart learns from the rows of a history, (T, K), and then gives one number for each new row: the higher, the more
suspect. Its threshold comes from the history alone: the statistic on each half of it, learnt from the other half, and
then the level that clusters of values pass at the given rate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array

HOLD = 10  # rows that an alarm stays on after the last value beyond the threshold
_GAP = 10  # rows to either side of a maximum that belong to its cluster
_FEWEST, _LARGEST = 3, 12  # expected clusters below which the tail is extended, and how many it is estimated from
_RIDGE = 1e-3  # of the mean variance, added to all: near-duplicate sensors make the covariance singular
_MEMORY = 0.2  # weight of the newest row in MEWMA
_EXPLAINED = 0.9  # share of the variance that is left out of Q

Flags = NDArray[np.bool_]
Statistic = Callable[[Array], Array]  # rows, (T, K) -> (T,)
Chart = Callable[[Array, int], Statistic]  # history, seed


def t2(history: Array) -> Statistic:
    """Hotelling's T2: z'Qz of readings in standard deviations, Q the inverse of the shrunk covariance."""
    scaled = _scaling(history)
    Q = _precision(scaled(history))
    return lambda rows: _quadratic(scaled(rows), Q)


def mewma(history: Array) -> Statistic:
    """T2 of w_t = 0.2 z_t + 0.8 w_{t-1}, which starts from 0 (Lowry et al. 1992)."""
    from scipy.signal import lfilter

    scaled = _scaling(history)
    Q = _precision(scaled(history)) * (2.0 - _MEMORY) / _MEMORY  # of w once it is stationary
    return lambda rows: _quadratic(lfilter([_MEMORY], [1.0, _MEMORY - 1.0], scaled(rows), axis=0), Q)


def pca_q(history: Array) -> Statistic:
    """Squared length of what the principal components with 90 % of the variance leave of a row."""
    scaled = _scaling(history)
    _, size, directions = np.linalg.svd(scaled(history), full_matrices=False)
    explained = np.cumsum(size**2) / np.sum(size**2)
    rest = directions[min(int(np.searchsorted(explained, _EXPLAINED)) + 1, len(directions) - 1) :]
    return lambda rows: np.sum((scaled(rows) @ rest.T) ** 2, axis=1)


def ridge(history: Array) -> Statistic:
    """Largest residual of a sensor given the others now and all a row before, in standard deviations.

    One inverse has all regressions: row k of P = (Y'Y/T + r I)^-1 is proportional to (1, -b), b the coefficients of the
    ridge regression of column k of Y = (z_t, z_{t-1}) on the others.
    """
    scaled = _scaling(history)
    y = _with_past(scaled(history))
    P = np.linalg.inv(y.T @ y / len(y) + _RIDGE * np.eye(y.shape[1]))[:, : y.shape[1] // 2]
    spread = (y @ P).std(axis=0)
    return lambda rows: np.abs(_with_past(scaled(rows)) @ P / spread).max(axis=1)


def isolation_forest(history: Array, seed: int) -> Statistic:
    """scikit-learn's isolation forest with its default options, less its score."""
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(random_state=seed, n_jobs=1).fit(history)
    return lambda rows: -forest.score_samples(rows)


def _unseeded(chart: Callable[[Array], Statistic], history: Array, seed: int) -> Statistic:  # noqa: ARG001
    return chart(history)


CHARTS: dict[str, Chart] = {
    "T2": partial(_unseeded, t2),
    "MEWMA": partial(_unseeded, mewma),
    "PCA-Q": partial(_unseeded, pca_q),
    "ridge": partial(_unseeded, ridge),
    "isolation-forest": isolation_forest,
}


def _scaling(history: Array) -> Callable[[Array], Array]:
    """Rows less the mean of the history in its standard deviations, without the sensors that are constant there."""
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


# -- thresholds and alarms -----------------------------------------------------------------------------


def held_out(chart: Chart, history: Array, seed: int) -> Array:
    """The statistic on each half of the history, learnt from the other half."""
    first, second = np.array_split(history, 2)
    return np.concatenate([chart(second, seed)(first), chart(first, seed)(second)])


def threshold(values: Array, rate: float) -> float:
    """The level that clusters of values pass `rate` times a row.

    A cluster is a maximum with ten rows to either side, the largest first. Where fewer than three are expected in as
    many rows as there are, the tail is taken as exponential beyond the 13th largest maximum u: with the mean excess m
    of the twelve above it, u + m log(12/expected).

    >>> threshold(np.tile(np.r_[np.zeros(99), 1.0], 50) * np.repeat(np.arange(50.0), 100), 5 / 5000)
    45.0
    """
    expected = rate * len(values)
    maxima = _maxima(values, max(ceil(expected), _LARGEST + 1))
    if len(maxima) < 2 or len(maxima) < expected:
        raise ValueError(
            f"{len(values)} rows are too few for {expected:.3g} false alarms in them: give a longer history"
        )
    if expected >= _FEWEST:
        return float(maxima[ceil(expected) - 1])
    last, above = maxima[-1], maxima[:-1]
    return float(last + np.mean(above - last) * np.log(len(above) / expected))


def _maxima(values: Array, most: int) -> Array:
    """The largest values, without those next to a larger one."""
    left = values.copy()
    maxima: list[float] = []
    while len(maxima) < most and left[t := int(left.argmax())] > -np.inf:
        maxima.append(left[t])
        left[max(0, t - _GAP) : t + _GAP + 1] = -np.inf
    return np.array(maxima)


def held_on(passed: Flags, rows: int = HOLD) -> Flags:
    """Where an alarm is on: a value of this row or of one of the nine before has passed.

    >>> held_on(np.array([0, 1, 0, 0, 0], dtype=bool), 3).astype(int)
    array([0, 1, 1, 1, 0])
    """
    many = np.cumsum(np.r_[0, passed])
    after = np.arange(1, len(passed) + 1)
    on: Flags = many[after] > many[np.maximum(after - rows, 0)]
    return on
