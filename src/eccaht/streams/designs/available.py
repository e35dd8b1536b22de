"""Measurements of some of the streams only: those that can be measured now.

Under an L1 budget the design is that of the smaller problem in which the other streams do not exist: weights of 0 are
what it means not to measure a stream, so this is exact. Other constraints may speak of streams by their numbers; there
`Available` is one more of them. `among` is the one place that knows how a problem is narrowed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.streams.covariance import Covariance, Dense, Diagonal
from eccaht.streams.measurements import Available, Budget, Unlimited
from eccaht.streams.problem import Problem
from eccaht.streams.sets import Hypotheses
from eccaht.streams.shifts import ShiftPrior

Mask = NDArray[np.bool_]

_LARGEST = 8192  # streams up to which rows and columns of a full matrix are picked


class Among(NamedTuple):
    """A problem that allows for the streams that can be measured, which are all it has, or some of the same size.

    streams: those, by their numbers in the whole problem.
    """

    problem: Problem
    streams: Index
    size: int  # of the whole problem

    def place(self, k: int) -> int:
        """The number in the smaller problem of a stream that can be measured."""
        return k if self.problem.size == self.size else int(np.searchsorted(self.streams, k))

    def spread(self, weights: Array) -> Array:
        """Weights of the smaller problem for all streams."""
        if self.problem.size == self.size:
            return weights
        c = np.zeros(self.size)
        c[self.streams] = weights
        return c

    def seen(self, hypotheses: Hypotheses) -> Hypotheses:
        """The same sets, of which only the streams that can be measured show."""
        none = self.problem.size
        numbers = np.full(self.size + 1, none)
        numbers[self.streams] = self.streams if none == self.size else np.arange(none)
        rest, stream = numbers[hypotheses.rest], numbers[hypotheses.stream]
        return hypotheses._replace(
            rest=rest,
            rest_shifts=np.where(rest < none, hypotheses.rest_shifts, 0.0),
            stream=stream,
            shift=np.where(stream < none, hypotheses.shift, 0.0),
        )


def among(problem: Problem, available: Mask) -> Among:
    """Narrow a problem to at least two streams that can be measured.

    >>> problem = Problem(np.diag([1.0, 4.0, 9.0]), shift=1.0, n_anomalies=1, budget=2.0)
    >>> among(problem, np.array([True, False, True])).problem.covariance.diagonal()
    array([1., 9.])
    """
    streams = available.nonzero()[0]
    if type(problem.measurements) not in (Budget, Unlimited):
        return Among(problem.replace(measurements=problem.measurements & Available(available)), streams, problem.size)
    narrowed = problem.replace(
        covariance=_picked(problem.covariance, streams),
        shift=ShiftPrior(problem.shift[streams], problem.shift_spread[streams]),
        mean=problem.mean[streams],
        n_anomalies=1,
        names=None,
    )
    return Among(narrowed, streams, problem.size)


def alone(problem: Problem, k: int) -> Array:
    """As much weight as is allowed on stream k, none elsewhere."""
    c = np.zeros(problem.size)
    c[k] = 1.0
    return problem.measurements.scaled(c)


def _picked(covariance: Covariance, streams: Index) -> Covariance:
    if isinstance(covariance, Diagonal):
        return Diagonal(covariance.diagonal()[streams])
    if covariance.size > _LARGEST:
        raise ValueError(
            f"available= forms the full matrix of correlated streams, for up to {_LARGEST} of them, "
            f"not {covariance.size}: leave unavailable streams out of the problem"
        )
    return Dense(covariance.dense()[np.ix_(streams, streams)])
