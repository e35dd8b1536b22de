"""All limits of one problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eccaht.base.arrays import Index, as_count, check_alpha
from eccaht.base.randomness import Seed, rng_for
from eccaht.streams.limits.checks import check_anomalies, check_limits
from eccaht.streams.limits.entropy import EntropyBound, entropy_bound
from eccaht.streams.limits.rates import Rate, diagonal_rate, gamma_stars, least_measurements
from eccaht.streams.problem import Problem
from eccaht.streams.sets import SetPrior


@dataclass(frozen=True)
class Limits:
    """The limits for some true sets, one entry each, and the entropy bound for all.

    every_set: whether `sets` are all possible sets rather than a draw of them.
    least_measurements: lower bounds on the expected number of measurements, from the upper bounds of the mix.
    """

    alpha: float
    sets: tuple[tuple[int, ...], ...]
    every_set: bool
    single: tuple[Rate, ...]
    mix: tuple[Rate, ...]
    diagonal: tuple[float, ...]
    least_measurements: tuple[float, ...]
    entropy: EntropyBound

    @property
    def proven(self) -> bool:
        """Was every rival of every set enumerated or ruled out?"""
        return all(rate.proven for rate in self.mix)

    @property
    def value_of_correlation(self) -> tuple[float, ...]:
        """How many times faster than with independent streams, for each set (a lower bound)."""
        return tuple(rate.lower / diagonal for rate, diagonal in zip(self.mix, self.diagonal, strict=True))


def limits(
    problem: Problem,
    *,
    alpha: float = 0.05,
    anomalies: Sequence[Sequence[int]] | None = None,
    n_sets: int = 3,
    seed: Seed = 0,
    progress: Callable[[int], object] = lambda _: None,
) -> Limits:
    """Compute the limits for the given true sets, or for `n_sets` random ones (all of them if there are no more).

    progress: called with 1 after each set.

    >>> found = limits(Problem(np.eye(6), shift=3.0, n_anomalies=1, budget=5.0), n_sets=6)
    >>> found.every_set, found.proven, round(found.mix[0].lower, 2), round(found.least_measurements[0], 2)
    (True, True, 5.4, 0.49)
    """
    check_alpha(alpha)
    check_limits(problem)
    sets, every = _chosen(problem, anomalies, as_count(n_sets, "n_sets", least=1), seed)
    rates: list[tuple[Rate, Rate]] = []
    for truth in sets:
        rates.append(gamma_stars(problem, truth))
        progress(1)
    return Limits(
        alpha=alpha,
        sets=tuple(tuple(truth.tolist()) for truth in sets),
        every_set=every,
        single=tuple(single for single, _ in rates),
        mix=tuple(mix for _, mix in rates),
        diagonal=tuple(diagonal_rate(problem, truth) for truth in sets),
        least_measurements=tuple(least_measurements(mix.upper, alpha) for _, mix in rates),
        entropy=entropy_bound(problem, alpha=alpha),
    )


def _chosen(
    problem: Problem, anomalies: Sequence[Sequence[int]] | None, n_sets: int, seed: Seed
) -> tuple[list[Index], bool]:
    sizes = SetPrior(problem.size, problem.known_number, problem.known_number)
    if anomalies is not None:
        given = [check_anomalies(problem, streams) for streams in anomalies]
        return given, len(np.unique(given, axis=0)) == sizes.count
    if sizes.count <= n_sets:
        return list(sizes.all_sets()), True
    return list(np.sort(sizes.random_sets(rng_for(seed, "limits"), n_sets), axis=1)), False
