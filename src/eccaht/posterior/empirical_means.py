"""The mean of each stream, estimated as if it alone were measured."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from eccaht.arrays import Array, frozen
from eccaht.posterior.protocol import Belief, Capabilities
from eccaht.problem import Problem
from eccaht.scales import SMALLEST
from eccaht.stored import check_bounded, check_unmeasured


class EmpiricalMeans(Belief):
    """Marginal least squares: mean_k = sum(c_k r / v) / sum(c_k^2 / v), r = y - c'mean, v = c'S c.

    For single-stream readings this is the average reading, and the sum of c_k^2 / v is the number of readings over the
    variance. Scores are means in units of the stream's own shift, so that an anomalous stream tends to 1 and a nominal
    one to 0 whatever the size and sign of its shift; a stream not measured yet has 0.

    >>> belief = EmpiricalMeans(Problem(np.eye(2), shift=[2.0, -4.0], n_anomalies=1, budget=1.0))
    >>> for y in (-3.0, -5.0):
    ...     belief.update(np.array([0.0, 1.0]), y)
    >>> belief.scores, belief.variances
    (array([0., 1.]), array([   inf, 0.03125]))
    """

    can = Capabilities(log_odds=False)

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._sums = np.zeros(problem.size)  # sum of c_k r / v
        self._precisions = np.zeros(problem.size)  # sum of c_k^2 / v
        self._scores: Array | None = None

    @property
    def scores(self) -> Array:
        """Means over shifts."""
        if self._scores is None:
            known = self._precisions > 0.0
            scale = np.where(known, self._precisions * self.problem.shift, 1.0)
            self._scores = frozen(self._sums / scale)
        return self._scores

    @property
    def variances(self) -> Array:
        """Variance of each score; infinite where nothing was measured."""
        with np.errstate(divide="ignore"):
            return 1.0 / (self._precisions * self.problem.shift**2)

    @property
    def unmeasured(self) -> Array:
        """Streams that no reading has touched."""
        return (self._precisions == 0.0).nonzero()[0]

    @property
    def beliefs(self) -> Array:
        """Posterior probability of the shift given the stream's own mean."""
        problem = self.problem
        n, K = problem.known_number, problem.size
        evidence = problem.shift * (self._sums - 0.5 * problem.shift * self._precisions)
        return expit(np.log(n / (K - n)) + evidence)

    def update(self, c: Array, y: float, inflation: float = 1.0) -> None:
        """Add one reading."""
        problem = self.problem
        support = (np.abs(c) > SMALLEST * np.abs(c).max()).nonzero()[0]  # squares of less would vanish
        v, weights = inflation * problem.noise_variance(c), c[support]
        r = y - float(weights @ problem.mean[support])
        self._sums[support] += weights * (r / v)
        self._precisions[support] += weights**2 / v
        self._scores = None

    def state(self) -> dict[str, Array]:
        """What a file must keep."""
        return {"sums": self._sums, "precisions": self._precisions}

    def restore(self, state: dict[str, Array], n_told: int) -> None:
        """Go on from a kept state."""
        sums, precisions = state["sums"], state["precisions"]
        check_bounded(sums, "sums of readings")
        check_bounded(precisions, "precisions")
        check_unmeasured(precisions, sums, "sums and precisions")
        if (precisions < 0).any() or (precisions.any() and not n_told):
            raise ValueError("its precisions are not those of its readings")
        self._sums[:], self._precisions[:] = sums, precisions
        self._scores = None
        with np.errstate(over="ignore", divide="ignore"):
            check_bounded(self.scores, "means", 1e60)
        check_bounded(self.variances[precisions > 0], "variances", 1e60)
