"""How well every set explains the readings, where shifts are known and where their sizes are not.

A likelihood answers two questions about many sets at once: their log-likelihoods, and what each stream would add in the
place of one slot. Everything else (drawing, climbing, enumerating) is built on these two.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import chdtrc, erfc, fdtrc

from eccaht.base.arrays import Array, Index, as_number
from eccaht.streams.posterior.statistics import SufficientStatistics
from eccaht.streams.problem import Problem
from eccaht.streams.shifts import integrated_gain

_CERTAIN = 3.0  # standard deviations from 0
ROUNDING = 1e-9  # relative, of sums of log-likelihoods
_WIDE = 10.0  # scale of an outlying reading, in units of the noise it should have
LEAST_FIT = 1e-6  # a set whose readings are less likely than this cannot be the right one


class Fit(NamedTuple):
    """How well readings fit a set.

    chance: that of readings which fit it as badly or worse if it is the right one. degrees: numbers read beyond those
    that unknown shifts use up; with none the readings cannot tell.
    """

    chance: float
    degrees: int

    @property
    def holds(self) -> bool:
        """Do the readings look as if they came from the set? Not if there are too few to tell."""
        return self.degrees > 0 and not self.refuted

    @property
    def refuted(self) -> bool:
        """Can the readings not come from the set?"""
        return self.chance <= LEAST_FIT


class Likelihood(Protocol):
    """The log-likelihood of sets, against the empty one; what is given here holds for Gaussian noise.

    quadratic: is it b'z - z'M z / 2 in the indicator z of the set, with the b and M of `evidence`?
    """

    evidence: SufficientStatistics
    quadratic: bool = False

    @property
    def tolerance(self) -> float:
        """Differences of log-likelihoods below this are rounding."""

    def log_likelihood(self, sets: Index) -> Array:
        """Of every row."""

    def gains(self, sets: Index, slots: Index, among: Index | None = None) -> Array:
        """What each stream adds in the place of one slot of each row, (N, K + 1); EMPTY (K) adds 0.

        among: a shortlist of streams, (w,), or one of each row, (N, w); then only these are worked out, (N, w).
        """

    def walk(self, sets: Index) -> Walk:
        """Change these sets in place, slot by slot."""
        return Walk(self, sets)

    def draw_shifts(self, sets: Index, slots: Index, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw shifts from their posterior, once a row: of the other slots, (N, n - 1), and of each stream that may
        fill the slot, (N, K + 1)."""

    def shifts_of(self, members: Index) -> tuple[Array, Array]:
        """Posterior mean and standard deviation of the members' shifts if they are the set."""

    def fit(self, members: Index) -> Fit:
        """How well the readings fit this set, with unknown shifts fitted."""

    def log_density(self, z: Array) -> Array:
        return -0.5 * z * z

    def normal_equations(self, members: Index) -> tuple[Array, Array]:
        """Matrix and right side of the least squares for the members' shifts, each in units of the assumed shift."""
        return self.evidence.block(members[None])[0], self.evidence.linear[members]


class Walk:
    """Sets that change slot by slot."""

    def __init__(self, likelihood: Likelihood, sets: Index) -> None:
        self._likelihood, self._sets = likelihood, sets

    def gains(self, slot: int) -> Array:
        """What each stream adds to the log-likelihood of the other slots, (N, K + 1); EMPTY (K) adds 0."""
        return self._likelihood.gains(self._sets, np.full(len(self._sets), slot))

    def put(self, slot: int, new: Index) -> None:
        self._sets[:, slot] = new


def likelihood_of(evidence: SufficientStatistics) -> Likelihood:
    return UnknownShifts(evidence) if evidence.problem.unknown_shift else _KnownShifts(evidence)


