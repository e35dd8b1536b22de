"""Simulated watching: thresholds for the same mean time to a false alarm, which is counted, and mean delays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from benchmarks.watch_rules import Rule, beyond
from eccaht import families
from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for

ESTIMATED_FROM = 500  # windows
WORLDS = ("independent", "toeplitz 0.8", "factor", "estimated")


@dataclass(frozen=True)
class World:
    """Gaussian noise of unit variances, and the covariance that a rule is given; (K, K) both."""

    covariance: Array
    given: Array

    @cached_property
    def _root(self) -> Array:
        return np.linalg.cholesky(self.covariance).T.astype(np.float32)

    def draw(self, replicas: int, rng: np.random.Generator) -> Array:
        """One window of each replica, (R, K), in single precision."""
        return rng.standard_normal((replicas, len(self._root)), dtype=np.float32) @ self._root


def make_world(name: str, K: int = 100) -> World:
    """One of WORLDS; in `estimated` rules are given the sample covariance of 500 windows of `factor`."""
    match name:
        case "independent":
            return _known(np.eye(K))
        case "toeplitz 0.8":
            return _known(families.toeplitz(K, 0.8).dense())
        case "factor":  # four common causes
            loads = rng_for(0, name).standard_normal((K, 4))
            S = loads @ loads.T + 0.5 * np.eye(K)
            scale = np.sqrt(np.diag(S))
            return _known(S / np.outer(scale, scale))
        case "estimated":
            S = make_world("factor", K).covariance
            windows = rng_for(0, name).multivariate_normal(np.zeros(K), S, size=ESTIMATED_FROM)
            return World(S, windows.T @ windows / ESTIMATED_FROM)
        case _:
            raise ValueError(f"no world is called {name!r}: choose one of {', '.join(WORLDS)}")


def _known(S: Array) -> World:
    return World(S, S)


# -- false alarms ----------------------------------------------------------------------------------------


class Counted(NamedTuple):
    """False alarms among windows watched."""

    alarms: int
    windows: int

    @property
    def mean_time(self) -> float:
        """Windows to a false alarm, as if the time were exponential; infinite without any."""
        return self.windows / self.alarms if self.alarms else float("inf")

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean time (Garwood 1936)."""
        least = 2.0 * self.windows / chi2.ppf(0.975, 2 * self.alarms + 2)
        most = 2.0 * self.windows / chi2.ppf(0.025, 2 * self.alarms) if self.alarms else np.inf
        return float(least), float(most)


def paths(rule: Rule, world: World, replicas: int, windows: int, rng: np.random.Generator) -> Array:
    """All statistics of quiet streams, (R, windows, m)."""
    rule.start(replicas)
    return np.stack([rule.update(world.draw(replicas, rng)) for _ in range(windows)], axis=1)


def count(statistics: Array, thresholds: Array) -> Counted:
    """First alarms of recorded statistics, and the windows until then."""
    flagged = beyond(statistics, thresholds)
    alarmed = flagged.any(axis=1)
    watched = np.where(alarmed, flagged.argmax(axis=1) + 1, flagged.shape[1])
    return Counted(int(alarmed.sum()), int(watched.sum()))


def calibrate(statistics: Array, every: float) -> Array:
    """Thresholds, (m,), with one false alarm every so many windows, to which all statistics contribute alike."""
    m = statistics.shape[2]

    def apart(time: float) -> Array:
        return np.array([_threshold(statistics[:, :, i : i + 1], time) for i in range(m)])

    if m == 1:
        return apart(every)
    low, high = every, 2.0 * m * every  # the mean time of each alone
    for _ in range(20):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if count(statistics, apart(middle)).mean_time < every else (low, middle)
    return apart(high)


def _threshold(statistic: Array, every: float) -> float:
    """By bisection among the largest values of all windows."""
    top = np.maximum.accumulate(statistic[:, :, 0], axis=1)
    values = np.unique(top)
    low, high = 0, values.size - 1
    while low < high:
        middle = (low + high) // 2
        alarmed = top[:, -1] >= values[middle]
        watched = (top < values[middle]).sum() + alarmed.sum()
        low, high = (middle + 1, high) if watched < every * alarmed.sum() else (low, middle)
    return float(values[low])


# -- first alarms ----------------------------------------------------------------------------------------


def first_alarms(
    rule: Rule, world: World, shifts: Array, thresholds: Array, most: int, rng: np.random.Generator
) -> Array:
    """The window of the first alarm of each replica, `most` + 1 where none came; shifts: (R, K), from window 1 on."""
    times = np.full(len(shifts), most + 1)
    running = np.arange(len(shifts))
    shifts = shifts.astype(world.draw(1, rng).dtype)
    rule.start(len(shifts))
    for time in range(1, most + 1):
        flagged = beyond(rule.update(world.draw(running.size, rng) + shifts[running]), thresholds)
        times[running[flagged]] = np.minimum(times[running[flagged]], time)
        left = times[running] > most
        if not left.any():
            break
        if left.mean() < 0.8:  # dropping replicas copies what the rule remembers
            rule.keep(left)
            running = running[left]
    return times


def draw_shifts(replicas: int, K: int, streams: int, shift: float, rng: np.random.Generator) -> Array:
    """The same shift in random streams of each replica, (R, K)."""
    chosen = rng.permuted(np.tile(np.arange(K), (replicas, 1)), axis=1)[:, :streams]
    shifts = np.zeros((replicas, K))
    np.put_along_axis(shifts, chosen, shift, axis=1)
    return shifts
