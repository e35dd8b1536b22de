"""What a window says about a step in each stream, given all others; silent streams are integrated out exactly."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index

_LEAST = 1e-12
_PATTERNS = 64  # patterns of silent streams that are cached, or one for each plant that has its own Q

Floating = NDArray[Any]  # of double or of single precision


class Pattern(NamedTuple):
    """What silent streams S take from C, which is Q in units of the roots of its diagonal: C - through' through.

    silent: S, (m,). root: L^-1 with L L' = C_SS, (m, m). through: L^-1 C_S, (m, K). information: the diagonal of what
    is left, (K,), 0 for S itself. factor: on the scores that are left, (K,), see `Scores`. whole: by which a distance
    of those that are left is to be multiplied to be as large as one of all, in the mean.
    """

    silent: Index
    root: Array
    through: Array
    information: Array
    factor: Array
    whole: float

    def left(self, scores: Floating) -> Floating:
        """Scores, (..., K), without what they had of the silent streams."""
        rest = scores - (scores[..., self.silent] @ self.root.T) @ self.through
        rest[..., self.silent] = 0.0
        return np.asarray(rest * self.factor)


class Scores:
    """Scores g_k / sqrt(Q_kk) with g = Q (x - mean): N(0, 1) while nothing is wrong.

    precision: Q, (K, K), of all plants, or of each, (P, K, K).
    second: E, the second moments of x - mean as they were counted, (K, K), if Q^-1 is only close to them. Scores then
    vary as much where streams are silent as they do where none is, in units of their information: what is known of
    the whole, such as thresholds, holds for a part.
    """

    def __init__(
        self,
        precision: Array,
        dtype: type[np.float64] | type[np.float32] = np.float64,
        *,
        second: Array | None = None,
    ) -> None:
        self.precision, self._second = precision, second
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
            return self.complete(deviations), None
        scores, information = self.complete(np.where(silent, 0.0, deviations)), np.ones(deviations.shape)
        for p in np.flatnonzero(silent.any(axis=1)).tolist():
            pattern = self.pattern(silent[p], p)
            scores[p], information[p] = pattern.left(scores[p]), pattern.information
        return scores, information

    def pattern(self, silent: NDArray[np.bool_], plant: int = 0) -> Pattern:
        """What is left of one plant's Q; the last patterns are cached."""
        shared = self.precision.ndim == 2
        key = (0 if shared else plant, silent.tobytes())
        if key not in self._patterns:
            while len(self._patterns) >= (_PATTERNS if shared else max(_PATTERNS, len(self.precision))):
                del self._patterns[next(iter(self._patterns))]
            precision, root = (self.precision, self.root) if shared else (self.precision[plant], self.root[plant])
            self._patterns[key] = self._pattern(np.flatnonzero(silent), precision, root)
        return self._patterns[key]

    def complete(self, deviations: Array) -> Floating:
        """Scores of x - mean, (P, K), or (..., K) where all plants share Q, without silent streams."""
        rows: Floating = deviations.astype(self._scaled.dtype, copy=False)
        return rows @ self._scaled if self._scaled.ndim == 2 else (rows[:, None, :] @ self._scaled)[:, 0]

    def _pattern(self, silent: Index, precision: Array, root: Array) -> Pattern:
        rows = precision[silent] / root[silent, None] / root
        inverse = np.linalg.inv(np.linalg.cholesky(rows[:, silent]))
        through = inverse @ rows
        information = np.maximum(1.0 - np.einsum("mk,mk->k", through, through), 0.0)
        information[silent] = 0.0
        present = self.size - len(silent)
        pattern = Pattern(silent, inverse, through, information, np.ones(self.size), self.size / max(present, 1))
        return pattern if self._second is None else self._as_counted(pattern, precision / np.outer(root, root), root)

    def _as_counted(self, pattern: Pattern, C: Array, root: Array) -> Pattern:
        """The pattern with scores that vary as they were counted to; C: Q in units of its roots."""
        assert self._second is not None
        E = self._second * np.outer(root, root)
        left = C - pattern.through.T @ pattern.through
        left[pattern.silent], left[:, pattern.silent] = 0.0, 0.0
        usual, varies = (np.einsum("ij,ji->i", part @ E, part) for part in (C, left))  # variances of scores
        factor = np.sqrt(np.where(varies > _LEAST, usual * pattern.information / np.maximum(varies, _LEAST), 0.0))
        distance = float(np.einsum("ij,ji->i", left, E) @ factor)
        return pattern._replace(factor=factor, whole=float(np.einsum("ij,ji->", C, E)) / max(distance, _LEAST))
