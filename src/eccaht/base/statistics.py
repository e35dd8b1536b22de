"""Numbers derived from records: the only place where F1 and delays are computed."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, gammaincinv, ndtr, ndtri

from eccaht.base.arrays import Array, as_count, as_floats, as_number, check_finite

_BLOCK = 128  # curves resampled at a time: 10,000 resamples of them take 10 MB


def f1_score(hits: ArrayLike, n_decided: int, n_anomalies: int) -> Array:
    """F1 = 2 hits / (decided + anomalous), elementwise.

    >>> f1_score([0, 2, 3], 3, 3).round(3)
    array([0.   , 0.667, 1.   ])
    """
    return 2.0 * np.asarray(hits, dtype=float) / (n_decided + n_anomalies)


def first_reached(curve: ArrayLike, level: float = 0.95) -> int | None:
    """Measurements until the curve (one value a measurement) is at `level` for the first time; None if never.

    >>> first_reached([0.0, 1.0, 0.5, 1.0]), first_reached([0.0])
    (2, None)
    """
    above = np.asarray(curve) >= level
    return int(above.argmax()) + 1 if above.any() else None


def reached_for_good(curve: ArrayLike, level: float = 0.95) -> int | None:
    """Measurements until the curve is at `level` and never below it again; None if it ends below.

    >>> reached_for_good([0.0, 1.0, 0.5, 1.0]), reached_for_good([1.0, 0.0])
    (4, None)
    """
    above = np.asarray(curve) >= level
    if above.size == 0 or not above[-1]:
        return None
    below = np.flatnonzero(~above)
    return int(below[-1]) + 2 if below.size else 1


class Arrivals(NamedTuple):
    """One value a run: measurements to the level first and for good, None where it never is there, and the last F1."""

    first: list[int | None]
    for_good: list[int | None]
    final: Array


def arrivals(f1: Array, level: float = 0.95) -> Arrivals:
    """Times and final F1 of each run, from F1 after every measurement, (runs, horizon)."""
    first, for_good = ([reached(run, level) for run in f1] for reached in (first_reached, reached_for_good))
    return Arrivals(first, for_good, f1[:, -1])


def bca_interval(
    samples: ArrayLike, *, rng: np.random.Generator, resamples: int = 10_000, level: float = 0.95
) -> Array:
    """Bias-corrected and accelerated bootstrap interval of the mean over the first axis (Efron 1987).

    samples: (runs, ...). Returns (2, ...): lower and upper end. All means are resampled with the same draws of runs,
    so that the interval of one does not depend on which others are asked for. Runs that all agree give an
    interval of width 0; a single run says nothing about its spread and gives nan.

    >>> bca_interval([[1.0, 7.0], [2.0, 7.0], [6.0, 7.0]], rng=np.random.default_rng(0)).round(2)
    array([[1.33, 7.  ],
           [6.  , 7.  ]])
    """
    x = as_floats(samples, "samples")
    if x.ndim == 0 or len(x) == 0:
        raise ValueError(f"samples must have at least one run along the first axis, not shape {x.shape}")
    check_finite(x, "samples")
    level = _checked_level(level)
    runs, resamples = len(x), as_count(resamples, "resamples", least=1)
    if runs == 1:
        return np.full((2, *x.shape[1:]), np.nan)
    curves = x.reshape(runs, -1).T
    ends = np.repeat(curves[:, :1], 2, axis=1)
    varied = np.flatnonzero((curves != curves[:, :1]).any(axis=1))
    draws = rng.multinomial(runs, np.full(runs, 1.0 / runs), size=resamples).T / runs  # how often each run is drawn
    tails = ndtri([(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    for start in range(0, varied.size, _BLOCK):
        block = varied[start : start + _BLOCK]
        ends[block] = _bca_ends(curves[block], draws, tails)
    return ends.T.reshape(2, *x.shape[1:])


class Estimate(NamedTuple):
    """A mean over runs and its 95 % interval, None where the runs are too few."""

    mean: float
    interval: tuple[float, float] | None


class Delay(NamedTuple):
    """Measurements until something holds, one entry a run, None for a run that was cut off before.

    A run that was cut off (censored) enters the mean at the horizon: mean and interval are then lower bounds.
    """

    times: Sequence[float | None]
    mean: float
    interval: tuple[float, float] | None

    @property
    def censored(self) -> int:
        """The number of runs that were cut off."""
        return self.times.count(None)

    def as_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "censored": self.censored, "lower_bound": self.censored > 0}


def estimate(values: ArrayLike, *, rng: np.random.Generator) -> Estimate:
    """Mean and interval of one value a run.

    >>> estimate([0.5], rng=np.random.default_rng(0))
    Estimate(mean=0.5, interval=None)
    """
    x = as_floats(values, "values")
    low, high = bca_interval(x, rng=rng).tolist()
    return Estimate(float(x.mean()), None if len(x) == 1 else (low, high))


def delay(times: Sequence[float | None], horizon: float, *, rng: np.random.Generator) -> Delay:
    """Summarise times that were observed up to a horizon.

    >>> late = delay([4, None, 8], horizon=9, rng=np.random.default_rng(0))
    >>> late.mean, late.censored
    (7.0, 1)
    """
    mean, interval = estimate([horizon if time is None else time for time in times], rng=rng)
    observed = any(time is not None for time in times)  # without one, equal values are no sign of certainty
    return Delay(list(times), mean, interval if observed else None)


def clopper_pearson(
    count: int, trials: int, *, level: float = 0.95, side: Literal["both", "upper"] = "both"
) -> tuple[float, float]:
    """Interval of a probability from how often something happened (Clopper & Pearson 1934).

    Its coverage is at least `level` for any probability. side="upper": from 0 to a one-sided upper bound.

    >>> low, high = clopper_pearson(3, 50)
    >>> round(low, 4), round(high, 4)
    (0.0125, 0.1655)
    """
    count, trials = _checked_count(count, trials)
    tail = (1.0 if side == "upper" else 0.5) * (1.0 - _checked_level(level))
    low = betaincinv(count, trials - count + 1, tail) if count and side == "both" else 0.0
    high = betaincinv(count + 1, trials - count, 1.0 - tail) if count < trials else 1.0
    return float(low), float(high)


def poisson_interval(count: int, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of the expected number of what happened `count` times, independently (Garwood 1936).

    Its coverage is at least `level` for any expected number.

    >>> low, high = poisson_interval(3)
    >>> round(low, 4), round(high, 4)
    (0.6187, 8.7673)
    """
    count, tail = as_count(count, "count", least=0), 0.5 * (1.0 - _checked_level(level))
    return float(gammaincinv(count, tail)) if count else 0.0, float(gammaincinv(count + 1, 1.0 - tail))


