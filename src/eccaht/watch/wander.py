"""The slow course of normal operation: how far it leads, and the same windows with that of another time."""

from __future__ import annotations

import numpy as np

from eccaht.arrays import Array
from eccaht.model.normal import rolling_level

AGES = (1, 2, 5, 10, 20, 40, 80, 130, 200)  # windows after which it is counted how far sensors are from their level
SEEN = 10  # windows, the last ones, whose mean says where a sensor is
_USUAL = 0.9  # of all stretches are no farther away
_PLACES = 10  # of a stretch at which its median is taken


def usual_moves(values: Array, width: int) -> Array:
    """How far sensors usually are from the local level of some windows ago, (len(AGES), K).

    values: of a history, (T, K), without gaps. A level is the median of the `width` windows before an age begins;
    where a sensor is after it, the mean of its last SEEN windows. Ages that the history is too short for move as far
    as the last one that it is not.
    """
    levels = rolling_level(values, width)
    sums = np.cumsum(np.vstack([np.zeros((1, values.shape[1])), values]), axis=0)
    found = np.zeros((len(AGES), values.shape[1]))
    for place, age in enumerate(AGES):
        ends = np.arange(width + age, len(values) + 1)
        if not ends.size:
            found[place:] = found[place - 1]
            break
        seen = min(age, SEEN)
        means = (sums[ends] - sums[ends - seen]) / seen
        found[place] = np.quantile(np.abs(means - levels[: ends.size]), _USUAL, axis=0)
    return found


def moves_at(moves: Array, age: int) -> Array:
    """The usual move of each sensor after so many windows, (K,), linear between the counted ages."""
    place = int(np.searchsorted(AGES, age, side="right")) - 1
    if place >= len(AGES) - 1:
        return np.asarray(moves[-1])
    share = (age - AGES[place]) / (AGES[place + 1] - AGES[place])
    return np.asarray((1.0 - share) * moves[place] + share * moves[place + 1])


def slow_course(values: Array, length: int) -> Array:
    """Where each sensor stands, slowly, (T, K): the mean over `length` windows of the median over as many around each.

    The median leaves out bursts, which are no slow course, and the mean makes regimes pass into each other. A sensor
    without any reading stands at 0.
    """
    T = len(values)
    places = np.unique(np.r_[0 : T : max(length // _PLACES, 1), T - 1])
    course = np.empty(values.shape)
    for k, column in enumerate(values.T):
        around = [column[max(place - length // 2, 0) : place + length // 2 + 1] for place in places.tolist()]
        medians = np.array([np.median(part[~np.isnan(part)]) if (part == part).any() else np.nan for part in around])
        known = ~np.isnan(medians)
        course[:, k] = np.interp(np.arange(T), places[known], medians[known]) if known.any() else 0.0
    return _running_mean(course, length)


def elsewhere(course: Array, rng: np.random.Generator) -> Array:
    """A course, (T, K), from a random window on, forward to the end and then backward, so that it never jumps."""
    T = len(course)
    place = (np.arange(T) + int(rng.integers(2 * T))) % (2 * T)
    return np.asarray(course[np.minimum(place, 2 * T - 1 - place)])


def _running_mean(course: Array, length: int) -> Array:
    """The mean of the `length` windows around each, fewer at the ends."""
    T = len(course)
    sums = np.cumsum(np.vstack([np.zeros((1, course.shape[1])), course]), axis=0)
    first = np.maximum(np.arange(T) - length // 2, 0)
    last = np.minimum(np.arange(T) + length // 2 + 1, T)
    return np.asarray((sums[last] - sums[first]) / (last - first)[:, None])
