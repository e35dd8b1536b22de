"""How long readings remember each other: a fast part that dies out and a slow part that does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eccaht.arrays import Array

_STEPS = (1, 2, 5, 10, 15, 20, 30, 60)  # of seconds or minutes: lengths that people give windows
_HOURS = (1, 2, 3, 4, 6, 8, 12, 24)


@dataclass(frozen=True)
class Memory:
    """What the autocorrelations of K sensors up to lag L say.

    fast: (L+1, K), autocorrelation of the part that dies out, 0 from where it is lost in its sampling error.
    time: (K,), its integrated autocorrelation time, in windows: that many windows are worth one independent one.
    plateau: (K,), share of the variance that is still remembered at lag L.
    """

    fast: Array
    time: Array
    plateau: Array

    @property
    def time_of_products(self) -> Array:
        """Windows that are worth one independent one for a variance or covariance, 1 + 2 sum rho_k^2, (K,)."""
        return 2.0 * (self.fast**2).sum(axis=0) - 1.0

    def time_of(self, m: int) -> Array:
        """Integrated autocorrelation time, in windows of their own, of windows m times as long, (K,)."""
        return np.maximum(self.time / (m * self.variance_of_mean(m)), 1.0)

    def variance_of_mean(self, m: int) -> Array:
        """Variance of the mean of m consecutive windows, over that of one: [1 + 2 sum (1 - k/m) rho_k] / m, (K,)."""
        lags = np.arange(1, min(m, len(self.fast)))
        total = 1.0 + 2.0 * (1.0 - lags / m) @ self.fast[lags]
        return np.maximum(total, 1.0) / m  # negative correlation is never counted as gain


def memory(autocorrelation: Array, n_windows: int) -> Memory:
    """Split (L+1, K) autocorrelations of n_windows windows into their fast and slow parts.

    The plateau is the mean over the last quarter of the lags where that exceeds three standard errors of white noise.
    What is left is summed by pairs of lags until a pair is within its own sampling error (Geyer's initial sequence).
    """
    lags = len(autocorrelation) - 1
    if lags < 2:
        return Memory(np.ones_like(autocorrelation[:1]), *_nothing(autocorrelation.shape[1]))
    error = 1.0 / np.sqrt(n_windows)
    level = autocorrelation[-max(lags // 4, 1) :].mean(axis=0)
    plateau = np.where(level > 3.0 * error, np.minimum(level, 0.999), 0.0)
    fast = (autocorrelation - plateau) / (1.0 - plateau)
    fast[0] = 1.0
    pairs = fast[: 2 * ((lags + 1) // 2)].reshape(-1, 2, fast.shape[1]).sum(axis=1)
    alive = np.logical_and.accumulate(pairs > 2.5 * np.sqrt(2.0) * error, axis=0)
    alive[0] = True
    kept = np.repeat(alive, 2, axis=0)
    fast = np.where(np.vstack([kept, np.zeros((len(fast) - len(kept), kept.shape[1]), dtype=bool)]), fast, 0.0)
    return Memory(fast, np.maximum(2.0 * fast.sum(axis=0) - 1.0, 1.0), plateau)


def _nothing(size: int) -> tuple[Array, Array]:
    return np.ones(size), np.zeros(size)


def usual_lengths() -> list[float]:
    """Lengths that people give windows, in seconds: 5 s, 1 min, 15 min, 2 h, up to a week."""
    days = [86400.0 * x for x in range(2, 8)]
    return sorted({float(x) for x in _STEPS} | {60.0 * x for x in _STEPS} | {3600.0 * x for x in _HOURS} | set(days))
