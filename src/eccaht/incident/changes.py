"""When the named sensors changed their course: the likelihood of every onset in a stretch.

Of each sensor its residual x is followed: what the sensors that are not named leave unexplained, or its own score where
its own past is the stronger witness, with unit variance in normal operation. Before an onset x is as usual: a small
unknown offset (levels are estimated), memory, and now and then an outlier. After it x has a shape of unknown size, a
step or a drift, and an unknown spread. All that is unknown is summed over: sizes in closed form, the rest over grids.
Memory is taken out before: x_t - phi x_{t-1}, of residuals and shapes alike, in which a step stands out by its first
window. Under heavy tails a window counts in units of how rough it is for the other sensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp

from eccaht.arrays import Array, frozen
from eccaht.incident.judge import Judgement
from eccaht.incident.others import eliminated
from eccaht.incident.predictions import Predictions

_MEMORIES = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.995)  # phi
_SPREADS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # after the onset, in units of before
_SIZES = (3.0, 10.0, 30.0)  # standard deviations of the size of a shape, in the same units
_KNEES = (1.0, 0.6, 0.4, 0.25)  # share of a drift after which scores grow with its logarithm only: see Normal.scores
_OFFSET = 0.5  # standard deviation of the error of a level
_OUTLIERS, _WIDE = 0.01, 10.0  # share of outliers in normal operation, and their spread


def log_onsets(judgement: Judgement, sensors: Sequence[int]) -> Array:
    """The log of the posterior probability of an onset of these sensors at each window of the stretch, (L,)."""
    residuals, others, precision = _residuals(judgement, list(sensors))
    nu = judgement.evidence.normal.tails
    found = []
    for memory in _MEMORIES:
        rough = np.ones(len(others))
        if np.isfinite(nu):
            fresh = _without_memory(others, memory)
            distances = np.einsum("tk,tk->t", fresh @ precision, fresh)
            rough = np.sqrt((nu + distances) / (nu + others.shape[1]))
        found.append(_likelihoods(residuals, rough, memory))
    total = logsumexp(np.array(found), axis=0).sum(axis=1)
    return np.asarray(total - logsumexp(total))


def _residuals(judgement: Judgement, sensors: list[int]) -> tuple[Array, Array, Array]:
    """Residuals of the sensors, (L, n), NaN where there are none, and the scores of those not named, with their Q."""
    evidence = judgement.evidence
    predictions = Predictions.of(evidence, judgement.named)
    own = np.array([judgement.views[k] == "own" for k in sensors])
    scores = evidence.scores[:, sensors]
    alone = scores / np.sqrt(evidence.normal.scatter.diagonal()[sensors])
    given = (scores - predictions.expected[:, sensors]) / predictions.spread[:, sensors]
    residuals = np.where(own, alone, given)
    if np.isinf(evidence.normal.tails):  # heavy tails measure how rough it is window by window
        residuals = residuals / np.where(own, evidence.recent[sensors], evidence.given[sensors])
    left = np.setdiff1d(np.arange(evidence.normal.size), judgement.named)
    others = np.where(np.isnan(evidence.scores), predictions.expected, evidence.scores)[:, left]
    gone = np.array(judgement.named, dtype=np.intp)
    return residuals, others, eliminated(evidence.precision, gone)[np.ix_(left, left)]


def _likelihoods(residuals: Array, rough: Array, memory: float) -> Array:
    """The log density of each sensor's residuals, (L, n), if it changed at each window or not at all."""
    present = ~np.isnan(residuals)
    fresh = np.where(present, _without_memory(_held(residuals), memory) / rough[:, None], 0.0)
    scale = np.full(len(fresh), np.sqrt(1.0 - memory**2))
    scale[0] = 1.0
    density = np.where(present, -np.log(scale * rough)[:, None], 0.0)
    usual = _usual(fresh, present, density, _without_memory(np.ones((len(fresh), 1)), memory) / rough[:, None])
    changed = usual[:-1] + _changed(fresh, present, rough, memory) + _following(density)
    return np.asarray(np.logaddexp(changed, usual[-1]))


