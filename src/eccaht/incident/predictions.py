"""What the sensors that are not named say the named ones should read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eccaht.arrays import Array
from eccaht.incident.views import Evidence
from eccaht.model.normal import Normal

BAND = 1.96  # of what is expected, in deviations: 95 %


@dataclass(frozen=True)
class Prediction:
    """What the others predict for one sensor, in scores: weights of the others, (K,), and what remains unexplained."""

    sensor: int
    weights: Array
    spread: float

    @staticmethod
    def of(normal: Normal, sensor: int, named: tuple[int, ...]) -> Prediction:
        """The regression of a sensor on all that are neither named nor itself."""
        others = np.setdiff1d(np.arange(normal.size), [*named, sensor])
        R = normal.scatter
        weights = np.zeros(normal.size)
        unexplained = R[sensor, sensor]
        if others.size:
            weights[others] = np.linalg.solve(R[np.ix_(others, others)], R[others, sensor])
            unexplained = R[sensor, sensor] - R[sensor, others] @ weights[others]
        return Prediction(sensor, weights, float(np.sqrt(max(unexplained, 1e-12))))

    def scores(self, complete: Array) -> Array:
        """The expected scores, (T,), given those of all sensors without gaps, (T, K)."""
        return np.asarray(complete @ self.weights)

    def deviations(self, normal: Normal, expected: Array) -> tuple[Array, Array, Array]:
        """The expected deviations in robust units, and the ends of their 95 % band, (T,) each."""
        away = BAND * self.spread
        middle, low, high = (normal.deviation_of(self.sensor, expected + each) for each in (0.0, -away, away))
        return middle, low, high

    def strongest(self, most: int = 3) -> list[int]:
        """The sensors that say most about this one."""
        order = np.argsort(-np.abs(self.weights), kind="stable")[:most]
        return [int(k) for k in order if abs(self.weights[k]) > 0.05]


def residuals(evidence: Evidence, prediction: Prediction) -> Array:
    """How far a sensor is from what the others predict, in robust units, (L,); NaN where it is silent."""
    expected = prediction.scores(evidence.complete)
    middle = prediction.deviations(evidence.normal, expected)[0]
    return np.asarray(evidence.deviations[:, prediction.sensor] - middle)
