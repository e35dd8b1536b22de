"""The most informative measurement about very many streams of which each may be anomalous.

While many streams are in doubt the reading of c is a sum of many small terms, and all that a design needs is the
covariance V of the indicators z of the streams. With h = shift*c in units of the noise the reading carries
log(1 + h'V h)/2 nats if it is Gaussian, and c ~ S^-1 (shift * V h) at a maximum. It is not Gaussian where one stream
has a large share in it: what is learned of a stream of small probability is bounded, however precise its reading.
The gradient of the true information knows this: in the place of the variance of z_k stands what is expected to be
left of it after the reading, all other streams being Gaussian noise,

    v_k g_k^2 = E[Var(z_k | reading)],

so that c ~ S^-1 (shift * g V (g h)). The variance enters as its square root (`_FLATTER`): streams that are
improbable today must be ruled out some day as well. Started from a random direction and stopped after four steps,
the iteration ends at a different one of many nearly equal maxima each time, so that no direction is measured again.
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit

from eccaht.base.arrays import Array, Mask, support_of
from eccaht.streams.designs.pair import Among, among
from eccaht.streams.problem import Problem
from eccaht.streams.sets import Moments

_FLATTER = 0.5  # power of the variance that a design goes by
_STEPS = 4
_LEAST = 1e-9  # variance of a stream
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)  # of the standard normal distribution
_SHARES = _WEIGHTS / _WEIGHTS.sum()


class SpreadDesign:
    """The most informative measurement about the indicators of all streams, given their moments."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def __call__(
        self,
        moments: Moments,
        rng: np.random.Generator,
        pending: Sequence[Array] = (),
        available: Mask | None = None,
    ) -> Array:
        """Return allowed weights; `rng` draws the direction from which the iteration starts.

        pending: measurements that are under way, beyond which the new one is to be informative.
        available: the streams that can be measured now, two or more, where not all can.

        For the constraint the contrast is scaled such that its root mean square is the largest shift.
        """
        problem = self._problem
        if pending:
            rows = [problem.shift * c / np.sqrt(problem.noise_variance(c)) for c in pending]
            moments = _given(moments, np.array(rows))
        if available is None:
            return self._designed(moments, rng)
        narrowed = among(problem, available)
        return narrowed.spread(SpreadDesign(narrowed.problem)._designed(_of(narrowed, moments), rng))

    def _designed(self, moments: Moments, rng: np.random.Generator) -> Array:
        problem = self._problem
        contrast = self._contrast(moments, rng.standard_normal(problem.size))
        places = support_of(contrast)
        largest = max(float(np.abs(problem.shift[places]).max()), problem.measurements.least_contrast)
        values = contrast[places] * (largest / np.sqrt(np.mean(contrast**2)))
        return problem.designing.contrast(problem.covariance, places, values).weights

    def _contrast(self, moments: Moments, direction: Array) -> Array:
        shift, solve = self._problem.shift, self._problem.covariance.solve
        log_odds, variance, times_covariance = moments
        doubt = np.maximum(expit(log_odds) * expit(-log_odds), _LEAST)
        flatter = doubt ** (0.5 * (_FLATTER - 1.0))
        contrast = shift * np.sqrt(variance) * direction
        for _ in range(_STEPS):
            c = solve(contrast)
            h = shift * c / np.sqrt(contrast @ c)
            others = 1.0 + float(h @ times_covariance(h)) - h**2 * variance
            weight = flatter * np.sqrt(share_left(log_odds, h**2 / np.maximum(others, 1.0)))
            further = shift * weight * times_covariance(weight * h)
            largest = np.abs(further).max()
            if not largest > 0.0:  # nothing is in doubt
                break
            contrast = further / largest
        return np.asarray(contrast)


def _given(moments: Moments, rows: Array) -> Moments:
    """The moments that are expected after readings with these means per stream in units of their noise, (m, K).

    V - V H'(I + H V H')^-1 H V, as of a Gaussian; the log-odds stay, since the readings are not known yet.
    """
    log_odds, variance, times_covariance = moments
    reached = np.array([times_covariance(row) for row in rows])
    lower = np.linalg.cholesky(np.eye(len(rows)) + rows @ reached.T)
    half = solve_triangular(lower, reached, lower=True, check_finite=False)
    left = np.maximum(variance - np.einsum("mk,mk->k", half, half), _LEAST * variance)
    return Moments(log_odds, left, lambda u: times_covariance(u) - (half @ u) @ half)


def _of(narrowed: Among, moments: Moments) -> Moments:
    """The moments of the streams that can be measured: the others say nothing."""
    log_odds, variance, times_covariance = moments
    size, streams = narrowed.size, narrowed.streams
    shown = np.zeros(size)
    shown[streams] = 1.0
    if narrowed.problem.size == size:
        return Moments(log_odds, shown * variance, lambda u: shown * times_covariance(shown * u))
    return Moments(log_odds[streams], variance[streams], lambda u: times_covariance(narrowed.spread(u))[streams])


def share_left(log_odds: Array, precision: Array) -> Array:
    """The share of the variance of a 0/1 variable that is expected to be left after a reading of this precision.

    E[p(1 - p) after] = p E[1 - p after | 1], where the log-odds after are N(log-odds + s/2, s).

    >>> share_left(np.array([0.0, -4.0, 0.0]), np.array([0.0, 1.0, 100.0])).round(3)
    array([1.   , 0.973, 0.   ])
    """
    centre, spread = -(log_odds + 0.5 * precision), np.sqrt(precision)
    left = sum(share * expit(centre + node * spread) for node, share in zip(_NODES, _SHARES, strict=True))
    return np.asarray(left / expit(-log_odds))
