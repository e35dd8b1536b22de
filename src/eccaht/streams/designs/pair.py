"""Measurements that separate two streams: the best one (paper, eq. 2 and Algorithm 1, line 12) and restricted ones.

The paper compares the best with one stream, a plain difference, and a node of a tree.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eccaht.base.arrays import Array, as_count, frozen
from eccaht.streams.designs.available import Mask, among
from eccaht.streams.measurements import Design
from eccaht.streams.problem import Problem

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
    design = problem.designing.contrast(problem.covariance, pair, problem.shift[pair] * _OPPOSITE)
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
        """Return the optimal weights."""
        if self._lasting:
            return self._problem.recalled((i, j), lambda: self._solved(i, j))
        return self._solved(i, j)

    def _solved(self, i: int, j: int) -> Array:
        problem, pair = self._problem, np.array([i, j], dtype=np.intp)
        return problem.designing.recalled(problem.covariance, pair, problem.shift[pair] * _OPPOSITE).weights


def check_weakest_pair(problem: Problem) -> None:
    """Refuse a problem whose constraint cannot separate the two streams of smallest shift."""
    weakest = np.argpartition(np.abs(problem.shift), 1)[:2]
    _check_separable(problem, *sorted(weakest.tolist()))
    problem.designing.check_pairs(np.asarray(problem.shift), problem.label)


def _check_separable(problem: Problem, i: int, j: int) -> None:
    problem.measurements.check_pair(problem.shift[[i, j]], (problem.label(i), problem.label(j)))


class Coordinates:
    """The best of +-e_k for a pair: whichever of the two has the larger shift per standard deviation.

    Any other stream says nothing about the pair (paper, Algorithm ECC-AHT-Restricted). The champion wins a tie.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._strength = problem.shift**2 / problem.covariance.diagonal()

    def __call__(self, i: int, j: int) -> Array:
        """Return the budget on one stream."""
        return single_stream(self._problem, i if self._strength[i] >= self._strength[j] else j)


def single_stream(problem: Problem, k: int) -> Array:
    """All weight on stream k, read-only.

    >>> single_stream(Problem(np.eye(3), shift=1.0, n_anomalies=1, budget=2.0), 1)
    array([0., 2., 0.])
    """
    return problem.recalled(k, lambda: _unit(problem.size, k, problem.budget))


def _unit(size: int, k: int, weight: float) -> Array:
    c = np.zeros(size)
    c[k] = weight
    return c


class Difference:
    """c proportional to D = shift_i e_i - shift_j e_j: the No-QP ablation of the paper (section 5.2).

    >>> Difference(Problem(np.eye(3), shift=[1.0, 3.0, 1.0], n_anomalies=1, budget=2.0))(0, 1)
    array([ 0.5, -1.5,  0. ])
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def __call__(self, i: int, j: int) -> Array:
        """Return the difference, scaled to the budget."""
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
        """Return the best node sum, scaled to the budget."""
        return self._best(i, j, None)

    def _best(self, i: int, j: int, available: Mask | None) -> Array:
        shift, best, chosen = self._problem.shift, -1.0, (0, 0)
        for level in range(self._levels):
            for stream in (i, j):
                node = (level, stream >> level)
                if available is not None and not available[self._leaves(node)].all():
                    continue
                contrast = shift[i] * (i >> level == node[1]) - shift[j] * (j >> level == node[1])
                information = float(contrast) ** 2 / self._variance(node)
                if information > best * (1.0 + 1e-12):
                    best, chosen = information, node
        return self._problem.measurements.scaled(self._weights(chosen))

    def _weights(self, node: tuple[int, int]) -> Array:
        """One on every leaf below the node: `place` of `level`, leaves at level 0."""
        c = np.zeros(self._problem.size)
        c[self._leaves(node)] = 1.0
        return c

    def _leaves(self, node: tuple[int, int]) -> slice:
        level, place = node
        return slice(place << level, (place + 1) << level)

    def _variance(self, node: tuple[int, int]) -> float:
        if node not in self._variances:
            self._variances[node] = self._problem.covariance.quad(self._weights(node))
        return self._variances[node]
