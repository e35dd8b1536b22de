"""Measurements that separate two streams: the best one (paper, eq. 2 and Algorithm 1, line 12) and restricted ones.

The paper compares the best with one stream, a plain difference, and a node of a tree.

Where only some streams can be measured now, `among` narrows the problem, for all designs. Under an L1 budget the design
is that of the smaller problem in which the other streams do not exist: weights of 0 are what it means not to measure a
stream, so this is exact. Other constraints may speak of streams by their numbers; there `Available` is one more.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index, Mask, as_count, frozen, scattered
from eccaht.streams.covariance import Covariance, Dense, Diagonal
from eccaht.streams.covariance.base import LARGEST
from eccaht.streams.measurements import Available, Budget, Design, Unlimited
from eccaht.streams.problem import Problem
from eccaht.streams.sets import Hypotheses
from eccaht.streams.shifts import ShiftPrior

PairToWeights = Callable[[int, int], Array]

_OPPOSITE = np.array([1.0, -1.0])


def pair_design(problem: Problem, i: int, j: int) -> Design:
    """Return the measurement that separates "i is anomalous" from "j is anomalous" best.

    >>> problem = Problem([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]], shift=1.0, n_anomalies=1, budget=4.0)
    >>> design = pair_design(problem, 0, 1)
    >>> design.weights, round(design.information, 6)
    (array([ 2., -2.,  0.]), 2.0)
    """
    i, j = (as_count(k, "stream", least=0) for k in (i, j))
    if max(i, j) >= problem.size or i == j:
        raise ValueError(f"a pair needs two different streams below {problem.size}, not {i} and {j}")
    _check_separable(problem, i, j)
    pair = np.array([i, j], dtype=np.intp)
    design = problem.designing.contrast(problem.covariance, pair, problem.shift[pair] * _OPPOSITE)  # eq. 2
    frozen(design.weights)
    return design._replace(noise=problem.readout_noise)


class PairDesign:
    """The pair design as a part of a policy: (i, j) -> weights.

    check: refuse a problem in which some pair cannot be separated, before the search.
    """

    def __init__(self, problem: Problem, *, check: bool = True) -> None:
        if check:
            check_weakest_pair(problem)
        self._problem = problem
        self._lasting = problem.measurements.lasting

    def within(self, available: Mask) -> PairToWeights:
        """The same with no weight on streams that cannot be measured now."""
        narrowed = among(self._problem, available)
        design = PairDesign(narrowed.problem, check=False)
        return lambda i, j: narrowed.spread(design(narrowed.place(i), narrowed.place(j)))

    def __call__(self, i: int, j: int) -> Array:
        if self._lasting:
            return self._problem.recalled((i, j), lambda: self._solved(i, j))
        return self._solved(i, j)

    def _solved(self, i: int, j: int) -> Array:
        problem, pair = self._problem, np.array([i, j], dtype=np.intp)
        return problem.designing.contrast(problem.covariance, pair, problem.shift[pair] * _OPPOSITE).weights  # eq. 2


def check_weakest_pair(problem: Problem) -> None:
    """Refuse a problem whose constraint cannot separate the two streams of smallest shift."""
    weakest = np.argpartition(np.abs(problem.shift), 1)[:2]
    _check_separable(problem, *sorted(weakest.tolist()))
    problem.designing.check_pairs(np.asarray(problem.shift), problem.label)


def _check_separable(problem: Problem, i: int, j: int) -> None:
    if not problem.shift[[i, j]].any():  # the mean of a shift of unknown sign
        both = f"streams {problem.label(i)} and {problem.label(j)}"
        raise ValueError(f"{both} have no known shifts by which a measurement could separate them: use joint")
    problem.measurements.check_pair(problem.shift[[i, j]], (problem.label(i), problem.label(j)))


class Coordinates:
    """The best of +-e_k for a pair: whichever of the two has the larger shift per standard deviation.

    Any other stream says nothing about the pair (paper, Algorithm ECC-AHT-Restricted). The champion wins a tie.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._strength = problem.shift**2 / problem.covariance.diagonal()

    def __call__(self, i: int, j: int) -> Array:
        return single_stream(self._problem, i if self._strength[i] >= self._strength[j] else j)


