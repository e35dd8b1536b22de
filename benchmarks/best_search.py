"""The best search there is, for problems with few sets (docs/explanation/limits.md).

A search that pays 1 for each reading and `penalty` for a wrong set costs at least V(p), p the chances of the sets:

    V(p) = min( penalty (1 - max p),  1 + min over u of E V(p after a reading N(u'x, 1)) ),   |u| = 1,

x the mean of the true set in white noise. Solved by policy iteration on a grid of beliefs whose interpolation bounds V
from below, directions u from a grid refined around the best of each belief, and a trapezoidal rule for the reading.

The value of a search is a concave function of the probabilities q of the sets, and homogeneous: V(t q) = t V(q). So
it is enough to know it where the largest q is 1, and probabilities need not be normalised. There each q lies between
two nodes (k/n)^3, which are dense where a set is nearly ruled out; the cells are cut into simplices (Kuhn), and V is
interpolated linearly from their corners. The interpolation of a concave function never exceeds it (Jensen).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from scipy import sparse

from eccaht.base.arrays import Array, Index, as_count, as_positive
from eccaht.streams.limits.rates import check_limits, white_shifts
from eccaht.streams.problem import Problem
from eccaht.streams.sets import SetPrior

MOST_SETS = 6
_REACH = 5.0  # noise deviations beyond the outermost means
_AT_ONCE = 30_000  # readings interpolated together: what a cache holds
_SWEEPS, _EVERY, _CONVERGED = 13, 3, 1e-4  # all directions are tried in every third sweep
_EVALUATIONS = 5000
_LATTICE = (1, 1, 72, 60)  # directions in 0 to 3 dimensions
_NARROWING = (0.5, 0.25, 0.12)  # of the distance of neighbouring directions


class BeliefGrid:
    """Nodes for M sets; those that an isometry of the problem takes into each other share one value.

    points: one node of each class, (N, M). start: the class of the belief that takes all sets for equally likely.
    """

    def __init__(self, intervals: int, isometries: Index) -> None:
        n, M = intervals, isometries.shape[1]
        self.n, self.isometries = n, isometries
        self._nodes = (np.arange(n + 1) / n) ** 3
        self._scale = 1.0 / np.diff(self._nodes)
        self._stride = (n + 1) ** np.arange(M)[::-1]
        places = np.indices((n + 1,) * M, dtype=np.int16).reshape(M, -1)
        (facet,) = np.nonzero(places.max(axis=0) == n)
        places = places[:, facet]
        first, turn = facet.copy(), np.zeros(facet.size, dtype=np.int16)
        for g, order in enumerate(isometries):
            turned = self._stride @ places[order].astype(np.int64)
            earlier = turned < first
            first[earlier], turn[earlier] = turned[earlier], g
        own = first == facet
        self._class = np.full((n + 1) ** M, -1, dtype=np.int32)
        self._class[facet[own]] = np.arange(int(own.sum()))
        self._class[facet] = self._class[first]
        self._turn = np.zeros((n + 1) ** M, dtype=np.int16)
        self._turn[facet] = turn
        self.points: Array = self._nodes[places[:, own].T.astype(np.intp)]
        self.start = int(self._class[-1])

    def corners(self, q: Array) -> tuple[Index, Array]:
        """The classes of the corners around each q, (..., M) to (..., M + 1), and their weights."""
        places, weights = self._corners(q)
        return self._class[places], weights

    def turned(self, q: Array, means: Array) -> Array:
        """What is known of each class, (N, M), at the corners around each q: (..., M + 1, M), in the order of q."""
        places, _ = self._corners(q)
        back = np.argsort(self.isometries, axis=1)[self._turn[places]]
        return np.take_along_axis(means[self._class[places]], back, axis=-1)

    def _corners(self, q: Array) -> tuple[Index, Array]:
        top = q.max(axis=-1, keepdims=True)
        ratio = q / np.maximum(top, 1e-300)
        below = np.minimum((self.n * np.cbrt(ratio)).astype(np.intp), self.n - 1)
        short = (self._nodes[below] - ratio) * self._scale[below]
        short = np.clip(short, -1.0, 0.0)  # rounding may choose the next interval
        order = np.argsort(short, axis=-1)
        places = np.empty((*q.shape[:-1], q.shape[-1] + 1), dtype=np.intp)
        places[..., 0], places[..., 1:] = below @ self._stride, self._stride[order]
        weights = np.diff(np.sort(short, axis=-1), axis=-1, prepend=-1.0, append=0.0)
        return places.cumsum(axis=-1), top * weights


def isometries_of(points: Array) -> Index:
    """All orders of the points, shape (M, d), that leave their distances as they are."""
    distance = ((points[:, None] - points) ** 2).sum(axis=-1)
    orders = np.array(list(permutations(range(len(points)))))
    moved = distance[orders[:, :, None], orders[:, None, :]]
    return np.asarray(orders[np.abs(moved - distance).max(axis=(1, 2)) <= 1e-9 * distance.max()])


@dataclass(frozen=True)
class OptimalSearch:
    """What the best search costs, and a search that comes near.

    value: lower bound of E[readings] + penalty P(wrong), all sets being equally likely at first; exact but for the
    interpolation, which lowers it, and for the grid of directions and readings, which `optimal_search` can refine.
    """

    penalty: float
    value: float
    grid: BeliefGrid
    values: Array
    means: Array  # of the reading that is best at each point of the grid, for each set
    step: float

    def simulate(self, rng: np.random.Generator, runs: int) -> tuple[Array, Array]:
        """Readings and probability of error of searches that follow these values."""
        M = self.means.shape[1]
        truth = rng.integers(M, size=runs)
        q, taken, going = np.ones((runs, M)), np.zeros(runs), np.arange(runs)
        while going.size:
            means, onward = self._next(q[going])
            total = q[going].sum(axis=1)
            on = total + onward < self.penalty * (total - 1.0)
            going, means = going[on], means[on]
            y = means[np.arange(going.size), truth[going]] + rng.standard_normal(going.size)
            log_q = np.log(np.maximum(q[going], 1e-300)) + means * y[:, None] - 0.5 * means**2
            q[going] = np.exp(log_q - log_q.max(axis=1, keepdims=True))
            taken[going] += 1.0
        return taken, 1.0 - 1.0 / q.sum(axis=1)

    def _next(self, q: Array) -> tuple[Array, Array]:
        """The best of the readings that the corners around q would take, and what is left to pay after it."""
        means = self.grid.turned(q, self.means)
        onward = np.stack([_after(self.grid, self.values, q, means[:, k], self.step) for k in range(means.shape[1])])
        best = onward.argmin(axis=0)
        return means[np.arange(len(q)), best], onward.min(axis=0)


def optimal_search(
    problem: Problem, penalty: float, *, intervals: int, step: float = 0.5, directions: int | None = None
) -> OptimalSearch:
    """Solve for the best search of a problem with at most six possible sets; weights are not limited by the budget.

    intervals: of each probability on the grid. step: between readings of the integral, in noise deviations.
    directions: in the first grid of them (two and three dimensions).

    >>> problem = Problem(np.eye(2), shift=1.0, n_anomalies=1, budget=5.0)
    >>> round(optimal_search(problem, 50.0, intervals=80).value, 2)
    5.01
    """
    return next(optimal_searches(problem, [penalty], intervals=intervals, step=step, directions=directions))


def optimal_searches(
    problem: Problem, penalties: Sequence[float], *, intervals: int, step: float = 0.5, directions: int | None = None
) -> Iterator[OptimalSearch]:
    """Solve for several penalties, each starting from the solution of the one before."""
    bellman = _Bellman(problem, as_count(intervals, "intervals", least=2), step, directions)
    return map(bellman.solve, penalties)


def fewest_readings(values: Mapping[float, float], error: float) -> float:
    """Return a lower bound of E[readings] of any search with this probability of error, from values by penalty.

    E[readings] + penalty error >= value for each penalty: the largest difference counts.

    >>> fewest_readings({10.0: 3.0, 50.0: 5.0}, 0.05)
    2.5
    """
    return max(value - penalty * error for penalty, value in values.items())


def white_means(problem: Problem) -> Array:
    """The mean of each possible set in white noise, in coordinates of the space of their differences: (M, d)."""
    check_limits(problem)
    prior = SetPrior(problem.size, problem.known_number, problem.known_number)
    if prior.count > MOST_SETS:
        raise ValueError(
            f"the best search is computed for at most {MOST_SETS} possible sets, not {prior.count}: "
            "take fewer streams, or the bounds of `limits`"
        )
    x = white_shifts(problem).T[prior.all_sets()].sum(axis=1)
    left, sizes, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    kept = sizes > 1e-9 * sizes[0]
    return np.asarray(left[:, kept] * sizes[kept])


class _Bellman:
    """Policy iteration, warm from one penalty to the next."""

    def __init__(self, problem: Problem, intervals: int, step: float, directions: int | None) -> None:
        self.x = white_means(problem)
        self.grid = BeliefGrid(intervals, isometries_of(self.x))
        self.step = as_positive(step, "step")
        self.lattice, self.apart = _directions(self.x, directions)
        self.total = self.grid.points.sum(axis=1)
        self.policy: Array | None = None  # a direction for each point of the grid

    def solve(self, penalty: float) -> OptimalSearch:
        penalty = as_positive(penalty, "penalty")
        stop = penalty * (self.total - 1.0)
        (going,) = np.nonzero(stop > self.total)  # elsewhere a reading costs more than it can save
        if self.policy is None:
            self.policy = np.tile(self.lattice[0], (len(self.total), 1))
        values, last = self._evaluated(stop, going, self.policy[going]), math.inf
        for sweep in range(_SWEEPS):
            everywhere = sweep % _EVERY == 0
            self.policy[going] = self._improved(values, going, self.policy[going], everywhere)
            values = self._evaluated(stop, going, self.policy[going])
            value = float(values[self.grid.start] / self.total[self.grid.start])
            if everywhere and abs(last - value) <= _CONVERGED * value:
                break
            last = value
        return OptimalSearch(penalty, value, self.grid, values, self.policy @ self.x.T, self.step)

    def _improved(self, values: Array, going: Index, policy: Array, everywhere: bool) -> Array:
        """The best direction of the lattice (if `everywhere`) or the present one, refined."""
        q = self.grid.points[going]
        found, best = policy, _after(self.grid, values, q, policy @ self.x.T, self.step)
        for u in self.lattice if everywhere else ():
            found, best = self._better(values, q, np.broadcast_to(u, found.shape), found, best)
        for share in _NARROWING if self.x.shape[1] > 1 else ():
            for tangent in np.moveaxis(_tangents(found), 1, 0):
                for way in (share * self.apart, -share * self.apart):
                    moved = found + way * tangent
                    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
                    found, best = self._better(values, q, moved, found, best)
        return found

    def _better(self, values: Array, q: Array, u: Array, found: Array, best: Array) -> tuple[Array, Array]:
        new = _after(self.grid, values, q, u @ self.x.T, self.step)
        return np.where((new < best)[:, None], u, found), np.minimum(new, best)

    def _evaluated(self, stop: Array, going: Index, policy: Array) -> Array:
        """Values if these directions are measured, and the search stops when that is best."""
        q, total = self.grid.points[going], self.total[going]
        classes, weights = self.grid.corners(q[:, None] * _chances(policy @ self.x.T, self.step))
        shape, width = (len(going), len(stop)), int(np.prod(classes.shape[1:]))
        rows = np.arange(0, width * len(going) + 1, width)
        onward = sparse.csr_matrix((weights.ravel(), classes.ravel(), rows), shape=shape)
        onward.sum_duplicates()
        values = stop.copy()
        for _ in range(_EVALUATIONS):
            new = np.minimum(stop[going], total + onward @ values)
            change = float(np.abs(new - values[going]).max(initial=0.0))
            values[going] = new
            if change <= 1e-10 * float(stop.max()):
                break
        return values


def _chances(means: Array, step: float) -> Array:
    """Probabilities of readings on a lattice, for each set: (..., M) to (..., J, M)."""
    low = means.min(axis=-1, keepdims=True) - _REACH
    count = math.ceil((float(np.ptp(means, axis=-1).max(initial=0.0)) + 2.0 * _REACH) / step) + 1
    y = low + step * np.arange(count)
    return np.asarray(step / math.sqrt(2.0 * math.pi) * np.exp(-0.5 * (y[..., None] - means[..., None, :]) ** 2))


def _after(grid: BeliefGrid, values: Array, q: Array, means: Array, step: float) -> Array:
    """The integral of V(q after the reading), for a reading with these means: (N, M) and (N, M) to (N,)."""
    chances = _chances(means, step)
    parts, size = [], max(1, _AT_ONCE // chances.shape[1])
    for at in range(0, len(q), size):
        classes, weights = grid.corners(q[at : at + size, None] * chances[at : at + size])
        parts.append((values[classes] * weights).sum(axis=(-1, -2)))
    return np.concatenate([*parts, np.zeros(0)])


def _directions(x: Array, count: int | None) -> tuple[Array, float]:
    """Unit vectors up to sign, and about how far apart they are.

    Beyond three dimensions they are the contrasts of some sets with others, equally weighed.
    """
    d = x.shape[1]
    if d > 3:
        signs = np.array([s for s in product((-1, 0, 1), repeat=len(x)) if next(filter(None, s), 0) > 0])
        contrasts = signs @ x
        length = np.linalg.norm(contrasts, axis=1, keepdims=True)
        units = (contrasts / np.maximum(length, 1e-300))[length[:, 0] > 1e-9]
        return np.unique(units.round(9), axis=0), 0.5
    n = _LATTICE[d] if count is None or d < 2 else as_count(count, "directions", least=1)
    k = (np.arange(n) + 0.5) / n
    if d == 1:
        return np.ones((1, 1)), 0.0
    if d == 2:
        return np.column_stack([np.cos(np.pi * k), np.sin(np.pi * k)]), math.pi / n
    angle, radius = math.pi * (1.0 + math.sqrt(5.0)) * n * k, np.sqrt(1.0 - k**2)  # Fibonacci points of a half sphere
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), k]), math.sqrt(2.0 * math.pi / n)


def _tangents(u: Array) -> Array:
    """Orthonormal bases of what is orthogonal to each row: (N, d) to (N, d - 1, d)."""
    v = u.copy()
    v[:, 0] += np.where(u[:, 0] < 0.0, -1.0, 1.0)  # the reflection that takes the first axis to -+u
    reflections = np.eye(u.shape[1]) - 2.0 * v[:, :, None] * v[:, None] / (v**2).sum(axis=1)[:, None, None]
    return np.asarray(reflections[:, 1:])
