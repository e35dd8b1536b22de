"""Windows told whole: every sensor at once, and what one such window says about two sets."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from eccaht.arrays import Array, Index
from eccaht.covariance.ridge import with_ridge
from eccaht.model.rows import Excess
from eccaht.problem import Problem


class WholeWindows:
    """The noise of whole windows, each sensor with the instrument's own on top; values may be missing (NaN).

    excess: what missing rows add to that noise.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._covariance: Array | None = None
        self._factors: dict[bytes, Array] = {}

    def contrast(self, x: Array, difference: Array, excess: Excess | None = None) -> tuple[Array, float, float]:
        """The weighted sum that tells two mean vectors apart as well as the window does: weights, reading, noise."""
        present = np.flatnonzero(~np.isnan(x))
        c, factor = np.zeros(self._problem.size), self._factor(present, excess)
        solved = cho_solve((factor, True), difference[present])
        if (size := np.abs(solved).sum()) > 0:
            c[present] = solved * (self._problem.budget / size)
        noise = float(np.linalg.norm(factor.T @ c[present]))
        return c, float(c[present] @ x[present]), noise

    def _factor(self, present: Index, excess: Excess | None) -> Array:
        """The Cholesky factor of the present sensors' covariance; those of full windows are kept."""
        if self._covariance is None:
            problem = self._problem
            self._covariance = with_ridge(problem.covariance, problem.readout_noise**2).dense()
        block = self._covariance[np.ix_(present, present)]
        if excess is not None:
            return np.asarray(np.tril(cho_factor(block + excess.block(present), lower=True)[0]))
        key = present.tobytes()
        if key not in self._factors:
            self._factors[key] = np.tril(cho_factor(block, lower=True)[0])
        return self._factors[key]