def chance_of_as_many(count: int, trials: int, probability: float) -> float:
    """The chance that something of the given probability happens `count` times or more: a one-sided p-value.

    >>> chance_of_as_many(2, 2, 0.5), chance_of_as_many(0, 2, 0.5)
    (0.25, 1.0)
    """
    count, trials = _checked_count(count, trials)
    if not 0 <= as_number(probability, "probability") <= 1:
        raise ValueError(f"probability must lie between 0 and 1, not {probability!r}")
    return float(betainc(count, trials - count + 1, probability)) if count else 1.0


def _checked_level(level: float) -> float:
    if not 0 < as_number(level, "level") < 1:
        raise ValueError(f"level is a probability and must lie strictly between 0 and 1, not {level!r}")
    return level


def _checked_count(count: int, trials: int) -> tuple[int, int]:
    trials = as_count(trials, "trials", least=1)
    if as_count(count, "count", least=0) > trials:
        raise ValueError(f"count = {count} must not be above the number of trials, {trials}")
    return int(count), trials


def _bca_ends(curves: Array, draws: Array, tails: Array) -> Array:
    """(m, runs) samples, (runs, resamples) shares -> (m, 2) ends of the intervals of their means."""
    mean = curves.mean(axis=1, keepdims=True)
    deviations = curves - mean
    means = np.sort(deviations @ draws, axis=1)  # of the resamples, less the sample's own
    # resamples that hit the mean itself count half; rounding must not decide on which side they fall
    rounding = 1e-12 * np.abs(curves).max(axis=1, keepdims=True)
    share = 0.5 * ((means < -rounding).mean(axis=1) + (means <= rounding).mean(axis=1))
    least = 0.5 / draws.shape[1]
    bias = ndtri(np.clip(share, least, 1.0 - least))[:, None]
    scaled = deviations / np.abs(deviations).max(axis=1, keepdims=True)  # the cube of a tiny number is 0
    # of the mean, the jackknife's values deviate as the sample does
    acceleration = (scaled**3).sum(axis=1) / (6.0 * (scaled**2).sum(axis=1) ** 1.5)
    z = bias + tails
    place = ndtr(bias + z / (1.0 - acceleration[:, None] * z)) * (means.shape[1] - 1)
    low = np.floor(place).astype(np.intp)
    high = np.minimum(low + 1, means.shape[1] - 1)
    lower, upper = np.take_along_axis(means, low, axis=1), np.take_along_axis(means, high, axis=1)
    return mean + lower + (place - low) * (upper - lower)
