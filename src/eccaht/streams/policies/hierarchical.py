"""Hierarchical Dynamic Search: a walk on the binary tree of streams that reads node sums.

Gafni, Wolff, Revach, Shlezinger & Cohen, "Anomaly search over discrete composite hypotheses in hierarchical statistical
models", IEEE Trans. Signal Processing 71, 2023 (arXiv 2202.10418). The steps below are those of the authors' program
(github.com/DrummingBeb/Composite-Anomaly-Detection-via-Hierarchical-Dynamic-Search: `IRW_or_HDS_one_anomaly` in
sequential.py, fixed-size internal tests); the numbers are ours, not the article's.

1. Start at the root.
2. At an internal node read the sum of each child's leaves K_l times, l the level of the child, and take its GLLR.
3. Go to the child with the larger GLLR if that is positive, else to the parent (from the root: to the root).
   Readings of earlier visits are forgotten.
4. At a leaf read once and add to the ALLR, whose parameter is estimated from the earlier readings of this visit alone.
5. ALLR < 0: go to the parent. ALLR >= log(L/c), L = log2 K the levels of the tree: declare the leaf anomalous.
6. Several anomalies: take the declared leaf out of all node sums and start again at 1, until n are declared.
"""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eccaht.base.arrays import (
    Array,
    Index,
    as_count,
    as_floats,
    as_number,
    check_finite,
    check_unmeasured,
    frozen,
    support_of,
    whole_numbers,
)
from eccaht.base.codec import Field, Fields, Sizes
from eccaht.streams.covariance import Covariance, Diagonal
from eccaht.streams.policies.parts import Choice, Parts, View
from eccaht.streams.posterior import Belief, Capabilities
from eccaht.streams.problem import Problem
from eccaht.streams.shifts import log_ratio
from eccaht.streams.stopping import Own

_ROOT = 1  # nodes are numbered as in a heap: the children of v are 2v and 2v + 1, the leaf of stream k is K + k
_ROUNDING = 1e-9  # relative; what differs by less is taken for equal


def compose_hds(
    problem: Problem,
    *,
    alpha: float,  # noqa: ARG001
    readings: int | Sequence[int] = 5,
    shifts: ArrayLike | None = None,
    error: float = 1e-5,
) -> Parts:
    """Put HDS together; it stops by itself when n leaves are declared.

    alpha: ignored (every algorithm gets it); the error of HDS is set by `error`.
    readings: K_l, how often each child is read, one number or one a level from the leaves up (log2 K of them). The
        article wants it just large enough that a move is more often right than wrong; 5 does that
        at K = 128 and shift 5, and is what fig3a takes.
    shifts: Theta1, the sizes an anomaly may have. The default, the problem's shift and 40 % to either side, is
        {3, 5, 7} at shift 5, as in fig3a.
    error: c, the price of a reading when an error costs 1; a leaf is declared at log(log2 K / c).

    >>> problem = Problem(np.eye(8), shift=5.0, n_anomalies=2, budget=1.0)
    >>> walk, _, stop = compose_hds(problem, alpha=0.05)
    >>> stop.met(lead=0.0, n_readings=0)
    False
    """
    levels = _levels(problem.size)
    variance = _common(problem.covariance.diagonal(), "streams of one variance", "variance")
    _check_independent(problem.covariance)
    shift = _common(np.abs(problem.shift), "shifts of one size (either sign)", "shift")
    cost = as_number(error, "error")
    if not 0 < cost < 1:
        raise ValueError(f"error must lie strictly between 0 and 1, not {error!r}")
    thetas = _sizes(shift * np.array([0.6, 1.0, 1.4]) if shifts is None else shifts)
    walk = TreeWalk(problem, variance, thetas, _per_level(readings, levels), math.log(levels / cost))
    return Parts(walk, walk, Own(walk.is_over))


def llr(thetas: Array, readings: Array, variance: float) -> Array:
    """log p(readings | theta) - log p(readings | 0) for readings N(theta, variance), one row a theta.

    readings: their number and their sum, (2,), or (2, m) for m sets of readings.
    """
    count, total = readings
    return np.asarray(log_ratio(thetas[:, np.newaxis], total, variance, count))


