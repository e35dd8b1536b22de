"""A world that behaves exactly as the problem says."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from eccaht.arrays import Array, Index, as_count, as_floats, check_finite, inner
from eccaht.problem import Problem
from eccaht.randomness import Seed, rng_for


class Simulator:
    """Readings of N(c'mu_A, c'S c) for a hidden anomalous set A, given or drawn at random.

    The set is drawn from (seed, "anomalies") and the noise from (seed, "noise", *names), so that several policies
    can face the same set with noise of their own.

    >>> problem = Problem(np.eye(5), shift=3.0, n_anomalies=2, budget=1.0)
    >>> Simulator(problem, anomalies=[3, 1]).anomalies
    array([1, 3])
    """

    def __init__(
        self,
        problem: Problem,
        *,
        seed: Seed = 0,
        anomalies: Sequence[int] | Index | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self.problem = problem
        if anomalies is None:
            drawn = rng_for(seed, "anomalies").choice(problem.size, problem.n_anomalies, replace=False)
            self.anomalies: Index = np.sort(drawn)
        else:
            self.anomalies = _checked_set(anomalies, problem)
        self._means = problem.mean.copy()
        self._means[self.anomalies] += problem.shift[self.anomalies]
        self._noise = rng_for(seed, "noise", *names)

    def measure(self, c: ArrayLike) -> float:
        """Return one reading of the measurement c."""
        weights = as_floats(c, "measurement")
        if weights.shape != (self.problem.size,):
            raise ValueError(f"measurement has shape {weights.shape}, expected ({self.problem.size},)")
        variance = self.problem.noise_variance(weights)
        if not math.isfinite(variance):
            check_finite(weights, "measurement")
        noise = float(self._noise.standard_normal()) * math.sqrt(variance)
        return inner(weights, self._means) + noise

    def sample(self, size: int) -> Array:
        """Draw whole vectors of all streams, (size, K), from the anomalous state."""
        drawn = self.problem.covariance.sample(self._noise, as_count(size, "size", least=1))
        drawn += self._means
        return drawn


def _checked_set(anomalies: Sequence[int] | Index, problem: Problem) -> Index:
    streams = sorted(as_count(k, "anomalous stream", least=0) for k in np.asarray(anomalies).tolist())
    if len(set(streams)) != problem.n_anomalies or len(streams) != problem.n_anomalies:
        raise ValueError(f"anomalies must be {problem.n_anomalies} different streams, not {streams}")
    if streams[-1] >= problem.size:
        raise ValueError(f"anomalous stream {streams[-1]} does not exist: there are {problem.size} streams")
    return np.array(streams, dtype=np.intp)
