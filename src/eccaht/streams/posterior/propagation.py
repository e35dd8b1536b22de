"""Marginals of very many streams by expectation propagation, at the cost of t^2 K for reading number t, t up to K.

The readings say r = H z + noise of the indicator z of the set, noise of variance 1. If z were Gaussian its posterior
would be known in closed form, and t readings of K streams need t x t matrices only. So each stream's prior, 0 or 1, is
replaced by a Gaussian (its site) of precision tau and shift nu, chosen such that, in the field of all others, the
Gaussian has the mean and the variance of the 0/1 variable (Minka 2001). That the set has n streams is one
reading more, of the sum of z.

One round of matching a reading is enough: the sites are kept from reading to reading. Searches in which they waited for
a 64th more readings took 1.1 to 2.7 times the readings.

More than K readings say no more than K weighted sums of them, by which they are replaced.
"""

import numpy as np
from scipy.linalg import cholesky, qr, solve_triangular
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.special import expit

from eccaht.base.arrays import Array, check_same
from eccaht.base.codec import Field
from eccaht.streams.sets import Moments, SetPrior

_COUNT_NOISE = 0.3  # standard deviation with which the number of anomalies is taken for known
_DAMPING = 0.7  # share of the new site in a step
_LEAST_PRECISION, _LEAST_VARIANCE = 0.02, 1e-9  # of a site; of a stream
_FARTHEST = 30.0  # log-odds
_ROUNDING = 1e-13  # of the largest diagonal entry: keeps almost noiseless readings factorable
_NEGLIGIBLE = 1e-8  # of the noise variance of a reading
_NEW = 1e-6  # share of a reading that earlier ones do not explain, below which all are factored anew


class Propagation:
    """Marginals and covariance of the indicators of a set of n of K streams.

    >>> settled = Propagation(SetPrior(4, 1, 1))
    >>> settled.add(np.array([6.0, 0.0, 0.0, 0.0]), 6.0)
    >>> settled.marginals.round(1)
    array([1., 0., 0., 0.])
    """

    FIELDS = (
        Field("rows", ("m", "K+1")),
        Field("n_readings", (), int),
        Field("_tau", ("K",), low=_LEAST_PRECISION),
        Field("_nu", ("K",)),
    )

    def __init__(self, prior: SetPrior) -> None:
        K, n = prior.n_streams, prior.most
        share = min(n / K, 1.0 - 0.5 / K)
        self._prior_odds = float(np.log(share / (1.0 - share)))
        self._tau = np.full(K, 1.0 / (share * (1.0 - share)))
        self._nu = self._tau * share
        self._table = np.zeros((16, K + 1))  # rows of H, and r in the last column; the first is that of the count
        self._table[0, :K], self._table[0, K] = 1.0 / _COUNT_NOISE, n / _COUNT_NOISE
        self._used, self.n_readings = 1, 0
        self._refresh()

    def add(self, h: Array, r: float) -> None:
        """Take a reading: what each stream of the set adds to it, and what was read, in units of the noise."""
        if self._used == len(self._table):
            self._table = np.vstack([self._table, np.zeros_like(self._table)])
        self._table[self._used, :-1], self._table[self._used, -1] = h, r
        self._used, self.n_readings = self._used + 1, self.n_readings + 1
        self._extend(h, r)
        self._match()
        self._condense()
        self._refresh()

    def _condense(self) -> None:
        """Replace more than K readings by K whose Gram matrix is the same: H = Q R, and r = Q'r."""
        K = self._tau.size
        if self._used > K + max(K // 8, 16):
            self.rows = qr(self.rows, mode="r", check_finite=False)[0][:K]

    @property
    def rows(self) -> Array:
        """Every reading (h, r), or K that say the same."""
        return self._table[1 : self._used]

    @rows.setter
    def rows(self, rows: Array) -> None:
        self._table = np.vstack([self._table[:1], rows])
        self._used = len(self._table)

    @property
    def marginals(self) -> Array:
        return np.asarray(expit(self.log_odds))

    def moments(self) -> Moments:
        return Moments(self.log_odds, self._variance, self._times_covariance)

    def _refresh(self) -> None:
        """The Gaussian posterior under the present sites: V = R (I - W'W) R with R = tau^-1/2."""
        H, r = self._table[: self._used, :-1], self._table[: self._used, -1]
        self._root = self._tau**-0.5
        scaled = H * self._root
        gram = dsyrk(1.0, scaled.T, trans=1, lower=1)
        places = np.diag_indices(len(gram))
        self._largest = float(gram[places].max())
        gram[places] += 1.0 + _ROUNDING * self._largest
        lower = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
        self._half = dtrsm(1.0, lower, scaled.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
        self._left = 1.0 - np.einsum("tk,tk->k", self._half, self._half)
        self._alone = self._nu / self._tau
        self._surprise = solve_triangular(lower, r - H @ self._alone, lower=True, check_finite=False)
        self._mean = self._alone + self._root * (self._surprise @ self._half)
        self._judge()

    def _extend(self, h: Array, r: float) -> None:
        """The same for one reading more under the same sites, at the cost of t K by one row more of W.

        W itself is left as it is: the sites move next, and with them all of it.
        """
        new = h * self._root
        known = self._half @ new
        whole = float(new @ new)
        variance = whole - float(known @ known) + 1.0 + _ROUNDING * max(whole, self._largest)
        noisier = _ROUNDING * (whole - self._largest) > _NEGLIGIBLE  # all earlier readings, to stay factorable
        if noisier or variance < _NEW * (1.0 + whole):
            self._refresh()
            return
        deviation = variance**0.5
        row = (new - known @ self._half) / deviation
        surprise = (r - float(h @ self._alone) - float(known @ self._surprise)) / deviation
        self._left = self._left - row * row
        self._mean = self._mean + self._root * (surprise * row)
        self._judge()

    def _judge(self) -> None:
        """Variances and log-odds of the streams, and their cavities: the field of all others."""
        self._variance = np.maximum(self._left, _LEAST_VARIANCE) / self._tau
        self._cavity = np.maximum(1.0 / self._variance - self._tau, _LEAST_VARIANCE)  # precision without the own site
        self._pull = self._mean / self._variance - self._nu
        self.log_odds = np.clip(self._prior_odds + self._pull - 0.5 * self._cavity, -_FARTHEST, _FARTHEST)

    def _match(self) -> None:
        """Move the sites towards those that give each stream its mean and variance."""
        p = expit(self.log_odds)
        variance = np.maximum(p * expit(-self.log_odds), _LEAST_VARIANCE)
        tau = np.maximum(1.0 / variance - self._cavity, _LEAST_PRECISION)
        nu = p * (self._cavity + tau) - self._pull
        self._tau = (1.0 - _DAMPING) * self._tau + _DAMPING * tau
        self._nu = (1.0 - _DAMPING) * self._nu + _DAMPING * nu

    def _times_covariance(self, u: Array) -> Array:
        scaled = self._root * u
        return np.asarray(self._root * (scaled - (self._half @ scaled) @ self._half))

    def check_agrees(self, linear: Array, half_diagonal: Array) -> None:
        """Go on from restored fields, whose readings must add up to these statistics."""
        check_same(0.5 * (self.rows[:, :-1] ** 2).sum(axis=0), half_diagonal, "readings and statistics")
        check_same(self.rows[:, -1] @ self.rows[:, :-1], linear, "readings and statistics")
        if self.n_readings < len(self.rows):
            raise ValueError("its marginals are damaged: their numbers of readings do not agree")
        self._refresh()
