"""A model and what checks and pictures derive from it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from eccaht.arrays import Array
from eccaht.covariance import Diagonal, effective_rank
from eccaht.diagnose.memory import Memory, memory
from eccaht.model.history import PROBABILITIES
from eccaht.model.model import Model


class ModelView:
    """A model and what the checks and pictures derive from it, each computed once.

    advise: whether checks say what to do, for which they try it out.
    """

    def __init__(self, model: Model, *, advise: bool = True) -> None:
        self.model, self.history, self.advise = model, model.summary, advise
        self.names, self.size, self.n_windows = model.names, len(model.names), model.n_windows

    @cached_property
    def quiet(self) -> ModelView:
        """The same for checks that give no advice."""
        return ModelView(self.model, advise=False) if self.advise else self

    @cached_property
    def covariance(self) -> Array:
        """The model's, (K, K)."""
        return self.model.covariance.dense()

    @cached_property
    def believed(self) -> Array:
        """Correlations that the model believes in, (K, K)."""
        return _correlation(self.covariance)

    @cached_property
    def observed(self) -> Array:
        """Correlations before any shrinkage: within the halves where the model keeps them, else the believed ones."""
        return _correlation(self.history.half_covariances.mean(axis=0)) if self.has_halves else self.believed

    @cached_property
    def eigenvalues(self) -> Array:
        """Of the believed correlations, ascending."""
        return np.asarray(np.linalg.eigvalsh(self.believed), dtype=np.float64)

    @cached_property
    def rank(self) -> float:
        """Effective rank (Shannon) of the believed correlations."""
        return effective_rank(Diagonal(np.maximum(self.eigenvalues, np.finfo(float).eps)))

    @property
    def has_halves(self) -> bool:
        """The covariances of the two halves are there (up to 500 sensors)."""
        return len(self.history.half_covariances) == 2

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """ "continuous" or "status", for each sensor."""
        kinds = {column.name: column.kind for column in self.model.columns if column.kept}
        return tuple(kinds.get(name, "") for name in self.names)

    @cached_property
    def memory(self) -> Memory:
        """What the windows remember of each other."""
        return memory(self.history.autocorrelation, self.n_windows)

    @cached_property
    def variance(self) -> Array:
        """Of the windows, before any shrinkage, (K,)."""
        if not self.has_halves:
            return self.covariance.diagonal()
        means, half = self.history.block_means, len(self.history.block_means) // 2
        apart = means[:half].mean(axis=0) - means[half:].mean(axis=0) if half else np.zeros(self.size)
        within: Array = self.history.half_covariances.diagonal(axis1=1, axis2=2).mean(axis=0)
        return within + 0.25 * apart**2

    @cached_property
    def deviation(self) -> Array:
        """1 - W' of each sensor: how far its quantile-quantile plot is from a line, less what chance does, (K,)."""
        z, q = ndtri(PROBABILITIES), self.history.quantiles
        z, q = z / np.linalg.norm(z), q - q.mean(axis=0)  # the probabilities are symmetric: z has mean 0
        fit = (z @ q) ** 2 / np.maximum((q**2).sum(axis=0), np.finfo(float).tiny)
        chance = 6.0 * self.memory.time / self.n_windows  # exceeded by one normal sensor in several hundred
        return np.maximum(1.0 - fit - chance, 0.0)

    @cached_property
    def drift(self) -> tuple[Array, Array]:
        """Share of each variance between stretches beyond what the fast part explains, and what that explains; (K,)."""
        means, sizes = self.history.block_means, self.history.block_sizes
        if len(sizes) < 3:
            return np.zeros(self.size), np.zeros(self.size)
        centre = sizes @ means / sizes.sum()
        squares = (means - centre) ** 2
        variance = np.maximum(self.variance, np.finfo(float).tiny)
        free = len(sizes) - 1
        expected = (1.0 - self.memory.plateau) * self.memory.variance_of_mean(round(sizes.mean()))
        between = (sizes @ squares) / sizes.mean() / free / variance
        significant = free * between > chi2.isf(1e-3 / self.size, free) * expected
        return np.where(significant, np.clip(between - expected, 0.0, 1.0), 0.0), expected


def _correlation(S: Array) -> Array:
    root = np.sqrt(np.maximum(S.diagonal(), np.finfo(float).tiny))
    correlation: Array = S / root / root[:, None]
    np.fill_diagonal(correlation, 1.0)
    return correlation
