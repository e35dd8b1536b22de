"""Windows told whole: every sensor at once, and what one such window says about two sets."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from eccaht.arrays import Array, Index
from eccaht.covariance.ridge import with_ridge
from eccaht.problem import Problem


class WholeWindows:
    """The noise of whole windows, each sensor with the instrument's own on top; values may be missing (NaN)."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._covariance: Array | None = None
        self._factors: dict[bytes, Array] = {}

    def contrast(self, x: Array, difference: Array) -> tuple[Array, float, float]:
        """The weighted sum that tells two mean vectors apart as well as the window does: weights, reading, noise."""
        present = np.flatnonzero(~np.isnan(x))
        c = np.zeros(self._problem.size)
        solved = cho_solve((self._factor(present), True), difference[present])
        if (size := np.abs(solved).sum()) > 0:
            c[present] = solved * (self._problem.budget / size)
        noise = float(np.linalg.norm(self._factor(present).T @ c[present]))
        return c, float(c[present] @ x[present]), noise

    def _factor(self, present: Index) -> Array:
        key = present.tobytes()
        if key not in self._factors:
            if self._covariance is None:
                problem = self._problem
                self._covariance = with_ridge(problem.covariance, problem.readout_noise**2).dense()
            self._factors[key] = cho_factor(self._covariance[np.ix_(present, present)], lower=True)[0]
            self._factors[key] = np.tril(self._factors[key])
        return self._factors[key]
