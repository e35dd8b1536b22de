"""A yardstick for models without drills: stretches drawn from the model itself."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import ndtri, stdtr

from eccaht.arrays import Array
from eccaht.incident.quiet import Quiet, longest_repeats, quiet_of, sample_quiet
from eccaht.model.normal import Normal
from eccaht.randomness import rng_for

_WINDOWS = 2000


@lru_cache(maxsize=8)
def simulated_quiet(normal: Normal) -> Quiet:
    """What quiet stretches would show if the model were all there is to normal operation."""
    values = simulated(normal, _WINDOWS)
    moments = np.zeros(len(values))
    return quiet_of([sample_quiet(normal, values, moments)], longest_repeats(values))


def simulated(normal: Normal, windows: int, seed: int = 0) -> Array:
    """Windows around the level at midnight: scores with memory, made deviations.

    Each sensor's scores are normal, as they are in the history; under heavy tails sensors are unusual together as those
    of a t are.
    """
    rng = rng_for(seed, "quiet windows")
    root = np.linalg.cholesky(normal.scatter)
    shocks = rng.standard_normal((windows, normal.size)) @ root.T
    if np.isfinite(normal.tails):
        shocks *= np.sqrt(normal.tails / rng.chisquare(normal.tails, (windows, 1)) / normal.scatter.diagonal())
        shocks = -np.sign(shocks) * ndtri(stdtr(normal.tails, -np.abs(shocks)))
    scores = np.empty_like(shocks)
    scores[0] = shocks[0]
    fresh = np.sqrt(1.0 - normal.memory**2)
    for t in range(1, windows):
        scores[t] = normal.memory * scores[t - 1] + fresh * shocks[t]
    return np.asarray(normal.profile[0] + normal.deviations_of(scores))
