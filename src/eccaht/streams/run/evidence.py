"""What all readings of a search say about sets of sensors, independently of the policy's scores."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.streams.covariance import Covariance
from eccaht.streams.posterior import Likelihood, SufficientStatistics, likelihood_of
from eccaht.streams.posterior.gibbs import neighbourhood
from eccaht.streams.posterior.shared_noise import vector_noise
from eccaht.streams.problem import Problem
from eccaht.streams.sets import SetPrior

if TYPE_CHECKING:
    from eccaht.streams.covariance.base import Excess

EMPTY = -1
_SOLVABLE = 1e-10  # reciprocal condition number of the normal equations of the sizes


class Change(NamedTuple):
    """A set one change away: `out` leaves and `into` comes, one of them EMPTY where the number of anomalies is open.

    log_odds: of the set over the changed one, given all readings, exact even where the policy's own scores are not;
    negative if the readings favour the changed set.
    """

    out: int
    into: int
    log_odds: float

    def of(self, members: Index) -> Index:
        rest = members[members != self.out]
        return rest if self.into == EMPTY else np.sort(np.append(rest, self.into))


class Evidence:
    """The exact likelihood of all readings of a search.

    A policy that judges whole sets has it already, and then the policy's own object is used. Other policies do not need
    it; the sufficient statistics are then kept here, and `add` takes the readings.

    >>> evidence = Evidence(Problem(np.eye(3), shift=2.0, n_anomalies=1, budget=1.0))
    >>> evidence.add(np.array([1.0, 0.0, 0.0]), 2.0)
    >>> evidence.best_change(np.array([0])).log_odds
    2.0
    """

    def __init__(self, problem: Problem, shared: Likelihood | None = None) -> None:
        self.problem = problem
        self._shared = shared is not None
        self._likelihood = likelihood_of(SufficientStatistics(problem)) if shared is None else shared
        self._sizes = SetPrior(problem.size, *problem.sizes)

    def add(self, c: Array, y: float, inflation: float = 1.0) -> None:
        """Take a reading of the search; nothing to do where the likelihood is the policy's own."""
        if not self._shared:
            self._likelihood.evidence.add(c, y, inflation)

    def now(self) -> Evidence:
        """A copy that later readings do not change."""
        believed = self._likelihood.evidence.problem
        return Evidence(self.problem, deepcopy(self._likelihood, {id(believed): believed}))

    def best_change(self, members: Index) -> Change:
        """The most likely set one change away."""
        return min(self._changes(members), key=lambda change: change.log_odds)

    def best_changes(self, members: Index) -> list[Change]:
        """For each member the most likely set one change away that lacks it."""
        return [change for change in self._changes(members) if change.out != EMPTY]

    def log_odds(self, members: Index, others: Index) -> float:
        """Of one set over another."""
        rows = np.vstack([self._padded(members), self._padded(others)])
        one, other = self._likelihood.log_likelihood(rows) + self._sizes.log_prior_of(rows)
        return float(one - other)

    def fit(self, members: Index) -> float:
        """The probability of readings as bad as these, or worse, if this set is right; 1 if too few can tell."""
        return self._likelihood.fit(members).chance

    def log_density(self, z: float) -> float:
        return float(self._likelihood.log_density(np.array(z)))

    def shifts(self, members: Index) -> Array:
        """The shift of every sensor if these are the anomalous ones, (K,): as known, or as estimated so far."""
        shifts = np.zeros(self.problem.size)
        if members.size:
            shifts[members] = self._likelihood.shifts_of(members)[0]
        return shifts

    def sizes(self, members: Index) -> tuple[Array, Array]:
        """Weighted least squares for the shifts of a set, with standard errors; NaN if the readings cannot tell."""
        scale = np.ones(members.size) if self.problem.unknown_shift else self.problem.shift[members]
        matrix, side = self._likelihood.normal_equations(members)
        normal = matrix / np.outer(scale, scale)
        values = np.linalg.eigvalsh(normal) if members.size else np.ones(1)
        if values[0] <= _SOLVABLE * values[-1]:
            unknown = np.full(members.size, np.nan)
            return unknown, unknown.copy()
        inverse = np.linalg.inv(normal)
        return inverse @ (side / scale), np.sqrt(np.diag(inverse))

    def _padded(self, members: Index) -> Index:
        K = self.problem.size
        return np.concatenate([members, np.full(self._sizes.most - members.size, K, dtype=np.intp)])

    def _changes(self, members: Index) -> list[Change]:
        """The best change of each slot, without those that cannot be changed."""
        K, padded = self.problem.size, self._padded(members)
        _, slots, table = neighbourhood(self._likelihood, self._sizes, padded)
        leaving = padded[slots]
        best = table.argmax(axis=1)
        return [
            Change(EMPTY if out == K else int(out), EMPTY if into == K else int(into), -float(row[into]))
            for row, out, into in zip(table, leaving, best, strict=True)
            if np.isfinite(row[into])
        ]


class WholeWindows:
    """Whole windows as weighted sums; values may be missing (NaN). excess: what missing rows add to their noise."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._noise: dict[bytes, Covariance] = {}  # of full windows, by the sensors that are there

    def contrast(self, x: Array, difference: Array, excess: Excess | None = None) -> tuple[Array, float, float]:
        """The weighted sum that separates two mean vectors as well as the whole window: weights, reading, noise."""
        present = np.flatnonzero(~np.isnan(x))
        key = present.tobytes()
        if excess is not None:
            noise = vector_noise(self._problem, present, excess.dense())
        else:
            noise = self._noise[key] = self._noise.get(key) or vector_noise(self._problem, present)
        weights = noise.solve(difference[present])
        if (size := np.abs(weights).sum()) > 0:
            weights = weights * (self._problem.measurements.usual_norm / size)
        c = np.zeros(self._problem.size)
        c[present] = weights
        return c, float(weights @ x[present]), math.sqrt(max(noise.quad(weights), 0.0))


def name_of(problem: Problem, k: int) -> str:
    """The name of sensor k, its number if it has none, and nothing for EMPTY."""
    if k == EMPTY:
        return ""
    return str(k) if problem.names is None else problem.names[k]
