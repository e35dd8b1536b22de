"""What a window says about a step in each stream, given all others; silent streams are integrated out exactly."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.incident.others import Free

_PATTERNS = 64  # patterns of silent streams that are cached

Floating = NDArray[Any]  # of double or of single precision


class Pattern(NamedTuple):
    """What is left where some streams are silent: Q of the others, 0 for the silent ones.

    scaled: (K, K), columns divided by the roots of the full Q_kk. information: its diagonal in units of Q_kk, (K,).
    """

    scaled: Array
    information: Array


class Scores:
    """Scores g_k / sqrt(Q_kk) with g = Q (x - mean): N(0, 1) while nothing is wrong.

    precision: Q, (K, K), of all plants, or of each, (P, K, K).
    """

    def __init__(self, precision: Array, dtype: type[np.float64] | type[np.float32] = np.float64) -> None:
        self.precision = precision
        self.size = precision.shape[-1]
        self.root = np.sqrt(precision.diagonal(axis1=-2, axis2=-1))  # of Q_kk, (K,) or (P, K)
        self._scaled = (precision / self.root[..., None, :]).astype(dtype)
        self._patterns: dict[tuple[int, bytes], Pattern] = {}

    def of(self, deviations: Array) -> tuple[Floating, Array | None]:
        """Scores of x - mean, (P, K), NaN where a stream is silent, and their variances, None where all are 1.

        A silent stream has score and variance 0.
        """
        silent = np.isnan(deviations)
        if not silent.any():
            return self._complete(deviations), None
        known = np.where(silent, 0.0, deviations)
        scores, information = self._complete(known), np.ones(deviations.shape)
        for p in np.flatnonzero(silent.any(axis=1)).tolist():
            pattern = self.pattern(silent[p], p)
            scores[p], information[p] = known[p] @ pattern.scaled, pattern.information
        return scores, information

    def pattern(self, silent: NDArray[np.bool_], plant: int = 0) -> Pattern:
        """What is left of one plant's Q; the last patterns are cached."""
        shared = self.precision.ndim == 2
        key = (0 if shared else plant, silent.tobytes())
        if key not in self._patterns:
            while len(self._patterns) >= _PATTERNS:
                del self._patterns[next(iter(self._patterns))]
            precision, root = (self.precision, self.root) if shared else (self.precision[plant], self.root[plant])
            left = Free.of(np.where(silent, np.nan, 0.0)[None], precision).Q[0]
            self._patterns[key] = Pattern(left / root, np.maximum(left.diagonal(), 0.0) / root**2)
        return self._patterns[key]

    def _complete(self, deviations: Array) -> Floating:
        rows: Floating = deviations.astype(self._scaled.dtype, copy=False)
        return rows @ self._scaled if self._scaled.ndim == 2 else (rows[:, None, :] @ self._scaled)[:, 0]
