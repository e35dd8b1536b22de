"""How much noisier a window is that has fewer rows than those of the history.

The mean of m of the M rows of a window is the mean of all M plus an error. Where rows are missing at random,
that error is uncorrelated with the full mean and has the covariance (1/m - 1/M) W, with W the covariance of rows within
a window: exact for sampling without replacement, however the rows depend on each other in time. With independent rows
W = M S, and the noise grows M/m times; where rows hardly change within a window, W is small and a few rows suffice.
Where consecutive rows are lost, as at the end of a file that still grows, dependent rows err more than that; by what
factor is measured on the history, for runs of rows at either end of a window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.plants.data.windows import Cut
from eccaht.streams.covariance import Covariance
from eccaht.streams.excess import Excess

if TYPE_CHECKING:
    from eccaht.plants.model.model import Model

SHARES: Array = np.linspace(0.0, 1.0, 9)  # of the usual rows, at which the factor for runs is kept
SHARES.flags.writeable = False
_WINDOWS, _NUMBERS = 400, 8_000_000  # the most windows, and readings, that are looked at row by row
_FEWEST = 50


def sampled_rows(cut: Cut, full: NDArray[np.bool_], size: int) -> Index:
    """Which rows to look at, (n, M): n full windows spread over the history, the first M rows of each, M the median."""
    usual = int(np.median(cut.rows[full]))
    whole = np.flatnonzero(full & (cut.rows >= usual))
    count = min(len(whole), _WINDOWS, max(_FEWEST, _NUMBERS // (usual * size)))
    chosen = whole[np.linspace(0, len(whole) - 1, count).round().astype(np.intp)]
    return np.asarray(cut.first[chosen][:, None] + np.arange(usual))


def row_noise(rows: Array, covariance: Covariance | None) -> tuple[Array, Array]:
    """W, (1, K, K), and the factor for runs, (9,), from rows (n, M, K); without a covariance no W, (0, K, K).

    The factor is the largest over the sensors and, with W, over the principal combinations of their correlations.
    """
    n, M, K = rows.shape
    if M < 2:
        return np.zeros((0 if covariance is None else 1, K, K)), np.ones(SHARES.size)
    deviations = rows - rows.mean(axis=1, keepdims=True)
    flat = deviations.reshape(n * M, K)
    if covariance is None:
        own = np.square(flat).sum(axis=0) / (n * (M - 1))
        return np.zeros((0, K, K)), _runs(deviations, np.eye(K), own)
    W = flat.T @ flat / (n * (M - 1))
    S = covariance.dense()
    spread = np.sqrt(S.diagonal())
    principal = np.linalg.eigh(S / np.outer(spread, spread))[1] / spread[:, None]
    directions = np.hstack([np.diag(1.0 / spread), principal])
    return W[None], _runs(deviations, directions, np.einsum("kd,kd->d", directions, W @ directions))


def _runs(deviations: Array, directions: Array, noise: Array) -> Array:
    """Error variance of the mean of consecutive rows over that of as many random rows, at each of SHARES."""
    M = deviations.shape[1]
    moving = noise > 1e-12 * noise.max(initial=np.finfo(float).tiny)
    sums, directions, noise = np.cumsum(deviations, axis=1), directions[:, moving], noise[moving]
    factors = np.ones(SHARES.size)
    for place, m in enumerate(np.clip(np.rint(SHARES * M).astype(np.intp), 1, M - 1).tolist()):
        ends = np.concatenate([sums[:, m - 1], sums[:, M - m - 1]]) @ directions / m
        more = np.square(ends).mean(axis=0) / (noise * (1.0 / m - 1.0 / M))
        factors[place] = more.max(initial=1.0)
    return factors


@dataclass(frozen=True)
class RowNoise:
    """What a model knows about windows with missing rows.

    usual: rows of a window; delivered: share of them that each sensor delivers, (K,).
    variances: of rows within a window, (K,); within: their covariance times a vector. runs: factor at each of SHARES.
    """

    usual: float
    delivered: Array
    variances: Array
    within: Callable[[Array], Array]
    runs: Array

    @staticmethod
    def of(model: Model, names: tuple[str, ...], covariance: Covariance) -> RowNoise:
        """For some of the sensors, with the covariance of their windows.

        Models of many sensors do not keep W: their rows are treated as independent.
        """
        kept, chosen = model.summary, model.places(names)
        usual = float(kept.row_counts[0])
        imputed = {column.name: column.imputed for column in model.columns}
        delivered = np.array([1.0 - imputed[name] for name in names])
        if len(kept.within):
            W = kept.within[0][np.ix_(chosen, chosen)]
            return RowNoise(usual, delivered, W.diagonal(), lambda c: np.asarray(W @ c), kept.runs)
        return RowNoise(
            usual, delivered, usual * covariance.diagonal(), lambda c: usual * covariance.matvec(c), kept.runs
        )

    def excess(self, rows: Array) -> Excess | None:
        """The noise that missing rows add, given the number of readings of each sensor; None if no row is missing."""
        most = min(float(rows.max(initial=0.0)), self.usual)
        if most < 1.0:
            return None
        counts = np.clip(rows, 1.0, self.usual)
        expected = np.maximum(most * self.delivered, 1.0)
        own = np.where(rows > 0, np.maximum(1.0 / counts - 1.0 / expected, 0.0), 0.0)
        common = float(self._factor(most)) * (1.0 / most - 1.0 / self.usual)
        if not common and not own.any():
            return None
        return Excess(common, own * self._factor(counts) * self.variances, self.within)

    def _factor(self, rows: Array | float) -> Array:
        return np.interp(np.asarray(rows) / self.usual, SHARES, self.runs)
