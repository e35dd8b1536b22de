"""Identification in linear bandits: what the algorithms of that field share when weights are continuous.

In white noise a measurement c is the unit vector x = L'c / sqrt(c'S c), S = L L', and a set A has the mean
theta_A = L^-1 mu_A: a reading is x'theta + N(0, 1). A design, which is a distribution over actions in the articles, is
here a matrix W = E[x x'], psd of trace 1: every such matrix is a mix of its eigenvectors, and all of them are allowed
actions. The best action for a direction d is x = d / |d|, in closed form c = S^-1 L d.

The hypotheses are simple: theta is one of the M known means. The rival A' of a leading set A is refuted at d'W d / 2
nats a reading, d = theta_A - theta_A', and no search beats Gamma* = max over W of min over A' of d'W d / 2.
"""

import math
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np
from scipy.linalg import cholesky

from eccaht.base.arrays import Array, Index, support_of
from eccaht.base.codec import Field, Fields, Sizes
from eccaht.streams.designs import Mask, alone
from eccaht.streams.designs.pair import among
from eccaht.streams.limits.mixture import best_mix
from eccaht.streams.limits.rates import white_shifts
from eccaht.streams.policies.choosers import ENUMERATED, compose_joint
from eccaht.streams.policies.parts import Choice, Chooser, View
from eccaht.streams.posterior import Enumeration, Joint
from eccaht.streams.posterior.protocol import WHOLE_POSTERIOR
from eccaht.streams.problem import Problem
from eccaht.streams.sets import SetPrior

LARGEST = 256  # streams: every reading takes an eigendecomposition of that size
KNOWN_MEANS = replace(WHOLE_POSTERIOR, unknown_shift=False)
FREE_MEANS = replace(KNOWN_MEANS, open_number=False)
_TOLERANCE = 5e-3  # relative gap of the best design
_ROUNDS = 30  # of cutting planes
_JITTER = 1e-9  # breaks ties between directions
_ROUNDING = 1e-6


def check_dense(name: str, problem: Problem) -> None:
    """Refuse more streams than designs as dense matrices are made for."""
    if problem.size > LARGEST:
        raise ValueError(f"policy {name!r} keeps dense matrices, for up to {LARGEST} streams, not {problem.size}")


def sets_of(name: str, problem: Problem, rng: np.random.Generator) -> Joint:
    """The exact likelihood of all sets, for an algorithm that looks at each of them."""
    check_dense(name, problem)
    count = SetPrior(problem.size, *problem.sizes).count
    if count > ENUMERATED:
        raise ValueError(
            f"policy {name!r} compares the leading set with all others, up to {ENUMERATED:,}, not {count:,}: use joint"
        )
    belief = cast("Joint", compose_joint(problem, rng=rng, posterior=Enumeration).belief)
    belief.can = KNOWN_MEANS
    return belief