class _KnownShifts(Likelihood):
    """b'z - z'M z / 2."""

    quadratic = True

    def __init__(self, evidence: SufficientStatistics) -> None:
        self.evidence = evidence
        self._shift = np.append(evidence.problem.shift, 0.0)

    @property
    def tolerance(self) -> float:
        """In proportion to the terms that are summed up."""
        evidence = self.evidence
        return ROUNDING * max(1.0, min(evidence.misfit, float(np.abs(evidence.linear).max())))

    def log_likelihood(self, sets: Index) -> Array:
        return self.evidence.log_likelihood(sets)

    def gains(self, sets: Index, slots: Index, among: Index | None = None) -> Array:
        """g + M_i - M_kk / 2."""
        evidence = self.evidence
        if among is None:
            return evidence.fields(sets) + evidence.coupling(sets[np.arange(len(sets)), slots])
        wanted = np.atleast_2d(among)
        others = evidence.entries(without_slots(sets, slots)[:, :, None], wanted[:, None, :]).sum(axis=1)
        return np.asarray(evidence.linear[wanted] - evidence.half_diagonal[wanted] - others)

    def walk(self, sets: Index) -> Walk:
        """Fields are kept up to date from slot to slot."""
        return _KnownWalk(self, sets) if self.quadratic else Walk(self, sets)

    def draw_shifts(self, sets: Index, slots: Index, rng: np.random.Generator) -> tuple[Array, Array]:  # noqa: ARG002
        filling = np.broadcast_to(self._shift, (len(sets), self._shift.size))
        return self._shift[without_slots(sets, slots)], filling

    def shifts_of(self, members: Index) -> tuple[Array, Array]:
        return self._shift[members], np.zeros(members.size)

    def fit(self, members: Index) -> Fit:
        """The misfit is chi-square, or of the F distribution."""
        explained = 2.0 * float(self.log_likelihood(members[None])[0])
        return _fit(self.evidence, explained, self.evidence.n_readings)


class _KnownWalk(Walk):
    def __init__(self, likelihood: _KnownShifts, sets: Index) -> None:
        super().__init__(likelihood, sets)
        self._evidence = likelihood.evidence
        self._fields = self._evidence.fields(sets)
        self._left = np.empty((0, 0))

    def gains(self, slot: int) -> Array:
        self._left = self._evidence.coupling(self._sets[:, slot])
        return self._fields + self._left

    def put(self, slot: int, new: Index) -> None:
        moved = np.flatnonzero(new != self._sets[:, slot])
        self._sets[moved, slot] = new[moved]
        change = self._left.take(moved, axis=0)
        change -= self._evidence.coupling(new[moved])
        self._fields[moved] += change


