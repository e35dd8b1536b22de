"""Does the noise look like what a threshold assumes? A sequential test on the readings of a watch without an alarm.

Alternatives to N(0, 1) readings: t noise of a few degrees of freedom, of whole steps or of each reading, and a larger
variance. The product of likelihood ratios since a start has a mean of 1 while the assumption holds, and so has the
mixture over alternatives and starts, the start before step t with weight 1 / ((t + 1) (t + 2)): it exceeds 1 / LEVEL
with a probability of at most LEVEL, however long the watch lasts (Ville's inequality). What the steps since the onset
of an alarm have added is taken away, and steps in an alarm are left out.
"""

import math

import numpy as np
from scipy.special import gammaln, logsumexp

from eccaht.base.arrays import Array
from eccaht.base.codec import Field

LEVEL = 1e-3  # of the test, for the whole life of a watch
_FREEDOMS = np.array([4.0, 8.0, 16.0])
_VARIANCES = np.array([1.1, 1.5])
_COUNT = 2 * _FREEDOMS.size + _VARIANCES.size


class Assumption:
    """How much speaks against noise that is Gaussian of exactly the given covariance."""

    FIELDS = (
        Field("_logs", (_COUNT,), low=-math.inf, high=1e12),
        Field("_taken", (), int, high=10**12),
    )

    def __init__(self) -> None:
        self._logs = np.full(_COUNT, -np.inf)  # of the products, by alternative
        self._taken = 0  # steps

    @property
    def fails(self) -> bool:
        return float(logsumexp(self._logs)) - math.log(_COUNT) >= -math.log(LEVEL)

    def take(self, w: Array) -> None:
        """Take readings in units of their noise, (q,)."""
        start = -math.log((self._taken + 1.0) * (self._taken + 2.0))
        self._logs = np.logaddexp(self._logs, start) + log_ratios(w)
        self._taken += 1

    def take_back(self, readings: list[Array]) -> None:
        """Take away what steps have added that turned out to belong to a fault."""
        self._logs -= np.maximum(sum(map(log_ratios, readings), np.zeros(_COUNT)), 0.0)


def log_ratios(w: Array) -> Array:
    """The log likelihood ratio of each alternative to N(0, 1)."""
    squares = w**2
    total = float(squares.sum())
    whole = _of_t(np.array([total]), len(w))
    apart = _of_t(squares, 1)
    wider = 0.5 * (total * (1.0 - 1.0 / _VARIANCES) - len(w) * np.log(_VARIANCES))
    return np.concatenate([whole, apart, wider])


def _of_t(squares: Array, count: int) -> Array:
    """Of t noise of variance 1, for squared lengths of `count` numbers each; all together."""
    power = 0.5 * (_FREEDOMS + count)
    constant = gammaln(power) - gammaln(0.5 * _FREEDOMS) - 0.5 * count * np.log(0.5 * (_FREEDOMS - 2.0))
    logs = np.log1p(squares[:, None] / (_FREEDOMS - 2.0)).sum(axis=0)
    return np.asarray(len(squares) * constant - power * logs + 0.5 * squares.sum())