class WhiteNoise:
    """A problem in coordinates in which the noise of every measurement is 1."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        self.problem = problem
        self.root = cholesky(problem.covariance.dense(), lower=True)  # L
        self._scaled = self.root / problem.shift[:, None]
        basis = np.linalg.qr(rng.standard_normal((problem.size, problem.size)))[0]
        self._jitter = (basis * np.linspace(0.0, _JITTER, problem.size)) @ basis.T

    def information(self, belief: Joint) -> Array:
        """V, the sum of x x' over all readings; evidence keeps it as M = sum of h h', h = shift*c / sqrt(c'S c)."""
        every = np.arange(self.problem.size)
        M = belief.likelihood.evidence.rows(every)[:, every]
        return np.asarray(self._scaled.T @ M @ self._scaled)

    def most_lacking(self, deficit: Array, view: View) -> Choice:
        """The measurement of largest x'D x, D the deficit: that of its top eigenvector, if it is allowed as it is.

        Where a constraint makes it another one, the further eigenvectors are tried as long as they could do better:
        else a direction that cannot be measured would be asked for again and again.
        """
        if view.available is not None and view.ranking.challenger < 0:
            return Choice(alone(self.problem, view.ranking.champion))
        values, vectors = np.linalg.eigh(deficit + self._jitter)
        chosen, top = Choice(np.empty(0)), -math.inf
        for value, x in zip(values[::-1], vectors.T[::-1], strict=True):
            if value <= top + _ROUNDING * abs(top):
                break
            c = measurement_of(self.problem, self.root @ x, view.available)
            if not (isinstance(c, np.ndarray) and c.shape == x.shape and c.any()):  # the policy says so
                return Choice(c)
            measured = self.root.T @ c / math.sqrt(self.problem.covariance.quad(c))
            reached = float(measured @ deficit @ measured)
            if reached > top:
                chosen, top = Choice(c), reached
            if view.available is not None:
                break
        return chosen


def measurement_of(problem: Problem, contrast: Array, available: Mask | None) -> Array:
    """Weights S^-1 D, or the least noisy ones under the constraint, D scaled like a swap: its largest entry a shift."""
    if available is not None:
        narrowed = among(problem, available)
        seen = (
            contrast[narrowed.streams] if narrowed.problem.size < problem.size else np.where(available, contrast, 0.0)
        )
        return narrowed.spread(measurement_of(narrowed.problem, seen, None))
    places = support_of(contrast)
    largest = max(float(np.abs(problem.shift[places]).max()), problem.measurements.least_contrast)
    values = contrast[places] * (largest / np.abs(contrast).max())
    return problem.designing.contrast(problem.covariance, places, values).weights


class Alternatives:
    """All possible sets as rivals of a leading one, by their numbers."""

    def __init__(self, problem: Problem) -> None:
        K, self._prior = problem.size, SetPrior(problem.size, *problem.sizes)
        self.sets = self._prior.all_sets()
        self._columns = np.column_stack([white_shifts(problem), np.zeros(K)])  # of an EMPTY slot: 0
        self._number = {key: number for number, key in enumerate(self._prior.keys(self.sets).tolist())}

    def leader(self, members: Index) -> int:
        """The number of a set."""
        slots = np.full(self._prior.most, self._prior.n_streams)
        slots[: members.size] = members
        return self._number[int(self._prior.keys(slots[None])[0])]

    def nats(self, W: Array, leader: int) -> Array:
        """d'W d / 2 for every set, (M,); infinite for the leader itself.

        With R = Theta'W Theta, Theta the streams' means, a set of n streams is n^2 entries of R.
        """
        R = self._columns.T @ W @ self._columns
        within = R[self.sets[:, :, None], self.sets[:, None, :]].sum(axis=(1, 2))
        across = R[:, self.sets[leader]].sum(axis=1)[self.sets].sum(axis=1)
        nats = 0.5 * (within - 2.0 * across + within[leader])
        nats[leader] = math.inf
        return np.asarray(nats)

    def differences(self, rivals: Index, leader: int) -> Array:
        """d of these rivals, one a column."""
        means = self._columns[:, self.sets[rivals]].sum(axis=2)
        return np.asarray(self._columns[:, self.sets[leader]].sum(axis=1)[:, None] - means)

    def best_design(self, leader: int) -> Array:
        """W* of the leader (eq. 5 for a mix), by cutting planes: solve for some rivals, add those that it refutes less.

        The optimum of all rivals lies between what the design refutes of all and what it refutes of those in it.
        """
        K = self._prior.n_streams
        rivals = self._nearest(self.nats(np.eye(K), leader), 2 * K)
        for _ in range(_ROUNDS):
            mix = best_mix(self.differences(rivals, leader), 0.3 * _TOLERANCE)
            nats = self.nats(mix.W, leader)
            if 2.0 * nats.min() >= (1.0 - _TOLERANCE) * mix.upper:
                break
            binding = rivals[mix.p > 1e-6 / rivals.size]
            rivals = np.union1d(binding, self._nearest(nats, K))
        return mix.W

    @staticmethod
    def _nearest(nats: Array, count: int) -> Index:
        count = min(count, nats.size - 1)
        return np.argpartition(nats, count - 1)[:count]


class Tracking(Chooser):
    """Measure what the readings so far lack most of the designs so far: the top eigenvector of G - V.

    G is the sum of the designs W(s), V that of x x' over the readings. It takes the place of C-tracking, the action of
    least N_x - sum of w_x(s), where actions are a continuum. It follows any designs: with x the top eigenvector,
    <G - V, W> <= x'(G - V) x, so that |G - V|_F^2 grows by at most |W - x x'|_F^2 <= 2 a reading and G / t - V / t
    vanishes like t^-1/2.
    """

    FIELDS: ClassVar[Fields] = (Field("goal", ("K", "K")), Field("latest", ("K", "K")))

    def __init__(self, belief: Joint, rng: np.random.Generator) -> None:
        self.belief, self.white = belief, WhiteNoise(belief.problem, rng)
        self.alternatives = Alternatives(belief.problem)
        K = belief.problem.size
        self.latest = np.eye(K) / K
        self.goal = self.latest.copy()  # G with the design of the next reading

    def design(self, leader: int) -> Array:
        """The design for the next reading, against all rivals of the leading set."""
        raise NotImplementedError

    def choose(self, view: View) -> Choice:
        V = self.white.information(cast("Joint", view.belief))
        return self.white.most_lacking(self.deficit(V, view), view)

    def deficit(self, V: Array, view: View) -> Array:
        """What the readings lack; those under way are in V."""
        return np.asarray(self.goal + len(view.pending) * self.latest - V)

    def record(self, c: Array) -> None:  # noqa: ARG002
        self.latest = self.design(self.alternatives.leader(self.belief.map_set))
        self.goal = self.goal + self.latest

    def check_restored(self, sizes: Sizes) -> None:
        """Both are sums of designs, psd of trace 1: one for `latest`, up to one a reading for the goal."""
        for matrix, most in ((self.latest, 1.0), (self.goal, 1.0 + sizes["t"])):
            trace = float(np.trace(matrix))
            asymmetry = float(np.abs(matrix - matrix.T).max())
            if not 1.0 - _ROUNDING <= trace <= most * (1.0 + _ROUNDING) or asymmetry > _ROUNDING:
                raise ValueError("its designs are damaged")
            if np.linalg.eigvalsh(matrix)[0] < -_ROUNDING * trace:
                raise ValueError("its designs are damaged: they have negative eigenvalues")
