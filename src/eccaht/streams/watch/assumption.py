"""Does the noise look like what a threshold assumes? A sequential test on the windows of a watch that has no alarm.

While nothing is wrong, the distance d2 = (x - mean)' Q (x - mean) of n streams is chi2_n, and the largest of the
standardised scores passes c with probability p = 2 n Phi(-c) at most. Alternatives by d2 are multivariate t: noise with
nu degrees of freedom, for some nu, and a covariance that was estimated from m windows, for some m / n, where nu is
m - n. Alternatives by the largest score, for streams that have heavy tails each of its own, pass c with probability q.
The product of likelihood ratios of the windows since a start has a mean of at most 1 at any time. So has the mixture
over alternatives and over starts, the start before window t (from 0) with weight 1 / ((t + 1) (t + 2)), so that noise
that changes late is seen too. It exceeds 1 / LEVEL with a probability of at most LEVEL, however long the watch lasts
(Ville's inequality).

A fault makes both larger too. What the windows since the onset of an alarm have added is taken away when it is
raised, and windows in an alarm are left out. Both can only lower the probability of a wrong caution.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, ndtri

from eccaht.base.arrays import Array, Index
from eccaht.base.codec import Field

LEVEL = 1e-3  # of the test, for the whole life of a watch
_FREEDOMS = (4.0, 8.0, 16.0)
_RATIOS = (4.0, 16.0, 64.0)  # windows of an estimate to streams
_PASSED, _PASSING = 0.01, (0.03, 0.1)  # p and q
_COUNT = len(_FREEDOMS) + len(_RATIOS) + len(_PASSING)  # alternatives
_PASSES = np.log(_PASSING) - math.log(_PASSED), np.log1p(np.negative(_PASSING)) - math.log1p(-_PASSED)
_LARGEST = 1e12  # nats


class Extent(NamedTuple):
    """How far windows are from the mean: d2, the largest score that is N(0, 1), and how many streams spoke, (L,)."""

    distances: Array
    largest: Array
    streams: Index


class Assumption:
    """How much speaks against noise that is Gaussian of exactly the given covariance."""

    FIELDS = (
        Field("_logs", (_COUNT,), low=-math.inf, high=_LARGEST),
        Field("_taken", (), int, high=10**12),
    )

    def __init__(self) -> None:
        self._logs = np.full(_COUNT, -np.inf)  # of the products, by alternative
        self._taken = 0  # windows

    @property
    def fails(self) -> bool:
        return float(logsumexp(self._logs)) - math.log(_COUNT) >= -math.log(LEVEL)

    def take(self, windows: Extent) -> None:
        for ratios in _log_ratios(windows):
            start = -math.log((self._taken + 1.0) * (self._taken + 2.0))
            self._logs = np.logaddexp(self._logs, start) + ratios
            self._taken += 1

    def take_back(self, windows: Extent) -> None:
        """Take away what windows have added that turned out to belong to a fault."""
        self._logs -= np.maximum(sum(_log_ratios(windows), np.zeros(_COUNT)), 0.0)


def _log_ratios(windows: Extent) -> list[Array]:
    """The log likelihood ratios of the alternatives, for each window that is not silent throughout."""
    values = zip(*(part.tolist() for part in windows), strict=True)
    return [log_ratios(d2, largest, streams) for d2, largest, streams in values if streams]


def log_ratios(distance: float, largest: float, streams: int) -> Array:
    """The log likelihood ratio of each alternative, given one window."""
    constant, scale, power, c = _alternatives(streams)
    by_distance = constant - power * np.log1p(distance / scale) + 0.5 * distance
    return np.concatenate([by_distance, _PASSES[0] if largest > c else _PASSES[1]])


@lru_cache(maxsize=256)
def _alternatives(n: int) -> tuple[Array, Array, Array, float]:
    """Of each alternative by d2 the constant, nu times its squared scale, and the power (nu + n) / 2; and c."""
    ratios = np.array(_RATIOS)
    nu = np.append(_FREEDOMS, (ratios - 1.0) * n)
    scale = np.append(np.subtract(_FREEDOMS, 2.0), ratios * n)  # the covariance is the given one, or larger
    power = 0.5 * (nu + n)
    constant = gammaln(power) - gammaln(0.5 * nu) - 0.5 * n * np.log(0.5 * scale)
    return constant, scale, power, -float(ndtri(0.5 * _PASSED / n))
