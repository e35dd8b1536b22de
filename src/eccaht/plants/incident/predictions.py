"""What the sensors that are not named say that each sensor should read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.plants.model.normal import Normal

BAND = 1.96  # of what is expected, in deviations: 95 %
_MATTERS = 0.05  # weight from which on a sensor says something about another
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Predictions:
    """What the sensors that are not named predict for every sensor, in the same window, in spreads.

    A sensor is predicted by all that are present and are neither named nor itself: readings of named sensors take no
    part, not even in place of what is missing.
    z: the windows, (T, K), NaN where a sensor is silent. expected: (T, K). spread: of what remains open, (T, K).
    """

    normal: Normal
    named: tuple[int, ...]
    z: Array
    expected: Array
    spread: Array

    @staticmethod
    def of(normal: Normal, values: Array, named: tuple[int, ...]) -> Predictions:
        """Of all sensors, in windows of robust units, (T, K)."""
        z, Q = (values - normal.centre) / normal.scale, normal.others
        absent = np.isnan(z)
        absent[:, list(named)] = True
        known = np.where(absent, 0.0, np.clip(z, -30.0, 30.0))
        expected, variance = np.zeros_like(known), np.ones_like(known)
        patterns, which = np.unique(absent, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == number)
            gone, left = np.flatnonzero(pattern), np.flatnonzero(~pattern)
            inner = np.linalg.inv(Q[np.ix_(gone, gone)])
            expected[np.ix_(rows, gone)] = -known[rows] @ Q[:, gone] @ inner
            variance[np.ix_(rows, gone)] = inner.diagonal()
            if left.size:
                others = eliminated(Q, gone)[np.ix_(left, left)]
                present = known[np.ix_(rows, left)]
                variance[np.ix_(rows, left)] = 1.0 / others.diagonal()
                expected[np.ix_(rows, left)] = present - present @ others / others.diagonal()
        return Predictions(normal, named, z, expected, np.sqrt(np.maximum(variance, _LEAST)))

    @property
    def residual(self) -> Array:
        """What the sensors read beyond what is expected, in spreads, (T, K)."""
        return self.z - self.expected

    def band(self, sensor: int) -> tuple[Array, Array, Array]:
        """What is expected of a sensor in robust units, and the ends of its 95 % band, (T,) each."""
        middle, away = self.expected[:, sensor], BAND * self.spread[:, sensor]
        centre, scale = self.normal.centre[sensor], self.normal.scale[sensor]
        expected, low, high = (centre + scale * each for each in (middle, middle - away, middle + away))
        return expected, low, high

    @cached_property
    def _others(self) -> Array:
        """The precision of the sensors that are not named among themselves."""
        return eliminated(self.normal.others, np.array(self.named, dtype=np.intp))

    def weights(self, sensor: int) -> Array:
        """The weights of all sensors in what is expected of one where nothing is missing, (K,)."""
        Q = self.normal.others
        if sensor in self.named:
            A = list(self.named)
            weights = -np.linalg.solve(Q[np.ix_(A, A)], Q[A])[A.index(sensor)]
            weights[A] = 0.0
            return np.asarray(weights)
        weights = -self._others[sensor] / self._others[sensor, sensor]
        weights[sensor] = 0.0
        return np.asarray(weights)

    def strongest(self, sensor: int, most: int = 3) -> list[tuple[int, float]]:
        """The sensors that say most about one, with their weights."""
        weights = self.weights(sensor)
        order = np.argsort(-np.abs(weights), kind="stable")[:most]
        return [(int(k), float(weights[k])) for k in order if abs(weights[k]) > _MATTERS]


def eliminated(precision: Array, gone: Index) -> Array:
    if not gone.size:
        return precision
    left = precision - precision[:, gone] @ np.linalg.solve(precision[np.ix_(gone, gone)], precision[gone])
    left[gone], left[:, gone] = 0.0, 0.0
    return np.asarray(left)
