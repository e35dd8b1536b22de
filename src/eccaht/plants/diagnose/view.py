"""A model and what checks and pictures derive from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from eccaht.base.arrays import Array
from eccaht.plants.model.history import PROBABILITIES
from eccaht.plants.model.model import Model
from eccaht.streams.covariance import Diagonal, effective_rank

_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Autocorrelations:
    """What the autocorrelations of K sensors up to lag L say.

    fast: (L+1, K), autocorrelation of the part that dies out, 0 from where it is lost in its sampling error.
    time: (K,), its integrated autocorrelation time, in windows: that many windows are worth one independent one.
    plateau: (K,), share of the variance whose autocorrelation has not died out at lag L.
    """

    fast: Array
    time: Array
    plateau: Array

    @property
    def time_of_products(self) -> Array:
        """Windows that are worth one independent one for a variance or covariance, 1 + 2 sum rho_k^2, (K,)."""
        return 2.0 * (self.fast**2).sum(axis=0) - 1.0

    def variance_of_mean(self, m: int) -> Array:
        """Variance of the mean of m consecutive windows, over that of one: [1 + 2 sum (1 - k/m) rho_k] / m, (K,)."""
        lags = np.arange(1, min(m, len(self.fast)))
        total = 1.0 + 2.0 * (1.0 - lags / m) @ self.fast[lags]
        return np.maximum(total, 1.0) / m  # negative correlation is not counted as a gain


def memory(autocorrelation: Array, n_windows: int) -> Autocorrelations:
    """Split (L+1, K) autocorrelations of n_windows windows into a part that dies out and a part that does not.

    The plateau is the mean over the last quarter of the lags where that exceeds three standard errors of white noise.
    What is left is summed by pairs of lags until a pair is within its own sampling error (Geyer's initial sequence).
    """
    lags, size = len(autocorrelation) - 1, autocorrelation.shape[1]
    if lags < 2:
        return Autocorrelations(np.ones((1, size)), np.ones(size), np.zeros(size))
    error = 1.0 / np.sqrt(n_windows)
    level = autocorrelation[-max(lags // 4, 1) :].mean(axis=0)
    plateau = np.where(level > 3.0 * error, np.minimum(level, 0.999), 0.0)
    fast = (autocorrelation - plateau) / (1.0 - plateau)
    fast[0] = 1.0
    pairs = fast[: 2 * ((lags + 1) // 2)].reshape(-1, 2, size).sum(axis=1)
    alive = np.logical_and.accumulate(pairs > 2.5 * np.sqrt(2.0) * error, axis=0)
    alive[0] = True
    kept = np.zeros(fast.shape, dtype=bool)
    kept[: 2 * len(alive)] = np.repeat(alive, 2, axis=0)
    fast = np.where(kept, fast, 0.0)
    return Autocorrelations(fast, np.maximum(2.0 * fast.sum(axis=0) - 1.0, 1.0), plateau)


class ModelView:
    """What the checks and pictures look at, each computed once; advise: whether checks try out what would help."""

    def __init__(self, model: Model, *, advise: bool = True) -> None:
        self.model, self.history, self.advise = model, model.summary, advise
        self.names, self.size, self.n_windows = model.names, len(model.names), model.n_windows

    @cached_property
    def covariance(self) -> Array:
        return self.model.covariance.dense()

    @cached_property
    def believed(self) -> Array:
        """Correlations of the model, (K, K)."""
        return _correlation(self.covariance)

    @cached_property
    def observed(self) -> Array:
        """Correlations before any shrinkage: within the halves where the model keeps them, else the model's own."""
        return _correlation(self.history.half_covariances.mean(axis=0)) if self.has_halves else self.believed

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues of the model's correlations, ascending."""
        return np.asarray(np.linalg.eigvalsh(self.believed), dtype=np.float64)

    @cached_property
    def rank(self) -> float:
        """Effective rank (Shannon) of the model's correlations."""
        return effective_rank(Diagonal(np.maximum(self.eigenvalues, np.finfo(float).eps)))

    @property
    def has_halves(self) -> bool:
        """Whether the model keeps the covariances of the two halves of its history (up to 500 sensors)."""
        return len(self.history.half_covariances) == 2

    def reported(self, what: str, otherwise: Any) -> list[Any]:
        """What the cleaning of the history reported of each sensor's column."""
        kept = {column.name: getattr(column, what) for column in self.model.columns if column.kept}
        return [kept.get(name, otherwise) for name in self.names]

    @cached_property
    def memory(self) -> Autocorrelations:
        """Autocorrelation of the windows, its short part and its plateau."""
        return memory(self.history.autocorrelation, self.n_windows)

    @cached_property
    def variance(self) -> Array:
        """Variance of the windows before any shrinkage, (K,)."""
        if not self.has_halves:
            return self.covariance.diagonal()
        means, half = self.history.block_means, len(self.history.block_means) // 2
        between = means[:half].mean(axis=0) - means[half:].mean(axis=0) if half else np.zeros(self.size)
        within: Array = self.history.half_covariances.diagonal(axis1=1, axis2=2).mean(axis=0)
        return within + 0.25 * between**2

    @cached_property
    def deviation(self) -> Array:
        """1 - W' of each sensor: how far its quantile-quantile plot is from a line, less what chance does, (K,)."""
        z, q = ndtri(PROBABILITIES), self.history.quantiles
        z, q = z / np.linalg.norm(z), q - q.mean(axis=0)  # the probabilities are symmetric: z has mean 0
        fit = (z @ q) ** 2 / np.maximum((q**2).sum(axis=0), _TINY)
        chance = 6.0 * self.memory.time / self.n_windows  # exceeded by one normal sensor in several hundred
        return np.maximum(1.0 - fit - chance, 0.0)

    @cached_property
    def drift(self) -> tuple[Array, Array]:
        """Shares of variance between stretches of the history, each (K,): beyond short memory, and due to it."""
        means, sizes = self.history.block_means, self.history.block_sizes
        if len(sizes) < 3:
            return np.zeros(self.size), np.zeros(self.size)
        squares = (means - sizes @ means / sizes.sum()) ** 2
        free = len(sizes) - 1
        expected = (1.0 - self.memory.plateau) * self.memory.variance_of_mean(round(sizes.mean()))
        between = (sizes @ squares) / sizes.mean() / free / np.maximum(self.variance, _TINY)
        significant = free * between > chi2.isf(1e-3 / self.size, free) * expected
        return np.where(significant, np.clip(between - expected, 0.0, 1.0), 0.0), expected


def _correlation(S: Array) -> Array:
    root = np.sqrt(np.maximum(S.diagonal(), _TINY))
    correlation: Array = S / root / root[:, None]
    np.fill_diagonal(correlation, 1.0)
    return correlation
