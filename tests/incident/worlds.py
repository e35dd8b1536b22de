"""Normal operation that is known exactly, and windows of it."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from eccaht.arrays import Array
from eccaht.incident.quiet import Quiet, longest_repeats, quiet_of, sample_quiet
from eccaht.incident.usual import simulated
from eccaht.incident.views import Evidence
from eccaht.model.normal import Normal

KNOT_SCORES = np.asarray(ndtri(np.linspace(0.55, 0.9995, 12)))


def scatter_of(sensors: int, seed: int = 0) -> Array:
    """A correlation matrix in which every sensor has something in common with others."""
    root = np.random.default_rng(seed).standard_normal((sensors, 2 * sensors))
    R = root @ root.T
    deviations = np.sqrt(R.diagonal())
    return np.asarray(R / np.outer(deviations, deviations))


def normal_of(
    sensors: int = 5, *, tails: float = np.inf, memory: float = 0.0, seed: int = 0, scatter: Array | None = None
) -> Normal:
    """Normal operation around 0 whose scores, up to the largest knot, are the deviations themselves."""
    return Normal(
        level="fixed",
        profile=np.zeros((1, sensors)),
        width=60,
        memory=np.full(sensors, memory),
        spread=np.full(sensors, np.sqrt(1.0 - memory**2)),
        knots=np.tile(KNOT_SCORES[:, None], sensors),
        knot_scores=KNOT_SCORES,
        scatter=scatter_of(sensors, seed) if scatter is None else scatter,
        tails=tails,
    )


def evidence_of(normal: Normal, scores: Array, *, correlation: bool = True, inflation: Array | None = None) -> Evidence:
    """The views of windows with these scores, (L, K)."""
    return Evidence(
        normal=normal,
        deviations=scores,
        innovations=normal.innovations(np.full(normal.size, np.nan), scores),
        scores=scores,
        level=np.zeros_like(scores),
        recent=np.ones(normal.size),
        given=np.ones(normal.size),
        inflation=np.ones(normal.size) if inflation is None else inflation,
        correlation=correlation,
    )


def quiet_worlds(normal: Normal, worlds: int = 3, windows: int = 1500) -> Quiet:
    """The yardstick of several histories that fit the model."""
    values = [simulated(normal, windows, seed) for seed in range(worlds)]
    samples = [sample_quiet(normal, each, np.zeros(windows)) for each in values]
    return quiet_of(samples, longest_repeats(values[0]))
