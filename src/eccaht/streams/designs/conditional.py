"""The information of a measurement beyond others that are under way (docs/batches.md).

The readings of earlier measurements are not known yet, but their information is. If set s is right, that of c_j has
mean m_js in units of its noise.

Separating the likeliest set A from its rivals: the bound on confusing A and s after all readings has a factor
exp(-(m_js - m_jA)^2 / 8) for each of them, whatever they will read. So a rival counts by what they leave of it.

Most informative: the information about the set in a reading y, given those of the earlier ones, is the average over
their outcomes of the information of y about sets weighted as after that outcome. Outcomes are drawn: a set by its
probability, and noise.
"""

from __future__ import annotations

import numpy as np

from eccaht.base.arrays import Array, Index

_OUTCOMES = 12  # drawn
_DOUBT = 0.05  # on average after an outcome; where less is left the earlier readings are taken for noisier
_RATIO = 0.4  # of the weight of their evidence, then
_COUNTS = 1e-6  # probability below which a set is left out


def left_of(chance: Array, likeliest: int, earlier: Array) -> Array:
    """Weights of the rivals of a set after readings with these means, (m, N), in proportion to those of `chance`."""
    exponent = -0.25 * ((earlier - earlier[:, likeliest : likeliest + 1]) ** 2).sum(axis=0)  # of sqrt(chance), squared
    with np.errstate(divide="ignore"):
        log_weights = np.log(chance) + exponent
    log_weights[likeliest] = -np.inf
    top = float(log_weights.max())
    return np.exp(log_weights - top) if np.isfinite(top) else np.zeros(chance.size)


class Outcomes:
    """Probabilities of the sets after each of some outcomes of the earlier readings."""

    def __init__(self, chance: Array, earlier: Array, rng: np.random.Generator) -> None:
        line, count = chance.cumsum(), _OUTCOMES
        drawn = np.searchsorted(line, (np.arange(count) + rng.random(count)) / count * line[-1], side="right")
        drawn = np.minimum(drawn, chance.size - 1)
        read = earlier[:, drawn] + rng.standard_normal((len(earlier), count))
        misfit = np.zeros((count, chance.size))
        for outcomes, expected in zip(read, earlier, strict=True):
            misfit += (outcomes[:, None] - expected) ** 2
        misfit -= misfit.min(axis=1, keepdims=True)
        self.sets: list[Index] = []
        self.chances: list[Array] = []
        weight = 1.0
        after = _weighted(chance, misfit, weight)
        while float(1.0 - after.max(axis=1).mean()) < _DOUBT and weight > 1e-9:
            weight *= _RATIO
            after = _weighted(chance, misfit, weight)
        for probabilities in after:
            (some,) = np.nonzero(probabilities > _COUNTS)
            self.sets.append(some)
            self.chances.append(probabilities[some] / probabilities[some].sum())


def _weighted(chance: Array, misfit: Array, weight: float) -> Array:
    after = chance * np.exp(-0.5 * weight * misfit)
    return np.asarray(after / after.sum(axis=1, keepdims=True))
