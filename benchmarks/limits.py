"""What no search can beat on the paper's noise: rates of random true sets, and what has to be learnt (limits.md).

Before the first reading the set is uncertain by H nats; a search that errs with probability alpha must have learnt
H - h(alpha) - alpha log(N - 1) of them (Fano), N being the number of sets. A reading of c says at most
log(1 + var(c'x) / c'S c) / 2, x the shifted part of the mean: for a given variance the Gaussian has most entropy.
And if c'x lies within A noise deviations of some number, whatever the set, it says at most log(1 + 2 A / sqrt(2 pi e)).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import gammaln

from benchmarks.jobs import Job, Row
from benchmarks.tables import Column, Table
from eccaht.base.arrays import Array, Index, check_alpha
from eccaht.base.randomness import rng_for
from eccaht.research.paper.catalogue import EXPERIMENTS
from eccaht.streams import Problem
from eccaht.streams.limits import gamma_star, least_measurements
from eccaht.streams.limits.rates import check_anomalies, check_limits, white_shifts
from eccaht.streams.sets import SetPrior

ALPHA, SETS = 0.05, 8


def jobs(quick: bool) -> list[Job]:
    settings = {each.family: each.problem() for each in EXPERIMENTS["table1"].settings}
    identity = settings["toeplitz"].replace(covariance=np.eye(128))
    return [
        Job(name, partial(measure, name, problem, 2 if quick else SETS))
        for name, problem in {"identity": identity, **settings}.items()
    ]


def measure(name: str, problem: Problem, sets: int) -> list[Row]:
    """The limits of one kind of noise, over random true sets."""
    prior = SetPrior(problem.size, problem.known_number, problem.known_number)
    truths = np.sort(prior.random_sets(rng_for(0, "limits"), sets), axis=1)
    rates = [(gamma_star(problem, truth), gamma_star(problem, truth, mix=True)) for truth in truths]
    over = [mix.lower / diagonal_rate(problem, A) for (_, mix), A in zip(rates, truths, strict=True)]
    bound = entropy_bound(problem, alpha=ALPHA)
    return [
        {
            "noise": name,
            "single": _shown([single.lower for single, _ in rates]),
            "mix": _shown([mix.lower for _, mix in rates]),
            "over_diagonal": np.mean(over),
            "least": np.mean([least_measurements(mix.upper, ALPHA) for _, mix in rates]),
            "first_reading": bound.first_reading,
            "in_first_readings": bound.entropy / bound.first_reading,
            "fixed_plan": bound.fixed_plan,
            "any_reading": bound.any_reading,
            "any_search": bound.measurements,
        }
    ]


def _shown(rates: list[float]) -> str:
    low, mean, high = (f"{x:.3g}" for x in (min(rates), np.mean(rates), max(rates)))
    return mean if low == high else f"{mean} [{low}, {high}]"


def tables(rows: list[Row]) -> list[Table]:
    three = "{:.3g}".format
    columns = (
        Column("noise", "noise", right=False),
        Column("single", "Gamma* single"),
        Column("mix", "Gamma* mix"),
        Column("over_diagonal", "over diagonal", three),
        Column("least", "lower bound", three),
        Column("first_reading", "first reading", three),
        Column("in_first_readings", "H / first reading", "{:.1f}".format),
        Column("fixed_plan", "fixed plan"),
        Column("any_reading", "any reading", three),
        Column("any_search", "any search", "{:.1f}".format),
    )
    return [Table("limits", "What no search can beat", columns, rows)]


@dataclass(frozen=True)
class EntropyBound:
    """What has to be learnt and what readings can say, in nats, and the measurements that follow.

    entropy: of the set, before the first reading. needed: what is left of it at error level alpha.
    first_reading: log(1 + s)/2 with s the largest signal-to-noise ratio under the prior, the top generalized eigenvalue
    of (covariance of the shifted mean, S): the most that one reading can say at the start.
    any_reading: the most that one reading can say at any time of a search.
    fixed_plan: measurements that a plan made in advance needs at least. measurements: that any search needs on average.
    """

    entropy: float
    needed: float
    first_reading: float
    any_reading: float
    fixed_plan: int
    measurements: float


def entropy_bound(problem: Problem, *, alpha: float = 0.05) -> EntropyBound:
    """Return the bounds, for sets drawn from the prior of `eccaht.streams.sets.SetPrior` (n given: all sets alike).

    >>> bound = entropy_bound(Problem(np.eye(128), shift=3.0, n_anomalies=5, budget=5.0))
    >>> round(bound.entropy, 2), round(bound.first_reading, 3), bound.fixed_plan, round(bound.measurements, 1)
    (19.39, 0.147, 125, 15.3)
    """
    check_alpha(alpha)
    check_limits(problem)
    sizes = SetPrior(problem.size, *problem.sizes)
    entropy = float(-_chances(sizes)[1] @ sizes.log_prior[sizes.least :])
    needed = max(entropy - _missing(alpha, sizes.count), 0.0)
    columns = white_shifts(problem)
    ratios = np.maximum(np.linalg.eigvalsh(columns @ _prior_covariance(sizes) @ columns.T)[::-1], 0.0)
    widest = capacity_bound(math.sqrt(_largest_ratio(columns.T @ columns, sizes)))
    return EntropyBound(
        entropy=entropy,
        needed=needed,
        first_reading=0.5 * math.log1p(float(ratios[0])),
        any_reading=widest,
        fixed_plan=_planned(ratios, needed),
        measurements=needed / widest,
    )


def capacity_bound(amplitude: float) -> float:
    """Return the most nats in a reading N(m, 1) about m, |m - m0| <= amplitude for some m0: an upper bound.

    The smaller of log(1 + A^2) / 2 and log(1 + 2 A / sqrt(2 pi e)) (McKellips 2004; docs/explanation/limits.md).

    >>> round(capacity_bound(1.0), 3), round(capacity_bound(10.0), 3)
    (0.347, 1.765)
    """
    return min(0.5 * math.log1p(amplitude**2), math.log1p(2.0 * amplitude / math.sqrt(2.0 * math.pi * math.e)))


def _chances(sizes: SetPrior) -> tuple[Array, Array]:
    """The possible sizes and the prior probability of each."""
    m = np.arange(sizes.least, sizes.most + 1, dtype=float)
    ways = gammaln(sizes.n_streams + 1.0) - gammaln(m + 1.0) - gammaln(sizes.n_streams - m + 1.0)
    return m, np.exp(sizes.log_prior[sizes.least :] + ways)


def _missing(alpha: float, count: int) -> float:
    """The largest mean entropy that is left if the named set is wrong with probability alpha."""
    if alpha >= 1.0 - 1.0 / count:
        return math.log(count)
    return -alpha * math.log(alpha) - (1.0 - alpha) * math.log1p(-alpha) + alpha * math.log(count - 1)


def _prior_covariance(sizes: SetPrior) -> Array:
    """Of the indicator of the set: the streams are exchangeable."""
    K, (m, chances) = sizes.n_streams, _chances(sizes)
    one, two = float(m @ chances) / K, float((m * (m - 1.0)) @ chances) / (K * (K - 1))
    covariance: Array = np.full((K, K), two - one**2) + (one - two) * np.eye(K)
    return covariance


def _largest_ratio(M: Array, sizes: SetPrior) -> float:
    """At least A^2 for every c: its mean readings lie within A noise deviations of some number, whatever the set.

    A variable that lies in an interval has at most a quarter of its squared length as variance, so this bounds
    var(c'x) / c'S c, too. A^2 is max over two sets of z'M z / 4, z the difference of their indicators, with at most
    r = 2 n entries +-1. That maximum is bounded by r times the top eigenvalue and by r times the largest sum of r
    entries of a row.
    """
    r = min(2 * sizes.most, sizes.n_streams)
    rows = np.sort(np.abs(M), axis=1)[:, -r:].sum(axis=1).max()
    if sizes.fixed:  # then the entries of z add up to 0
        M = M - M.mean(axis=0)
        M = M - M.mean(axis=1, keepdims=True)
    return 0.25 * r * min(float(rows), float(np.linalg.eigvalsh(M)[-1]))


def _planned(ratios: Array, needed: float) -> int:
    """The least T for which T readings, planned in advance, can give `needed` nats in total.

    Their joint information is at most log det(I + G W)/2 with G the signal-to-noise ratios and W psd of rank and trace
    T: weight is poured over the T largest ratios until 1/ratio + weight is level.
    """
    return 1 + bisect_left(range(1, 1 << 53), needed, key=lambda T: _poured(ratios, T)) if needed > 0.0 else 0


def _poured(ratios: Array, readings: int) -> float:
    """The most information that a given number of planned readings can give."""
    floor = 1.0 / np.maximum(ratios[: min(readings, ratios.size)], 1e-300)
    level = (readings + floor.cumsum()) / np.arange(1, floor.size + 1)
    used = int(np.flatnonzero(level > floor)[-1]) + 1
    return float(0.5 * np.log(level[used - 1] / floor[:used]).sum())


def diagonal_rate(problem: Problem, anomalies: Sequence[int] | Index) -> float:
    """Return Gamma* if the streams were independent, with the same variances: S replaced by its diagonal.

    With g_k = S_kk / shift_k^2 it is (1 / sum of g over A + 1 / sum of g over the others) / 2, for one action and for
    a mix alike.
    """
    inside = np.zeros(problem.size, dtype=bool)
    inside[check_anomalies(problem, anomalies)] = True
    g = problem.covariance.diagonal() / problem.shift**2
    return float(0.5 / g[inside].sum() + 0.5 / g[~inside].sum())
