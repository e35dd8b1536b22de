"""The likelihood where a share of the readings is outlying."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtrc, erfc

from eccaht.base.arrays import Array, Index, as_number
from eccaht.streams.posterior.likelihood import ROUNDING, Fit, KnownShifts, Likelihood, likelihood_of, without_slots
from eccaht.streams.posterior.statistics import SufficientStatistics
from eccaht.streams.problem import Problem

_WIDE = 10.0  # scale of an outlying reading, in units of the noise it should have


def robust_likelihood(problem: Problem, outliers: float) -> Likelihood:
    """Like `likelihood_of`, where a share of the readings may be outlying."""
    share = as_number(outliers, "outliers")
    if not 0.0 <= share < 0.5:
        raise ValueError(f"outliers is a share of the readings, from 0 to below 0.5, not {outliers!r}")
    if not share:
        return likelihood_of(SufficientStatistics(problem))
    if problem.unknown_shift:
        raise ValueError("outliers needs known shifts: a reading that lies far off may be a shift of unknown size")
    return Contaminated(SufficientStatistics(problem, keep_readings=True), share)


class Contaminated(KnownShifts):
    """Known shifts, but a share e of the readings is outlying: no single reading can decide against a set.

    A residual z, in units of the noise, has the density (1 - e) N(z; 0, 1) + e Cauchy(z; 0, 10). How far out a reading
    lies then hardly matters: what separates two sets by it is bounded, and far out it vanishes like 1/z. There
    are no statistics to sum up: every reading is looked at again.
    """

    quadratic = False

    def __init__(self, evidence: SufficientStatistics, share: float) -> None:
        super().__init__(evidence)
        self._share = share
        self._clean = math.log1p(-share)
        self._outlying = math.log(share / _WIDE * math.sqrt(2.0 / math.pi))  # beside exp(-z^2/2)

    @property
    def tolerance(self) -> float:
        """In proportion to the number of readings: what each says is bounded."""
        return ROUNDING * max(1.0, float(self.evidence.n_readings))

    def log_likelihood(self, sets: Index) -> Array:
        h, r = self._readings()
        return self.log_density(r - h[:, sets].sum(axis=2).T).sum(axis=1) - self.log_density(r).sum()

    def gains(self, sets: Index, slots: Index, among: Index | None = None) -> Array:
        """Against an EMPTY slot, row by row."""
        h, r = self._readings()
        rest = r - h[:, without_slots(sets, slots)].sum(axis=2).T
        wanted = None if among is None else np.broadcast_to(among, (len(sets), among.shape[-1]))
        gains = np.empty((len(sets), h.shape[1] if wanted is None else wanted.shape[1]))
        for row, left in enumerate(rest):
            streams = h if wanted is None else h[:, wanted[row]]
            gains[row] = self.log_density(left[:, None] - streams).sum(axis=0)
        gains -= gains[:, -1:].copy() if wanted is None else self.log_density(rest).sum(axis=1, keepdims=True)
        return gains

    def fit(self, members: Index) -> Fit:
        """Fisher's combination of how likely each reading is to lie as far off or farther."""
        h, r = self._readings()
        z = np.abs(r - h[:, members].sum(axis=1))
        farther = (1.0 - self._share) * erfc(z / math.sqrt(2.0)) + self._share * 2.0 / math.pi * np.arctan2(_WIDE, z)
        return Fit(float(chdtrc(2.0 * z.size, -2.0 * np.log(farther).sum())), z.size) if z.size else Fit(1.0, 0)

    def log_density(self, z: Array) -> Array:
        return np.logaddexp(self._clean - 0.5 * z * z, self._outlying - np.log1p((z / _WIDE) ** 2))

    def normal_equations(self, members: Index) -> tuple[Array, Array]:
        """Each reading counts by its probability of not being an outlying one."""
        h, r = self._readings()
        own = h[:, members]
        z = r - own.sum(axis=1)
        clean = np.exp(self._clean - 0.5 * z * z - self.log_density(z))[:, None]
        return own.T @ (clean * own), own.T @ (clean[:, 0] * r)

    def _readings(self) -> tuple[Array, Array]:
        readings = self.evidence.readings
        return readings[:, :-1], readings[:, -1]
