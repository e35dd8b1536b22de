"""How much the readings speak for a change by now: sums, over all onsets, of likelihood ratios.

A reading is w = W x + noise of variance 1, x the shifts of the streams now. With R the sum of the likelihood ratios of
all onsets so far, R <- (R + 1) ratio: while nothing is wrong R - t is a martingale, whatever was read and why, so that
the mean time until R reaches A is at least A, by nothing but the overshoot more (Shiryaev and Roberts). What is summed
is half the mean over hypotheses of one stream, each with one of a few sizes, and half that over sets whose members are
guessed from the readings before: stream k has shift x_k ~ N(m_k, v_k), m and v those of its odds so far.
"""

import math

import numpy as np
from scipy.linalg import solve_triangular

from eccaht.base.arrays import Array
from eccaht.base.codec import Field
from eccaht.streams.problem import Problem

_SIZES = np.array([-1.6, -0.8, -0.4, 0.4, 0.8, 1.6])  # of an unknown shift, in its standard deviations from its mean
_GUESSED = (0.3, 3.0, 20.0)  # changed streams that the guesses of a set expect
_WIDEST = 64  # streams whose shift a guess leaves open; of the others it takes the mean
_CERTAIN = 40.0  # nats
_RARE = 5.0  # steps to a change, as readings are chosen


class Evidence:
    """The sums by hypothesis, brought up to date reading by reading.

    >>> evidence = Evidence(Problem(np.eye(3), shift=2.0, n_anomalies=1, budget=1.0))
    >>> evidence.update(np.eye(3), np.array([0.0, 2.0, 0.0]), np.ones(3))
    >>> round(evidence.log, 3), round(math.log((math.exp(2.0) + 2.0 * math.exp(-2.0)) / 3.0), 3)
    (0.937, 0.937)
    """

    FIELDS = (
        Field("_one", ("noises", "sizes", "K"), low=-math.inf),
        Field("_some", ("noises", "guesses"), low=-math.inf),
    )

    def __init__(self, problem: Problem) -> None:
        K, most = problem.size, problem.sizes[1]
        sizes = _SIZES if problem.unknown_shift else np.zeros(1)
        self.shifts = problem.shift + problem.shift_spread * sizes[:, None]  # (J, K)
        counts = sorted({min(count, most) for count in _GUESSED}) if most > 1 else []
        self.odds = [count / K for count in counts]
        self._prior = -math.log(self.shifts.size)
        freedom = problem.degrees_of_freedom
        self._noises = [Noise(None)] if freedom is None else [Noise(freedom), Noise(freedom, apart=True)]
        self._one = np.full((len(self._noises), *self.shifts.shape), -np.inf)
        self._some = np.full((len(self._noises), len(counts)), -np.inf)

    @property
    def log(self) -> float:
        """The logarithm of the sum; the smallest where it must hold for several kinds of noise."""
        one = np.logaddexp.reduce(self._one.reshape(len(self._one), -1), axis=1)
        if not self.odds:
            return float(one.min())
        some = np.logaddexp.reduce(self._some, axis=1) - math.log(len(self.odds))
        return float((np.logaddexp(one, some) - math.log(2.0)).min())

    def expected(self, odds: float) -> tuple[Array, Array, Array]:
        """How probable each stream is to have changed, and mean and variance of its shift, (K,) each.

        odds: of a change in a stream of which nothing is known.
        """
        ratios = np.logaddexp(self._one[0], self._prior) + math.log(odds * self.shifts.shape[1])
        by_size = np.exp(np.minimum(ratios, _CERTAIN))
        chance = by_size / (1.0 + by_size.sum(axis=0))
        mean = (chance * self.shifts).sum(axis=0)
        return chance.sum(axis=0), mean, (chance * self.shifts**2).sum(axis=0) - mean**2

    def suspicion(self) -> Array:
        """What the next readings are chosen by, (K,): the mean square of each stream's shift.

        It is no variance: a stream that has changed for certain goes on being read until there is an alarm.
        """
        _, mean, variance = self.expected(1.0 / (_RARE * self.shifts.shape[1]))
        return variance + mean**2

    def update(self, W: Array, w: Array, information: Array) -> None:
        """Take readings w, (q,), of W, (q, K); information: the squares of W added up by stream."""
        guesses = [self.expected(odds)[1:] for odds in self.odds]
        for n, noise in enumerate(self._noises):
            self._one[n] = np.logaddexp(self._one[n], self._prior) + noise.single(w, W, information, self.shifts)
            ratios = [noise.several(w, W, mean, variance) for mean, variance in guesses]
            self._some[n] = np.logaddexp(self._some[n], 0.0) + ratios


class Noise:
    """Log likelihood ratios of shifts: of Gaussian noise, or of t noise of whole readings or of each part `apart`."""

    def __init__(self, degrees: float | None, apart: bool = False) -> None:
        self._degrees, self._apart = degrees, apart

    def single(self, w: Array, W: Array, information: Array, shifts: Array) -> Array:
        """Of each of these shifts, (J, K), of one stream against none."""
        if self._apart:
            return self._of(w[:, None, None] ** 2, (w[:, None, None] - W[:, None] * shifts) ** 2, 1).sum(axis=0)
        gained = shifts * (2.0 * (w @ W) - shifts * information)
        return 0.5 * gained if self._degrees is None else self._of(w @ w, w @ w - gained, len(w))

    def several(self, w: Array, W: Array, mean: Array, variance: Array) -> float:
        """Of shifts N(mean, variance) against none."""
        rest = w - W @ mean
        if self._apart:
            return float(self._of(w**2, rest**2, 1).sum())
        few = max(variance.size - _WIDEST, 0)
        widest = np.argpartition(variance, few)[few:] if few else np.arange(variance.size)
        root = W[:, widest] * np.sqrt(np.maximum(variance[widest], 0.0))
        lower = np.linalg.cholesky(np.eye(widest.size) + root.T @ root)
        explained = solve_triangular(lower, root.T @ rest, lower=True, check_finite=False)
        after = np.asarray(rest @ rest - explained @ explained)
        return float(self._of(np.asarray(w @ w), after, len(w)) - np.log(lower.diagonal()).sum())

    def _of(self, before: Array, after: Array, count: int) -> Array:
        """Of squared distances of `count` numbers without and with the shift."""
        if self._degrees is None:
            return np.asarray(0.5 * (before - after))
        spread = self._degrees - 2.0  # the noise has variance 1
        ratio = np.log1p(before / spread) - np.log1p(np.maximum(after, 0.0) / spread)
        return np.asarray(0.5 * (self._degrees + count) * ratio)
