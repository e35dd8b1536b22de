"""What speaks for a fault of each sensor in a stretch of windows, in three views. Evidence is in nats.

- own: by the sensor's own past. A free course of unknown size makes the innovations u wider: with m the mean of u^2 in
  L windows, the likelihood ratio of the best size is L/2 (m - 1 - log m).
- free: by the other sensors, any course. With Q = R^-1, g = Q z and q_t(A) what the windows still say against normal
  operation once the sensors of A are set free, sensor k adds (nu + m)/2 log((nu + q_t(A)) / (nu + q_t(A+k))), m the
  sensors that are not in A, or (q_t(A) - q_t(A+k))/2 for a Gaussian: what its conditional density says, given those
  that remain. L/2 is what a sound sensor gains by chance (docs/incidents.md).
- step: by the other sensors, one shift in all windows, whose size is N(0, s^2); windows count as many as they are
  worth: their memory makes the sum of g vary more than if they were independent, by a factor known from the history.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.incident.others import Free, Shifts, worth_of_sums
from eccaht.model.normal import FEWEST_BEFORE, Normal

View = Literal["own", "free", "step"]
VIEWS: tuple[View, ...] = ("own", "free", "step")
STEP_SPREAD = 2.0  # the standard deviation of a step in units of scores
_MOST_MISSING = 0.5  # a sensor silent in more of the windows is not judged by them
_LEAST = 1e-12


class Stretch(NamedTuple):
    """Windows [start, stop) of values, (T, K), in robust units, with the windows before them and seconds of the day."""

    values: Array
    moments: Array
    start: int
    stop: int


def recent_spread(normal: Normal, before: Array, level: Array) -> Array:
    """The spread of the innovations just before, as a multiple of the history's, (K,): some hours are rough.

    The history counts as much as a full hour before.
    """
    if len(before) < FEWEST_BEFORE:
        return np.ones(normal.size)
    innovations = normal.innovations(np.full(normal.size, np.nan), before - level)[1:]
    present = (~np.isnan(innovations)).sum(axis=0)
    return np.asarray(np.sqrt((normal.width + np.nansum(innovations**2, axis=0)) / (normal.width + present)))


def recent_given(normal: Normal, before: Array, level: Array) -> Array:
    """The same for what the others leave unexplained: in some hours sensors keep together better than in others."""
    return _given(normal, normal.scores(before - level))


def _given(normal: Normal, scores: Array) -> Array:
    """The same, by the scores of the windows before."""
    if len(scores) < FEWEST_BEFORE:
        return np.ones(normal.size)
    unexplained = (np.where(np.isnan(scores), 0.0, scores) @ normal.precision) ** 2 / normal.precision.diagonal()
    return np.asarray(np.sqrt((normal.width + unexplained.sum(axis=0)) / (normal.width + len(scores))))


@dataclass(frozen=True)
class Evidence:
    """The three views of one stretch.

    deviations, innovations, scores: (L, K), NaN where a sensor is silent. recent: the spread of the innovations just
    before, in units of the history's, given: that of what the others leave unexplained, (K,). inflation: of the
    variance of sums of g, (K,).
    """

    normal: Normal
    deviations: Array
    innovations: Array
    scores: Array
    level: Array
    recent: Array
    given: Array
    inflation: Array
    correlation: bool = True

    @staticmethod
    def of(
        normal: Normal,
        stretch: Stretch,
        inflation: Array | None = None,
        correlation: bool = True,
        scores: Array | None = None,
    ) -> Evidence:
        """Look at a stretch with the level frozen as it was before.

        scores: of all values, (T, K), which are the same for all stretches where the level is fixed.
        """
        values, moments, start, stop = stretch
        first = max(0, start - normal.width)
        before = values[first:start]
        level = normal.level_at(before, moments[start:stop])
        deviations = values[start:stop] - level
        previous = values[start - 1] - level[0] if start else np.full(normal.size, np.nan)
        innovations = normal.innovations(previous, deviations)
        recent = recent_spread(normal, before, level[0])
        if scores is None:
            here, given = normal.scores(deviations), recent_given(normal, before, level[0])
        else:
            here, given = scores[start:stop], _given(normal, scores[first:start])
        inflation = np.ones(normal.size) if inflation is None else inflation
        return Evidence(normal, deviations, innovations, here, level, recent, given, inflation, correlation)

    @property
    def length(self) -> int:
        """The number of windows."""
        return len(self.deviations)

    @cached_property
    def judged(self) -> NDArray[np.bool_]:
        """Which sensors deliver enough to be judged, (K,)."""
        return np.asarray(np.isnan(self.scores).mean(axis=0) <= _MOST_MISSING)

    @cached_property
    def power(self) -> Array:
        """Half the sum of squares of the innovations, (K,), as if no window were missing."""
        present = np.maximum((~np.isnan(self.innovations)).sum(axis=0), 1)
        return np.asarray(0.5 * np.nansum(self.innovations**2, axis=0) * (self.length / present))

    @cached_property
    def largest(self) -> Array:
        """The largest innovation of each sensor, (K,)."""
        return np.asarray(np.abs(np.where(np.isnan(self.innovations), 0.0, self.innovations)).max(axis=0))

    @cached_property
    def own(self) -> Array:
        """Evidence by each sensor's own past, (K,)."""
        ratio = np.maximum(2.0 * self.power / self.length, _LEAST)
        return np.asarray(0.5 * self.length * (ratio - 1.0 - np.log(np.maximum(ratio, 1.0))))

    # -- by the others ---------------------------------------------------------------------------------

    @cached_property
    def precision(self) -> Array:
        """Q, or its diagonal's stand-in where correlation is not to be used."""
        return self.normal.precision if self.correlation else np.diag(1.0 / self.normal.scatter.diagonal())

    @cached_property
    def complete(self) -> Array:
        """The scores, what is missing filled in by what the others say, so that it bears no evidence, (L, K)."""
        scores, Q = self.scores, self.precision
        missing = np.isnan(scores)
        if not missing.any():
            return scores
        filled = np.where(missing, 0.0, scores)
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            if not pattern.any():
                continue
            rows, gone = np.flatnonzero(which.ravel() == number), np.flatnonzero(pattern)
            pull = filled[rows] @ Q[:, gone]
            filled[np.ix_(rows, gone)] = -np.linalg.solve(Q[np.ix_(gone, gone)], pull.T).T
        return filled

    @cached_property
    def _free(self) -> Free:
        """What the sensors say about each other."""
        return Free.of(self.scores, self.precision)

    @cached_property
    def _shifts(self) -> Shifts:
        """The same for one shift in all windows, which are worth what their memory leaves."""
        W, M = worth_of_sums(self.total, self.inflation)
        return Shifts(W @ self.sums, M, STEP_SPREAD)

    @property
    def free_state(self) -> Free:
        """What the sensors say about each other, none of them set free."""
        return self._free

    @property
    def shifts(self) -> Shifts:
        """The same for one shift in all windows."""
        return self._shifts

    def without(self, chosen: tuple[int, ...]) -> Free:
        """What is left once the chosen sensors are set free."""
        return self._without(chosen)[0]

    @cached_property
    def sums(self) -> Array:
        """The sum of g over the windows, (K,)."""
        return np.asarray(self._free.G.sum(axis=0))

    @cached_property
    def total(self) -> Array:
        """The sum of Q over the windows, without what silent sensors would tell, (K, K)."""
        return self._free.total

    @cached_property
    def _latest(self) -> dict[frozenset[int], tuple[Free, Shifts]]:
        """The set that was looked at last: searches grow sets one by one."""
        return {}

    def _without(self, chosen: tuple[int, ...]) -> tuple[Free, Shifts]:
        """What the others say among themselves once the chosen sensors are set free."""
        wanted = frozenset(chosen)
        known, state = next(iter(self._latest.items()), (frozenset[int](), (self._free, self._shifts)))
        if not known <= wanted:
            known, state = frozenset(), (self._free, self._shifts)
        if known != wanted:
            further = sorted(wanted - known)
            state = (state[0].without(further), state[1].without(further))
            self._latest.clear()
            self._latest[wanted] = state
        return state

    def course(self, before: tuple[int, ...], chosen: tuple[int, ...]) -> Array:
        """What each window says for the chosen sensors beyond those of `before`, by the others, (L,)."""
        nu, state = self.normal.tails, self._without(before)[0]
        less, least = state.q, self._without(chosen)[0].q
        if np.isinf(nu):
            return np.asarray(0.5 * (less - least))
        return np.asarray(0.5 * (nu + state.left) * np.log((nu + less) / (nu + least)))

    def free(self, chosen: tuple[int, ...] = ()) -> Array:
        """What each further sensor adds to the evidence of the chosen ones, less what chance adds, (K,)."""
        return self._plain_free if not chosen else self._free_gains(self._without(chosen)[0])

    @cached_property
    def _plain_free(self) -> Array:
        return self._free_gains(self._free)

    def _free_gains(self, state: Free) -> Array:
        explained = state.G * state.G / state.by_window(state.own)
        nu = self.normal.tails
        if np.isinf(nu):
            gains = 0.5 * explained.sum(axis=0)
        else:
            share = np.minimum(explained / (nu + state.q)[:, None], 1.0 - 1e-9)
            gains = -0.5 * ((nu + state.left)[:, None] * np.log1p(-share)).sum(axis=0)
        return np.asarray(gains - 0.5 * self.length)

    def step(self, chosen: tuple[int, ...] = ()) -> Array:
        """What one constant shift of each further sensor adds to those of the chosen ones, (K,).

        A step is one of the free courses and explains no more than they do, whatever the memory is taken for.
        """
        gains = (self._without(chosen)[1] if chosen else self._shifts).gains()
        return np.asarray(np.minimum(gains, self.free(chosen) + 0.5 * self.length))

    def gains(self, chosen: tuple[int, ...] = ()) -> Array:
        """What each further sensor adds, by view, (3, K); minus infinity for those chosen or not judged."""
        gains = np.stack([self.own, self.free(chosen), self.step(chosen)])
        gains[:, ~self.judged] = -np.inf
        gains[:, list(chosen)] = -np.inf
        return gains
