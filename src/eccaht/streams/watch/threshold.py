"""How much evidence raises an alarm.

R is the sum of the likelihood ratios of all onsets, and an alarm is raised once R >= A. The mean over changes at all
times of 1 / R at the alarm is exactly 1 over the mean time to a false alarm, for any rule of reading, because each
term is R over itself. As 1 / R <= 1 / A, log A = log(mean time) is on the safe side; R exceeds A by what a step adds.
"""

import math

import numpy as np
from scipy.special import ndtr

from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.streams.problem import Problem
from eccaht.streams.watch.choice import Choice
from eccaht.streams.watch.evidence import Evidence
from eccaht.streams.watch.readings import Readings

_FOCUSED = 64  # streams for which the size of a step is worked out
_STEPS, _CHANGES = 600, 64  # simulated at most
_SAFE = 2.0  # standard errors
_EXACT = 1e-3  # nats


def threshold_of(problem: Problem, choice: Choice | None, every: float) -> float:
    """For one false alarm in `every` steps, in nats."""
    highest = math.log(every)
    if problem.degrees_of_freedom is not None or problem.estimated_from is not None:
        return highest
    if choice is None:
        return highest + math.log(_overshoot(problem))
    rng, records = rng_for(0, "threshold"), list[Array]()
    while sum(map(len, records)) < _STEPS and len(records) < _CHANGES:
        records.append(np.maximum.accumulate(_change(problem, choice, highest, len(records) % 2 == 0, rng)))
    low, high = 0.0, highest
    while high - low > _EXACT:
        middle = 0.5 * (low + high)
        first = np.exp([-np.append(record, middle)[np.searchsorted(record, middle)] for record in records])
        safe = first.mean() + _SAFE * first.std() / math.sqrt(len(first)) <= 1.0 / every
        low, high = (low, middle) if safe else (middle, high)
    return high


def _change(problem: Problem, choice: Choice, highest: float, one: bool, rng: np.random.Generator) -> list[float]:
    """The evidence after each step of a change that the evidence expects, of one stream or of a guess; to `highest`."""
    evidence, readings, path = Evidence(problem), Readings(problem), [-math.inf]
    size, stream = (int(rng.integers(count)) for count in evidence.shifts.shape)
    moved = np.eye(1, problem.size, stream)[0] * evidence.shifts[size]
    odds = None if one or not evidence.odds else float(rng.choice(evidence.odds))
    while path[-1] < highest and len(path) < _STEPS:
        noise = readings.whitened(choice(evidence.suspicion()))
        if odds is not None:
            _, mean, variance = evidence.expected(odds)
            moved = mean + np.sqrt(np.maximum(variance, 0.0)) * rng.standard_normal(problem.size)
        w = noise.weights @ moved + rng.standard_normal(len(noise.weights))
        evidence.update(noise.weights, w, noise.information)
        path.append(evidence.log)
    return path


def _overshoot(problem: Problem) -> float:
    """The mean of exp(-excess), from steps whose readings are all about one stream."""
    streams = np.unique(np.linspace(0, problem.size - 1, _FOCUSED).astype(int)).tolist()
    information = Readings(problem).whole(np.ones(problem.size, dtype=bool)).information[streams]
    return float(overshoot(np.abs(Evidence(problem).shifts[:, streams]) * np.sqrt(information)).mean())


def overshoot(steps: Array) -> Array:
    """The mean of exp(-excess) of a Gaussian walk over a high threshold, for steps of so many standard deviations.

    Siegmund, Sequential Analysis (1985), equation 8.48, in its usual approximation.

    >>> overshoot(np.array([0.1, 1.0])).round(2)
    array([0.94, 0.55])
    """
    half = 0.5 * np.maximum(steps, 1e-6)
    density = np.exp(-0.5 * half**2) / math.sqrt(2.0 * math.pi)
    return np.asarray((ndtr(half) - 0.5) / half / (half * ndtr(half) + density))