class TreeWalk(Belief):
    """Where the walk is and what it has read: the belief and the chooser of HDS.

    In units of one leaf, with the signs of the shifts taken into the weights, the sum of m leaves reads
    N(theta * (anomalies among them), m s). Theta1 is the same at every node, as for one anomaly below it.

    Any measurement is accepted. One that is not a multiple of the node sum asked for does not move the walk; if it
    concerns a single leaf it counts for that leaf's score, otherwise it is ignored.

    Scores: log(n/(K-n)) + GLLR of all readings that concerned the stream alone, asked for or not. Declared
    streams are lifted together, so that each leads every other stream by at least the leaf threshold. Once n are
    declared the search is over: what is asked for from then on is the declared leaf of weakest evidence, and no
    declaration is ever taken back.
    """

    FIELDS: ClassVar[Fields] = (
        Field("_node", (), int, low=_ROOT),
        Field("_allr"),
        Field("_visit", (2, 2), high=1e100, low=-1e100),
        Field("_alone", (2, "K"), high=1e100, low=-1e100),
        Field("_declared", ("K",), bool),
    )
    # its tests are for one noise, its tree follows the order of the streams, and its walk has one next reading
    can = Capabilities(log_odds=False, uses_covariance=False, order_matters=True, batches=False, shared_noise=False)
    foresees = False

    def __init__(self, problem: Problem, variance: float, thetas: Array, readings: Index, threshold: float) -> None:
        self.problem = problem
        self._sign, self._variance = np.sign(problem.shift), variance
        self._thetas, self._readings, self._threshold = thetas, readings, threshold
        self._node, self._allr = _ROOT, 0.0
        self._visit = np.zeros((2, 2))  # number and sum of this visit's readings, one column a child (leaf: column 0)
        self._alone = np.zeros((2, problem.size))  # the same for all readings of each stream alone
        self._declared: NDArray[np.bool_] = np.zeros(problem.size, dtype=bool)

    @property
    def declared(self) -> Index:
        """The streams declared anomalous, sorted."""
        return self._declared.nonzero()[0]

    @property
    def scores(self) -> Array:
        """Evidence of each stream, the declared ones above all others."""
        scores, declared = self._evidence, self._declared
        if declared.any():
            lift = scores[~declared].max() + self._threshold - scores[declared].min()
            scores[declared] += max(lift, 0.0)
        return frozen(scores)

    def choose(self, view: View) -> Choice:  # noqa: ARG002
        """Return the node sum to read next, of |c|_1 = budget."""
        leaves = self._pending
        weights = np.zeros(self.problem.size)
        weights[leaves] = self._sign[leaves]
        return Choice(self.problem.measurements.scaled(weights))

    def update(self, c: Array, y: float) -> None:
        """Take a reading; the walk goes on if it is of the node sum asked for."""
        support = support_of(c)
        weights, asked = c[support] * self._sign[support], np.array_equal(support, self._pending)
        x = (y - float(c[support] @ self.problem.mean[support])) / float(weights[0])  # in units of one leaf
        if support.size == 1:
            self._alone[:, support[0]] += 1.0, x
        if asked and not self._over and np.allclose(weights, weights[0], rtol=_ROUNDING, atol=0.0):
            (self._test_leaf if self._at_leaf else self._test_children)(x)

    def record(self, c: Array) -> None:
        """Nothing to do: `update` has taken the reading already."""

    def check_restored(self, sizes: Sizes) -> None:
        if self._node >= 2 * sizes["K"]:
            raise ValueError(f"its tree has no node {self._node}")
        for counts, sums in (self._visit, self._alone):
            whole_numbers(counts, "counts of readings", most=sizes["t"])
            check_unmeasured(counts, sums, "counts and sums of readings")
        if self._alone[0].sum() > sizes["t"] or not self._possible:
            raise ValueError(f"a walk cannot be in such a state at node {self._node}")

    @property
    def _possible(self) -> bool:
        (first, second), declared = self._visit[0], self.declared
        if declared.size > self.problem.known_number or (self._alone[0, declared] < 2).any():
            return False
        if not self._below(self._node).size:
            return False
        if self._over:
            return self._node == _ROOT and not self._visit.any() and self._allr == 0.0
        if self._at_leaf:
            read = first <= self._alone[0, self._node - self.problem.size] and second == 0
            return bool(read) and (0.0 <= self._allr < self._threshold if first > 1 else self._allr == 0.0)
        one, other = self._wanted
        in_order = first == one or second == 0
        left = self._unread_child is not None
        return bool(in_order and left and first <= one and second <= other and self._allr == 0.0)

    @property
    def _evidence(self) -> Array:
        n, K = self.problem.known_number, self.problem.size
        return np.log(n / (K - n)) + llr(self._thetas, self._alone, self._variance).max(axis=0)

    @property
    def _over(self) -> bool:
        return int(self._declared.sum()) >= self.problem.known_number

    @property
    def _at_leaf(self) -> bool:
        return self._node >= self.problem.size

    @property
    def _pending(self) -> Index:
        """The leaves whose sum is to be read."""
        if self._over:
            declared = self.declared
            return declared[[self._evidence[declared].argmin()]]
        child = self._unread_child
        return self._below(self._node if child is None else 2 * self._node + child)

    def _below(self, node: int) -> Index:
        depth = node.bit_length() - 1
        width = self.problem.size >> depth
        start = (node - (1 << depth)) * width
        return start + (~self._declared[start : start + width]).nonzero()[0]

    @property
    def _wanted(self) -> list[int]:
        """How many readings each child needs: none if it has no leaves."""
        level = self._readings.size - self._node.bit_length()  # of the children; the leaves have level 0
        sizes = [self._below(2 * self._node + child).size for child in (0, 1)]
        return [int(self._readings[level]) if size else 0 for size in sizes]

    @property
    def _unread_child(self) -> int | None:
        """The first child that still has leaves and too few readings (step 2); None at a leaf or if there is none."""
        if self._at_leaf:
            return None
        return next((child for child, wanted in enumerate(self._wanted) if self._visit[0, child] < wanted), None)

    def _test_children(self, x: float) -> None:
        self._visit[:, self._unread_child] += 1.0, x
        if self._unread_child is not None:
            return
        gllr = [-math.inf, -math.inf]  # a child without leaves is never entered
        for child in (0, 1):
            if leaves := self._below(2 * self._node + child).size:
                gllr[child] = float(llr(self._thetas, self._visit[:, child], leaves * self._variance).max())
        best = int(gllr[1] > gllr[0])
        self._enter(2 * self._node + best if gllr[best] > 0 else self._node // 2)  # step 3

    def _test_leaf(self, x: float) -> None:
        earlier = self._visit[:, 0]
        # Step 4. Before the first reading the estimate is the normal parameter, 0: that reading only feeds the next.
        theta = self._thetas[llr(self._thetas, earlier, self._variance).argmax()] if earlier[0] else 0.0
        self._allr += float(log_ratio(theta, x, self._variance))
        earlier += 1.0, x
        if self._allr >= self._threshold:  # step 5
            self._declared[self._node - self.problem.size] = True
            self._enter(_ROOT)  # step 6
        elif self._allr < 0:
            self._enter(self._node // 2)

    def is_over(self, n_readings: int) -> bool:  # noqa: ARG002
        """Are n leaves declared (step 6)?

        A visit to a normal leaf declares it with probability at most c / log2 K, since exp(ALLR) is a martingale there
        (Ville's inequality). The number of such visits is random, and grows when the node sums are noisy.
        """
        return self.declared.size >= self.problem.known_number

    def _enter(self, node: int) -> None:
        self._node, self._allr = max(node, _ROOT), 0.0
        self._visit[:] = 0.0


def _levels(K: int) -> int:
    if K & (K - 1):
        below = 1 << (K.bit_length() - 1)
        raise ValueError(
            f"HDS searches a binary tree, so the number of streams must be a power of two, not {K}: "
            f"use {below} or {2 * below} streams, or another policy"
        )
    return K.bit_length() - 1


def _common(values: Array, what: str, unit: str) -> float:
    if np.ptp(values) > _ROUNDING * values.max():
        raise ValueError(
            f"HDS needs {what}, but they range from {values.min():.6g} to {values.max():.6g}: "
            f"scale the streams to one {unit}, or use another policy"
        )
    return float(values[0])


def _check_independent(S: Covariance) -> None:
    for k in () if isinstance(S, Diagonal) else range(S.size):
        column = np.abs(S.column(k))
        variance, column[k] = column[k], 0.0
        if column.max() > _ROUNDING * variance:
            raise ValueError(
                f"HDS needs independent streams, but streams {k} and {column.argmax()} are correlated: "
                "use a policy that knows the covariance, such as 'ecc-aht'"
            )


def _sizes(shifts: ArrayLike) -> Array:
    thetas = np.unique(as_floats(shifts, "shifts"))
    check_finite(thetas, "shifts")
    if thetas.size == 0 or thetas[0] <= 0:
        raise ValueError(f"shifts must be positive sizes, not {shifts!r}: the signs are those of the problem's shift")
    return frozen(thetas)


def _per_level(readings: int | Sequence[int], levels: int) -> Index:
    counts = [readings] * levels if np.ndim(readings) == 0 else list(readings)  # type: ignore[arg-type]
    if len(counts) != levels:
        raise ValueError(f"readings has {len(counts)} values, but the tree has {levels} levels: give one or {levels}")
    return np.array([as_count(count, "readings", least=1) for count in counts], dtype=np.intp)
