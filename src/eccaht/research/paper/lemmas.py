"""What the lemmas of the paper's appendices E and F bound, computed along searches.

With h = shift * c, v = c'S c, i an anomalous stream and j another one: on average a reading adds (h_i - h_j)^2 / 2v
nats between the true set and the one with j in the place of i, and ((h_i - h_j) m - (h_i^2 - h_j^2) / 2) / v to the
difference of their scores, where m is the sum of h over all anomalous streams.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.base.statistics import reached_for_good
from eccaht.streams import Problem, Simulator, Step, make_policy, steps
from eccaht.streams.limits.mixture import best_action

_EXPONENT = 0.75**2 / 128  # the c of the ranking theorem where its C is largest, 1/4, and kappa is 1

_Pairs = tuple[NDArray[np.intp], ...]  # anomalous streams down, the others across


def follow(problem: Problem, name: str, horizon: int, seed: tuple[int, int], options: dict[str, Any]) -> Array:
    """Follow one search; theorems.py says what the columns of the experiment are for. NaN where nothing was seen.

    A search that is right in the last quarter of its first `enough` readings ends there, the others at the horizon.
    """
    world = Simulator(problem, seed=seed, names=[name])
    policy, inside = make_policy(name, problem, seed=seed, stopping=None), np.asarray(world.anomalies)
    made, right = list[Step](), list[float]()
    for step in steps(policy, world, horizon, obey_stopping=False):
        made.append(step)
        right.append(float(np.array_equal(policy.decision, inside)))
        if len(made) == options["enough"] and all(right[-(len(made) // 4) :]):
            break
    pairs = np.ix_(inside, np.setdiff1d(np.arange(problem.size), inside))
    settled = reached_for_good(right, 1.0)
    gamma = best_action(problem, inside, limited=True).rate
    spreads = [problem.noise_variance(step.weights) ** 0.5 for step in made]
    h = np.array([problem.shift * step.weights / spread for step, spread in zip(made, spreads, strict=True)])
    cross, backward, covered, hardest, design = _of_readings(h, made, pairs, settled, 0.5 - off_diagonal(problem))
    of_readings = cross, backward, covered, settled or np.nan, hardest, design / gamma
    of_end = _of_end(problem, h, made, pairs, _between(policy.scores, pairs))
    return np.array([*of_readings, *of_end, gamma, gamma / _diagonal_rate(problem, inside)])


def _of_readings(H: Array, made: Sequence[Step], pairs: _Pairs, settled: int | None, reach: float) -> list[float]:
    """Means of what `one_reading` says, the last two since the search is right for good."""
    table = [one_reading(h, (step.champion, step.challenger), pairs, reach) for h, step in zip(H, made, strict=True)]
    after = table[settled:] if settled else []
    return [*_means(table)[:3], *_means(after or [[np.nan] * 5])[3:]]


def one_reading(h: Array, measured: tuple[int, int], pairs: _Pairs, reach: float) -> list[float]:
    """What a reading of weights h does to scores on average; NaN unless the pair measured is one of the pairs.

    The cross-term of the measured pair in units of h_i^2 + h_j^2; whether some pair is driven the wrong way; the share
    of pairs with a contrast of `reach` times that of the measured pair; whether no pair gains less information, and
    the least that a pair gains.
    """
    i, j = measured
    if not (i in pairs[0] and j in pairs[1]):
        return [np.nan] * 5
    m, gap, own = float(h[pairs[0]].sum()), _between(h, pairs), h[i] - h[j]
    drift = gap * m - 0.5 * _between(h**2, pairs)
    size = h[i] ** 2 + h[j] ** 2
    least, rounding = float((gap**2).min()), 1e-9 * size
    cross, covered = abs(own * m - h[i] ** 2) / size, (np.abs(gap) >= reach * own - 1e-9 * abs(own)).mean()
    return [cross, float(drift.min() < -rounding), covered, float(own**2 <= least + rounding), 0.5 * least]


def _of_end(problem: Problem, h: Array, made: Sequence[Step], pairs: _Pairs, lead: Array) -> list[float]:
    """The exponent of the ranking bound at the most improbable wrong pair, the least lead of the scores, the number of
    readings, the nats that the nearest exchange trails by, and how many were expected.
    """
    M = h.T @ h
    r = np.array(
        [(s.reading - problem.mean_reading(s.weights)) / problem.noise_variance(s.weights) ** 0.5 for s in made]
    )
    fisher = (M.diagonal()[:, None] + M.diagonal() - 2.0 * M)[pairs]  # shift^2 Lambda_T, shifts being equal
    nats = _between(h.T @ r - M[:, pairs[0].ravel()].sum(axis=1), pairs) + 0.5 * fisher
    nearest = np.unravel_index(nats.argmin(), nats.shape)
    exponent = _EXPONENT * fisher[lead <= 0.0].max(initial=0.0)
    return [exponent, lead.min(), len(made), nats[nearest], 0.5 * fisher[nearest]]


def _diagonal_rate(problem: Problem, inside: Index) -> float:
    """Gamma* of independent streams of the same variances (docs/explanation/limits.md)."""
    g = problem.covariance.diagonal() / problem.shift**2
    of_set = g[inside].sum()
    return float(0.5 / of_set + 0.5 / (g.sum() - of_set))


def off_diagonal(problem: Problem) -> float:
    """The largest correlation of two streams in size."""
    S = problem.covariance.dense()
    scale = np.sqrt(S.diagonal())
    return float(np.abs(S / np.outer(scale, scale) - np.eye(len(S))).max())


def fastest_single(S: Array, differences: Array) -> float:
    """The largest rate of one measurement, max over c of min over rows d of (c'd)^2 / (2 c'S c).

    Each choice of signs of c'd is a least-distance program, which non-negative least squares solves (Lawson & Hanson).
    """
    from scipy.optimize import nnls

    whitened = np.linalg.solve(np.linalg.cholesky(S), differences.T)
    target = np.append(np.zeros(len(S)), 1.0)
    best = 0.0
    for signs in product((1.0, -1.0), repeat=len(differences) - 1):
        misfit = nnls(np.vstack([whitened * (1.0, *signs), np.ones(len(differences))]), target)[1]
        best = max(best, 0.5 * misfit**2 / (1.0 - misfit**2))
    return best


def _between(values: Array, pairs: _Pairs) -> Array:
    """The difference of each anomalous stream to each other one."""
    return np.asarray(values[pairs[0]] - values[pairs[1]])


def _means(table: Sequence[Sequence[float]]) -> list[float]:
    """Means of the columns over what is not NaN."""
    columns = (column[~np.isnan(column)] for column in np.array(table).T)
    return [float(column.mean()) if column.size else np.nan for column in columns]
