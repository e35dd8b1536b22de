"""What sensors read in the windows of a search, in standard deviations of normal operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from eccaht.arrays import Array, Index
from eccaht.covariance.ridge import with_ridge
from eccaht.problem import Problem
from eccaht.run.recorders import LedgerEntry

_LEAST = 1e-12  # share of a sensor's variance that is left of it where the others explain all: below, it is rounding


class Readings(NamedTuple):
    """By window and sensor: the deviation from normal, and what is left of it that other sensors do not explain.

    Both have standard deviation 1 in normal operation; NaN where a sensor delivered nothing.
    """

    last: Index  # for each window the last entry that read it
    plain: Array
    alone: Array


def read(problem: Problem, entries: Sequence[LedgerEntry], sensors: Index) -> Readings:
    """Return the readings of some sensors; they do not explain each other, all others do."""
    last = np.array(list({entry.window: place for place, entry in enumerate(entries)}.values()))
    noise = with_ridge(problem.covariance, problem.readout_noise**2)
    deviations = np.array([entries[place].values - problem.mean for place in last])
    others = np.setdiff1d(np.arange(problem.size), sensors)
    columns = np.stack([noise.column(int(k)) for k in sensors], axis=1)
    variance = columns[sensors, np.arange(sensors.size)]
    plain = deviations[:, sensors] / np.sqrt(variance)
    alone = np.empty_like(plain)
    present = ~np.isnan(deviations[:, others])
    dense = noise.dense()
    for pattern in np.unique(present, axis=0):
        rows, there = (present == pattern).all(axis=1), others[pattern]
        weights = cho_solve(cho_factor(dense[np.ix_(there, there)]), columns[there]) if there.size else columns[there]
        left = np.maximum(variance - (columns[there] * weights).sum(axis=0), _LEAST * variance)
        explained = deviations[np.ix_(rows, there)] @ weights
        alone[rows] = (deviations[np.ix_(rows, sensors)] - explained) / np.sqrt(left)
    return Readings(last, plain, alone)
