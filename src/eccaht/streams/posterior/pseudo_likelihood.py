"""One score a stream, as if no other were anomalous: the paper's log-likelihood ratio (eq. 3 and 4), or its mean.

Where the mean of the problem was estimated, readings are first made independent ones for a mean that is known, as the
joint likelihood makes them (`SufficientStatistics`).
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np
from scipy.special import expit

from eccaht.base.arrays import SMALLEST, Array, Index, check_bounded, check_unmeasured, frozen, support_of
from eccaht.base.codec import Field, Part, Sizes
from eccaht.streams.posterior.protocol import Belief, Capabilities
from eccaht.streams.posterior.shared_noise import whitened
from eccaht.streams.posterior.statistics import SufficientStatistics
from eccaht.streams.problem import Problem
from eccaht.streams.shifts import log_ratio

_SHORT = 512  # up to here all streams at once are faster than those with weight
_NONE: Index = np.empty(0, dtype=np.intp)


def whole_evidence(problem: Problem) -> SufficientStatistics | None:
    """What all readings say together, which readings after them need where the mean was estimated."""
    return None if problem.estimated_from is None else SufficientStatistics(problem)


class PseudoLikelihood(Belief):
    """Scores l(k) = log(n/(K-n)) + sum over readings of (h_k r - h_k^2/2) / v.

    h = shift*c, r = y - c'mean, v = c'S c. A stream without weight in c keeps its score.

    >>> problem = Problem(np.eye(3), shift=2.0, n_anomalies=1, budget=1.0)
    >>> belief = PseudoLikelihood(problem)
    >>> belief.update(np.array([1.0, 0.0, 0.0]), 2.0)
    >>> belief.scores - belief.scores[1]
    array([2., 0., 0.])
    """

    FIELDS = (Field("_scores", ("K",)), Part("_whole"))

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._whole = whole_evidence(problem)
        n, K = problem.known_number, problem.size
        self._scores = np.full(K, np.log(n / (K - n)))
        self._view = frozen(self._scores.view())

    @property
    def scores(self) -> Array:
        return self._view

    def update(self, c: Array, y: float) -> None:
        problem = self.problem
        if self._whole is not None:
            self._whole.add(c, y)
            self._take_newest(self._whole)
            return
        known = problem.known(c)
        v, r, only = known.variance, y - known.mean, known.only
        if only >= 0:  # the same arithmetic, on one number
            moved, scores = problem.shift.item(only) * c.item(only), self._scores
            scores[only] = scores.item(only) + log_ratio(moved, r, v)
        elif c.size <= _SHORT:
            self._scores += log_ratio(problem.shift * c, r, v)  # eq. 3
        else:
            support = support_of(c)
            self._scores[support] += log_ratio(problem.shift[support] * c[support], r, v)

    def update_together(self, C: Array, y: Array) -> None:
        """Add the log-likelihood ratio of each stream alone against none: h_k'G^-1 r - h_k'G^-1 h_k / 2."""
        if self._whole is not None:
            self._whole.add_together(C, y)
            self._take_newest(self._whole)
            return
        rows, r = whitened(self.problem, C, y)
        h = rows * self.problem.shift
        self._scores += h.T @ r - 0.5 * (h * h).sum(axis=0)

    def _take_newest(self, whole: SufficientStatistics) -> None:
        for h, r in whole.newest or ():
            self._scores += log_ratio(h[:-1], r, 1.0)

    def twin(self) -> PseudoLikelihood:
        twin = type(self)(self.problem)
        twin._scores[:], twin._whole = self._scores, deepcopy(self._whole, {id(self.problem): self.problem})
        return twin

    def check_restored(self, sizes: Sizes) -> None:
        self._view = frozen(self._scores.view())
        if not sizes["t"] and (self._scores != type(self)(self.problem).scores).any():
            raise ValueError("its scores moved without a reading")


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
    FIELDS = (Field("_sums", ("K",)), Field("_precisions", ("K",), low=0.0), Part("_whole"))

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._whole = whole_evidence(problem)
        self._sums = np.zeros(problem.size)  # sum of c_k r / v
        self._precisions = np.zeros(problem.size)  # sum of c_k^2 / v
        self._scores: Array | None = None  # None: to be worked out anew, with the two below
        self._variances: Array = np.empty(0)
        self._waiting = problem.size  # streams that no reading has touched

    @property
    def scores(self) -> Array:
        """Means over shifts, a read-only view."""
        return frozen(self._current()[0].view())

    @property
    def variances(self) -> Array:
        """Variance of each score, a read-only view; infinite where nothing was measured."""
        return frozen(self._current()[1].view())

    @property
    def unmeasured(self) -> Index:
        """Streams that no reading has touched."""
        self._current()
        return (self._precisions == 0.0).nonzero()[0] if self._waiting else _NONE

    def _current(self) -> tuple[Array, Array]:
        """Scores and variances, of all streams if they are not there yet."""
        if self._scores is None:
            known = self._precisions > 0.0
            self._scores = self._sums / np.where(known, self._precisions * self.problem.shift, 1.0)
            with np.errstate(divide="ignore"):
                self._variances = 1.0 / (self._precisions * self.problem.shift**2)
            self._waiting = known.size - int(known.sum())
        return self._scores, self._variances

    @property
    def beliefs(self) -> Array:
        """Posterior probability of the shift given the stream's own mean."""
        problem = self.problem
        n, K = problem.known_number, problem.size
        return expit(np.log(n / (K - n)) + log_ratio(problem.shift, self._sums, count=self._precisions))

    def update(self, c: Array, y: float) -> None:
        problem = self.problem
        if self._whole is not None:
            self._whole.add(c, y)
            self._take_newest(self._whole)
            return
        known = problem.known(c)
        v, k = known.variance, known.only
        if k >= 0:
            self._update_one(k, c.item(k), y, v)
            return
        support = (np.abs(c) > SMALLEST * np.abs(c).max()).nonzero()[0]  # squares of less would vanish
        weights = c[support]
        r = y - float(weights @ problem.mean[support])
        self._sums[support] += weights * (r / v)
        self._precisions[support] += weights**2 / v
        self._scores = None

    def update_together(self, C: Array, y: Array) -> None:
        """Add readings of one moment: generalised least squares of each stream, c_k'G^-1 r / c_k'G^-1 c_k."""
        if self._whole is not None:
            self._whole.add_together(C, y)
            self._take_newest(self._whole)
            return
        rows, r = whitened(self.problem, C, y)
        self._sums += rows.T @ r
        self._precisions += (rows * rows).sum(axis=0)
        self._scores = None

    def _take_newest(self, whole: SufficientStatistics) -> None:
        for h, r in whole.newest or ():
            weights = h[:-1] / self.problem.shift
            self._sums += weights * r
            self._precisions += weights**2
        self._scores = None

    def _update_one(self, k: int, weight: float, y: float, v: float) -> None:
        """Add a reading of one stream: the same arithmetic, on numbers instead of vectors."""
        scores, variances = self._current()
        problem, before = self.problem, self._precisions.item(k)
        total = self._sums.item(k) + weight * ((y - weight * problem.mean.item(k)) / v)
        precision, shift = before + weight * weight / v, problem.shift.item(k)
        self._sums[k], self._precisions[k] = total, precision
        if precision > 0.0:
            scores[k], variances[k] = total / (precision * shift), 1.0 / (precision * (shift * shift))
            self._waiting -= before == 0.0

    def check_restored(self, sizes: Sizes) -> None:
        check_unmeasured(self._precisions, self._sums, "sums and precisions")
        if self._precisions.any() and not sizes["t"]:
            raise ValueError("its precisions are not those of its readings")
        self._scores = None
        with np.errstate(over="ignore", divide="ignore"):
            check_bounded(self.scores, "means", 1e60)
        check_bounded(self.variances[self._precisions > 0], "variances", 1e60)