class UnknownShifts(Likelihood):
    """Shifts N(m_k, s_k^2), integrated out; s_k = 0 where one is known.

    The evidence keeps plain weights (h = c), so that the readings say b'x - x'M x / 2 of shifts x. Integrating
    over the shifts of the rest R of a set leaves, for one stream more, the field b~ = b - M x^_R and the curvature
    M~ = M_jj - M_jR T M_Rj, with x^_R and T the posterior mean and covariance of the rest's shifts. The stream adds

        m b~ - m^2 M~ / 2 + (s (b~ - M~ m))^2 / (2 (1 + s^2 M~)) - log(1 + s^2 M~) / 2.
    """

    def __init__(self, evidence: SufficientStatistics) -> None:
        problem = evidence.problem
        self.evidence = evidence
        self._mean, self._spread = np.append(problem.shift, 0.0), np.append(problem.shift_spread, 0.0)

    @property
    def tolerance(self) -> float:
        """In proportion to the largest log-likelihood that any shifts could give."""
        return ROUNDING * max(1.0, self.evidence.misfit)

    def log_likelihood(self, sets: Index) -> Array:
        """Of every row: stream after stream."""
        total = np.zeros(len(sets))
        each = np.arange(len(sets))
        grown = np.full_like(sets, self.evidence.problem.size)
        for slot in range(sets.shape[1]):
            total += self.gains(grown, np.full(len(sets), slot), sets[:, slot][:, None])[:, 0]
            grown[each, slot] = sets[:, slot]
        return total

    def gains(self, sets: Index, slots: Index, among: Index | None = None) -> Array:
        field, curvature, wanted = self._given_rest(sets, slots, among)
        mean, spread = self._mean[wanted], self._spread[wanted]
        factor = 1.0 + spread**2 * curvature
        gain = mean * field - 0.5 * mean**2 * curvature
        return np.asarray(gain + integrated_gain(spread * (field - curvature * mean), factor))

    def draw_shifts(self, sets: Index, slots: Index, rng: np.random.Generator) -> tuple[Array, Array]:
        """One draw a row for the rest, and one for every stream that may join it.

        A shift that differs from 0 by more than three standard deviations takes its mean: the search asks which
        streams are anomalous, and should not spend measurements on the exact size of a certain shift.
        """
        rest = without_slots(sets, slots)
        mean, root = self._posterior(rest)
        certain = np.abs(mean) > _CERTAIN * np.sqrt((root**2).sum(axis=2))
        drawn = mean + np.where(certain, 0.0, np.einsum("nij,nj->ni", root, rng.standard_normal(mean.shape)))
        field, curvature, wanted = self._given_rest(sets, slots, None)
        prior, spread = self._mean[wanted], self._spread[wanted]
        factor = 1.0 + spread**2 * curvature
        filling, deviation = prior + spread**2 * (field - curvature * prior) / factor, spread / np.sqrt(factor)
        certain = np.abs(filling) > _CERTAIN * deviation
        filling += np.where(certain, 0.0, deviation * rng.standard_normal(filling.shape))
        return drawn, filling

    def shifts_of(self, members: Index) -> tuple[Array, Array]:
        mean, root = self._posterior(members[None])
        return mean[0], np.sqrt((root[0] ** 2).sum(axis=1))

    def fit(self, members: Index) -> Fit:
        """What is left by the best shifts is chi-square, or of the F distribution."""
        evidence = self.evidence
        block, field = self.normal_equations(members[members < evidence.problem.size])
        explained = float(field @ np.linalg.lstsq(block, field, rcond=None)[0])
        return _fit(evidence, explained, max(evidence.n_readings - field.size, 0))

    def _posterior(self, sets: Index) -> tuple[Array, Array]:
        """Posterior mean of the shifts of each row and a root of their covariance s (I + s M s)^-1 s."""
        evidence = self.evidence
        mean, spread, block = self._mean[sets], self._spread[sets], evidence.block(sets)
        inner = np.eye(sets.shape[1]) + spread[:, :, None] * block * spread[:, None, :]
        lower = np.linalg.cholesky(inner)
        root = np.linalg.solve(lower, np.eye(sets.shape[1]) * spread[:, None, :]).transpose(0, 2, 1)
        residual = evidence.linear[sets] - np.einsum("nij,nj->ni", block, mean)
        return mean + np.einsum("nij,nkj,nk->ni", root, root, residual), root

    def _given_rest(self, sets: Index, slots: Index, among: Index | None) -> tuple[Array, Array, Index]:
        """Field and curvature of the streams, and which streams these are."""
        evidence = self.evidence
        rest = without_slots(sets, slots)
        mean, root = self._posterior(rest)
        if among is None:
            rows = evidence.rows(rest.ravel()).reshape(*rest.shape, evidence.linear.size)
            wanted = np.arange(rows.shape[2])[None]
        else:
            wanted = np.atleast_2d(among)
            rows = evidence.entries(rest[:, :, None], wanted[:, None, :])
        through = root.transpose(0, 2, 1) @ rows
        field = evidence.linear[wanted] - np.einsum("nr,nrk->nk", mean, rows)
        curvature = np.maximum(2.0 * evidence.half_diagonal[wanted] - (through**2).sum(axis=1), 0.0)
        return field, curvature, wanted


def _fit(evidence: SufficientStatistics, explained: float, degrees: int) -> Fit:
    """Of what is left: noise that was estimated from m vectors has m - 1 degrees of freedom itself."""
    left, m = max(evidence.misfit - explained, 0.0), evidence.problem.estimated_from
    if not degrees:
        return Fit(1.0, 0)
    return Fit(float(chdtrc(degrees, left) if m is None else fdtrc(degrees, m - 1, left / degrees)), degrees)


def without_slots(sets: Index, slots: Index) -> Index:
    keep = np.ones(sets.shape, dtype=bool)
    keep[np.arange(len(sets)), slots] = False
    return sets[keep].reshape(len(sets), sets.shape[1] - 1)


def robust_likelihood(problem: Problem, outliers: float) -> Likelihood:
    """Like `likelihood_of`, where a share of the readings may be outlying."""
    share = as_number(outliers, "outliers")
    if not 0.0 <= share < 0.5:
        raise ValueError(f"outliers is a share of the readings, from 0 to below 0.5, not {outliers!r}")
    if not share:
        return likelihood_of(SufficientStatistics(problem))
    if problem.unknown_shift:
        raise ValueError("outliers needs known shifts: a reading that lies far off may be a shift of unknown size")
    return _Contaminated(SufficientStatistics(problem, keep_readings=True), share)


class _Contaminated(_KnownShifts):
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
