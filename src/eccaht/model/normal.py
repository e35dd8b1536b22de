"""Normal operation as it is, in robust units: a level that may move, memory, heavy tails, and what sensors share.

A window x_t of K sensors is judged in two views of its deviation d_t = x_t - level_t:

- by a sensor's own past: the innovation u_t = d_t - phi d_{t-1}, in units of its spread;
- by the other sensors: the normal score z of |d_t|, with its sign, whose joint law is a multivariate t with scatter R
  and nu degrees of freedom (a Gaussian if nu is infinite). Scores keep what sensors share and leave out how heavy
  the tails of each are; beyond what the history has seen they grow with the logarithm of the deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import rank_filter
from scipy.special import ndtri

from eccaht.arrays import Array, frozen

Level = Literal["fixed", "daily", "local"]
LEVELS: tuple[Level, ...] = get_args(Level)
WIDTH = 60  # windows before an incident from which a local level is taken
FEWEST_BEFORE = 10  # fewer tell no level
BINS = 48  # of a day
DAY = 86_400.0
KNOTS = 25
LONG_MEMORY = 0.999  # the largest phi: a sensor without any return to its level would have no innovations at rest
_GROWTH = 3.0  # of a score for a deviation e times as large as the largest knot
_LEAST = 1e-3  # of a sensor's spread in the history: deviations below it are no deviations


@dataclass(frozen=True, eq=False)
class Normal:
    """What normal windows of K sensors do.

    level: "fixed", "daily" (a profile by the time of day) or "local" (the median of the `width` windows before).
    profile: (1, K), or (BINS, K) for "daily"; for "local" what stands in where too few windows come before.
    memory, spread: phi, and the standard deviation of the innovations, (K,).
    knots: deviations whose scores are known, (KNOTS, K), increasing; knot_scores: those scores, (KNOTS,).
    scatter: R, (K, K). tails: nu, infinite for a Gaussian.
    """

    level: Level
    profile: Array
    width: int
    memory: Array
    spread: Array
    knots: Array
    knot_scores: Array
    scatter: Array
    tails: float

    def __post_init__(self) -> None:
        size = len(self.memory)
        shapes = {
            "profile": (BINS if self.level == "daily" else 1, size),
            "memory": (size,),
            "spread": (size,),
            "knots": (len(self.knot_scores), size),
            "scatter": (size, size),
        }
        if self.level not in LEVELS:
            raise ValueError(f"unknown level {self.level!r}: use {', '.join(LEVELS)}")
        for name, shape in shapes.items():
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"{name} must hold finite values of shape {shape}")
            object.__setattr__(self, name, frozen(array))
        scores = np.array(self.knot_scores, dtype=np.float64)
        if scores.ndim != 1 or len(scores) < 2 or not (np.diff(scores) > 0).all() or not np.isfinite(scores).all():
            raise ValueError("the scores of the knots must increase")
        object.__setattr__(self, "knot_scores", frozen(scores))
        if (self.spread <= 0).any() or (self.knots[0] <= 0).any() or (np.diff(self.knots, axis=0) <= 0).any():
            raise ValueError("spreads must be positive and knots increase")
        if (np.abs(self.memory) > LONG_MEMORY).any():
            raise ValueError(f"memory must be at most {LONG_MEMORY}")
        if not self.tails > 0 or self.width < 1:
            raise ValueError("tails and width must be positive")
        np.linalg.cholesky(self.scatter)  # refuses what is no covariance

    @property
    def size(self) -> int:
        """The number of sensors."""
        return len(self.memory)

    @cached_property
    def precision(self) -> Array:
        """R^-1, symmetric to the last bit."""
        inverse = np.linalg.inv(self.scatter)
        return frozen(0.5 * (inverse + inverse.T))

    @cached_property
    def usual_deviation(self) -> Array:
        """The deviation of score 1, in robust units, (K,); not below the spread for sensors that mostly stand still."""
        one = [np.interp(1.0, self.knot_scores, knots) for knots in self.knots.T]
        return frozen(np.maximum(one, self.spread))

    def of(self, chosen: NDArray[np.intp]) -> Normal:
        """Normal operation of some of the sensors."""
        return Normal(
            self.level,
            self.profile[:, chosen],
            self.width,
            self.memory[chosen],
            self.spread[chosen],
            self.knots[:, chosen],
            self.knot_scores,
            self.scatter[np.ix_(chosen, chosen)],
            self.tails,
        )

    def level_at(self, before: Array, moments: Array) -> Array:
        """The level of windows at `moments` (seconds of the day, (T,)), frozen as it is after the windows `before`."""
        if self.level == "daily":
            return self.profile[day_bins(moments)]
        if self.level == "fixed":
            return np.broadcast_to(self.profile[0], (len(moments), self.size))
        return np.broadcast_to(local_level(before[-self.width :], self.profile[0]), (len(moments), self.size))

    def innovations(self, previous: Array, deviations: Array) -> Array:
        """Innovations in units of their spread, given the deviation `previous`, (K,), just before the first."""
        lagged = np.vstack([previous[None, :], deviations[:-1]])
        known = np.where(np.isnan(lagged), 0.0, lagged)  # after a gap only the level is known
        return np.asarray((deviations - self.memory * known) / self.spread)

    @cached_property
    def _lines(self) -> tuple[Array, list[Array]]:
        """The scores of the knots, with 0 before them, and the knots of each sensor likewise."""
        return np.concatenate([[0.0], self.knot_scores]), [np.concatenate([[0.0], knots]) for knots in self.knots.T]

    def scores(self, deviations: Array) -> Array:
        """Normal scores of deviations, (T, K), with their sign; NaN stays."""
        sizes, scores = np.abs(deviations), np.empty_like(deviations)
        heights, lines = self._lines
        for k, knots in enumerate(lines):
            scores[:, k] = np.interp(sizes[:, k], knots, heights)
        beyond = sizes > self.knots[-1]
        if beyond.any():
            ratio = np.where(beyond, sizes / self.knots[-1], 1.0)
            scores += _GROWTH * np.log(ratio)
        return np.asarray(np.copysign(scores, deviations))

    def deviations_of(self, scores: Array) -> Array:
        """The deviations that have these scores, (T, K): the inverse of `scores`."""
        return np.column_stack([self.deviation_of(k, scores[:, k]) for k in range(self.size)])

    def deviation_of(self, sensor: int, scores: Array) -> Array:
        """The same for one sensor, (T,)."""
        sizes = np.abs(scores)
        heights, lines = self._lines
        deviations = np.interp(sizes, heights, lines[sensor])
        deviations *= np.exp(np.maximum(sizes - self.knot_scores[-1], 0.0) / _GROWTH)
        return np.asarray(np.copysign(deviations, scores))


def day_bins(moments: Array) -> NDArray[np.intp]:
    """The bin of a daily profile for seconds since some midnight."""
    return np.floor((np.asarray(moments) % DAY) * (BINS / DAY)).astype(np.intp) % BINS


def local_level(before: Array, otherwise: Array) -> Array:
    """The median of the windows before, sensor by sensor; `otherwise` where there are too few of them."""
    missing = np.isnan(before)
    if len(before) >= FEWEST_BEFORE and not missing.any():
        return np.asarray(np.median(before, axis=0))
    present = (~missing).sum(axis=0)
    enough = present >= FEWEST_BEFORE
    level = np.array(otherwise, dtype=np.float64)
    if enough.any():
        level[enough] = np.nanmedian(before[:, enough], axis=0)
    return level


def rolling_level(values: Array, width: int) -> Array:
    """The median of the `width` windows before each window from number `width` on, (T - width, K)."""
    T, K = values.shape
    levels = np.empty((max(T - width, 0), K))
    middle = slice(width // 2, width // 2 + len(levels))  # a filter puts the median of `width` values there
    ranks = sorted({(width - 1) // 2, width // 2})
    for k in range(K if len(levels) else 0):
        column = np.ascontiguousarray(values[:, k])
        levels[:, k] = sum(rank_filter(column, rank, size=width)[middle] for rank in ranks) / len(ranks)
    return levels


# -- fitting one candidate -----------------------------------------------------------------------------


def profile_of(values: Array, moments: Array, level: Level) -> Array:
    """The fixed level, (1, K), or the daily profile, (BINS, K), as medians."""
    middle = np.median(values, axis=0)
    if level != "daily":
        return np.asarray(middle[None, :])
    bins = day_bins(moments)
    return np.stack([np.median(values[bins == b], axis=0) if (bins == b).any() else middle for b in range(BINS)])


def history_deviations(values: Array, moments: Array, level: Level, profile: Array, width: int = WIDTH) -> Array:
    """Deviations of the windows of a history from their level; the first `width` windows of a local level have none."""
    if level == "local":
        return np.asarray(values[width:] - rolling_level(values, width))
    if level == "daily":
        return np.asarray(values - profile[day_bins(moments)])
    return np.asarray(values - profile[0])


def memory_of(deviations: Array, follows: NDArray[np.bool_] | None = None) -> Array:
    """The lag-one regression of each sensor's deviations, between 0 and LONG_MEMORY.

    follows: (T - 1,), whether each window directly follows the one before it; all do if not given.
    """
    past, present = deviations[:-1], deviations[1:]
    if follows is not None and not follows.all():
        past, present = past[follows], present[follows]
    power = np.einsum("tk,tk->k", past, past)
    return np.clip(np.einsum("tk,tk->k", past, present) / np.where(power > 0, power, 1.0), 0.0, LONG_MEMORY)


def knots_of(deviations: Array, spread: Array) -> tuple[Array, Array]:
    """Quantiles of |deviation| that lie denser in the tail, and their normal scores.

    spread: of each sensor's readings in the history, which says what is too little to count.
    """
    T = len(deviations)
    probabilities = 1.0 - 10.0 ** -np.linspace(0.3, max(np.log10(T / 3.0), 0.6), KNOTS)
    knots = np.column_stack([np.quantile(np.abs(column), probabilities) for column in deviations.T])
    top = np.maximum(knots[-1], _LEAST * spread)
    knots[-1] = top
    steps = np.arange(1, KNOTS + 1)[:, None] * 1e-9 * top  # ties of a sensor that mostly stands still
    return np.maximum.accumulate(knots, axis=0) + steps, ndtri(0.5 + 0.5 * probabilities)


def spread_of(innovations: Array, spread: Array) -> Array:
    """The standard deviation of innovations, not below what counts as a deviation at all."""
    return np.maximum(innovations.std(axis=0), least_spread(spread))


def least_spread(spread: Array) -> Array:
    """The least spread of deviations and innovations for sensors whose readings have this one."""
    return np.asarray(0.1 * _LEAST * spread)