def single_stream(problem: Problem, k: int) -> Array:
    """All weight on stream k, read-only.

    >>> single_stream(Problem(np.eye(3), shift=1.0, n_anomalies=1, budget=2.0), 1)
    array([0., 2., 0.])
    """
    return problem.recalled(k, lambda: scattered(problem.size, k, problem.budget))


class Difference:
    """c proportional to D = shift_i e_i - shift_j e_j: the No-QP ablation of the paper (section 5.2).

    >>> Difference(Problem(np.eye(3), shift=[1.0, 3.0, 1.0], n_anomalies=1, budget=2.0))(0, 1)
    array([ 0.5, -1.5,  0. ])
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def __call__(self, i: int, j: int) -> Array:
        problem = self._problem
        c = np.zeros(problem.size)
        c[i], c[j] = problem.shift[i], -problem.shift[j]
        return problem.measurements.scaled(c)


class Tree:
    """The node sum that separates a pair best, max (c'D)^2 / c'S c over all nodes of the complete binary tree.

    Only nodes above i or above j have any contrast, so 2 log2 K of them are looked at; the noise variance of a node is
    computed once. Among equals the smaller node wins, then the one above the champion.
    """

    def __init__(self, problem: Problem) -> None:
        K = problem.size
        if K & (K - 1):
            raise ValueError(
                f"a binary tree needs a power of two of streams, not {K}: "
                f"drop streams to {1 << (K.bit_length() - 1)} or pad to {1 << K.bit_length()}"
            )
        self._problem = problem
        self._levels = K.bit_length()
        self._variances: dict[tuple[int, int], float] = {}

    def within(self, available: Mask) -> PairToWeights:
        """The same among the nodes of which all leaves can be measured now."""
        return lambda i, j: self._best(i, j, available)

    def __call__(self, i: int, j: int) -> Array:
        return self._best(i, j, None)

    def _best(self, i: int, j: int, available: Mask | None) -> Array:
        shift, best, chosen = self._problem.shift, -1.0, (0, 0)
        for level in range(self._levels):
            for stream in (i, j):
                node = (level, stream >> level)
                if available is not None and not available[self._leaves(node)].all():
                    continue
                contrast = shift[i] * (i >> level == node[1]) - shift[j] * (j >> level == node[1])
                information = float(contrast) ** 2 / self._variance(node)  # eq. 1, twice
                if information > best * (1.0 + 1e-12):
                    best, chosen = information, node
        return self._problem.measurements.scaled(self._weights(chosen))

    def _weights(self, node: tuple[int, int]) -> Array:
        """One on every leaf below the node: `place` of `level`, leaves at level 0."""
        return scattered(self._problem.size, self._leaves(node), 1.0)

    def _leaves(self, node: tuple[int, int]) -> slice:
        level, place = node
        return slice(place << level, (place + 1) << level)

    def _variance(self, node: tuple[int, int]) -> float:
        if node not in self._variances:
            self._variances[node] = self._problem.covariance.quad(self._weights(node))
        return self._variances[node]


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
        return scattered(self.size, self.streams, weights)

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
    return problem.measurements.scaled(scattered(problem.size, k, 1.0))


def _picked(covariance: Covariance, streams: Index) -> Covariance:
    if isinstance(covariance, Diagonal):
        return Diagonal(covariance.diagonal()[streams])
    if covariance.size > LARGEST:
        raise ValueError(
            f"available= forms the full matrix of correlated streams, for up to {LARGEST} of them, "
            f"not {covariance.size}: leave unavailable streams out of the problem"
        )
    return Dense(covariance.dense()[np.ix_(streams, streams)])
