"""What the sensors that are not named say that each sensor should read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eccaht.arrays import Array
from eccaht.incident.others import eliminated
from eccaht.incident.views import Evidence
from eccaht.model.normal import Normal

BAND = 1.96  # of what is expected, in deviations: 95 %
_MATTERS = 0.05  # weight from which on a sensor says something about another
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Predictions:
    """What the sensors that are not named predict for every sensor, in scores.

    A sensor is predicted by all that are present in the same window and are neither named nor itself: readings of
    named sensors take no part, not even in place of what is missing.
    precision: Q, (K, K). expected: (T, K). spread: the standard deviation of what remains unexplained, (T, K).
    """

    normal: Normal
    precision: Array
    named: tuple[int, ...]
    expected: Array
    spread: Array

    @staticmethod
    def of(evidence: Evidence, named: tuple[int, ...]) -> Predictions:
        """Of all sensors, in all windows of the evidence."""
        scores, Q = evidence.scores, evidence.precision
        absent = np.isnan(scores)
        absent[:, list(named)] = True
        known = np.where(absent, 0.0, scores)
        expected, variance = np.empty_like(known), np.empty_like(known)
        patterns, which = np.unique(absent, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == number)
            gone, left = np.flatnonzero(pattern), np.flatnonzero(~pattern)
            inner = np.linalg.inv(Q[np.ix_(gone, gone)])
            expected[np.ix_(rows, gone)] = -known[rows] @ Q[:, gone] @ inner
            variance[np.ix_(rows, gone)] = inner.diagonal()
            others = eliminated(Q, gone)[np.ix_(left, left)]
            present = known[np.ix_(rows, left)]
            variance[np.ix_(rows, left)] = 1.0 / others.diagonal()
            expected[np.ix_(rows, left)] = present - present @ others / others.diagonal()
        return Predictions(evidence.normal, Q, named, expected, np.sqrt(np.maximum(variance, _LEAST)))

    def deviations(self, sensor: int) -> tuple[Array, Array, Array]:
        """The expected deviations of a sensor in robust units, and the ends of their 95 % band, (T,) each."""
        middle, away = self.expected[:, sensor], BAND * self.spread[:, sensor]
        expected, low, high = (
            self.normal.deviation_of(sensor, each) for each in (middle, middle - away, middle + away)
        )
        return expected, low, high

    @cached_property
    def _others(self) -> Array:
        """The precision of the sensors that are not named among themselves."""
        return eliminated(self.precision, np.array(self.named, dtype=np.intp))

    @cached_property
    def _of_named(self) -> Array:
        """The weights of all sensors in what is expected of the named ones, (n, K)."""
        A = list(self.named)
        weights = -np.linalg.solve(self.precision[np.ix_(A, A)], self.precision[A])
        weights[:, A] = 0.0
        return np.asarray(weights)

    def weights(self, sensor: int) -> Array:
        """The weights of all sensors in what is expected of one where nothing is missing, (K,)."""
        if sensor in self.named:
            return np.asarray(self._of_named[self.named.index(sensor)])
        weights = -self._others[sensor] / self._others[sensor, sensor]
        weights[sensor] = 0.0
        return np.asarray(weights)

    def strongest(self, sensor: int, most: int = 3) -> list[tuple[int, float]]:
        """The sensors that say most about one, with their weights."""
        weights = self.weights(sensor)
        order = np.argsort(-np.abs(weights), kind="stable")[:most]
        return [(int(k), float(weights[k])) for k in order if abs(weights[k]) > _MATTERS]