def _usual(fresh: Array, present: Array, density: Array, offset: Array) -> Array:
    """The log density of the windows before each one, and of all, (L + 1, n), in normal operation."""
    plain = np.log1p(-_OUTLIERS) + _log_normal(fresh, 1.0)
    either = np.logaddexp(plain, np.log(_OUTLIERS) + _log_normal(fresh, _WIDE))
    sound = np.where(present, np.exp(plain - either), 0.0)  # the probability that a window is no outlier
    so_far = np.cumsum(np.where(present, either, 0.0) + density, axis=0)
    so_far += _gain(np.cumsum(offset * sound * fresh, axis=0), np.cumsum(offset**2 * sound, axis=0), _OFFSET)
    return np.vstack([np.zeros((1, fresh.shape[1])), so_far])


def _changed(fresh: Array, present: Array, rough: Array, memory: float) -> Array:
    """The log density of the windows from each one on, (L, n), if the change came with it: a mean over what it is."""
    number, power = _following(present), _following(fresh**2)
    spreads, sizes = np.reshape(_SPREADS, (-1, 1, 1)), np.reshape(_SIZES, (-1, 1, 1, 1))
    flat = -number * np.log(spreads) - 0.5 * power / spreads**2  # by spread, (6, L, n)
    terms = [flat[1:]] * len(_SIZES)  # noise without a shape
    there = present.astype(np.float64)
    for shape in _shapes(len(fresh)):
        moved = _without_memory(shape.T, memory).T / rough
        b, M = moved @ fresh, moved**2 @ there
        terms += list(flat + _gain(b / spreads**2, M / spreads**2, sizes))
    together = np.concatenate(terms)
    return np.asarray(logsumexp(together, axis=0) - np.log(len(together)) - 0.5 * number * np.log(2.0 * np.pi))


def _gain(b: Array, M: Array, size: Array | float) -> Array:
    """The log ratio of marginal likelihoods for a shape whose size is N(0, size^2)."""
    return np.asarray(0.5 * b**2 / (M + 1.0 / size**2) - 0.5 * np.log1p(size**2 * M))


def _log_normal(x: Array, spread: float) -> Array:
    return np.asarray(-0.5 * (x / spread) ** 2 - np.log(spread) - 0.5 * np.log(2.0 * np.pi))


def _following(course: Array) -> Array:
    """The sum from each window on."""
    return np.cumsum(course[::-1], axis=0)[::-1]


def _without_memory(courses: Array, memory: float) -> Array:
    """What is new in each window of courses, (L, n), with unit variance; of the first nothing is known before."""
    fresh = np.array(courses, dtype=np.float64)
    fresh[1:] = (courses[1:] - memory * courses[:-1]) / np.sqrt(1.0 - memory**2)
    return fresh


def _held(courses: Array) -> Array:
    """Courses, (L, n), in which the last reading stands in for those missing, and 0 before the first."""
    place = np.where(np.isnan(courses), -1, np.arange(len(courses))[:, None])
    last = np.maximum.accumulate(place, axis=0)
    return np.where(last >= 0, np.take_along_axis(courses, np.maximum(last, 0), axis=0), 0.0)


@lru_cache(maxsize=2)
def _shapes(length: int) -> tuple[Array, ...]:
    """A step and drifts that end at 1, by onset and window, (L, L) each."""
    time = np.arange(length)
    done = np.maximum(time - time[:, None] + 1.0, 0.0) / (length - time[:, None])
    drifts = [np.where(done <= knee, done, knee + knee * np.log(np.maximum(done, knee) / knee)) for knee in _KNEES]
    shapes = [np.where(done > 0.0, 1.0, 0.0), *(drift / drift[0, -1] for drift in drifts)]
    return tuple(frozen(shape) for shape in shapes)
