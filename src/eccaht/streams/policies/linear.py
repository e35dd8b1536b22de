"""Two algorithms that know nothing of the means: any theta is possible, and is estimated by least squares.

theta is in units of each stream's own shift, so that the anomalous streams are the n largest, and a difference of two
streams is about 1 or about 0. A set is right if each of its members is above each other stream: n (K - n) comparisons
y = e_i - e_j decide, and a set several swaps away never needs more certainty than one of them.
"""

import math
from functools import partial
from typing import cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from eccaht.base.arrays import Array, Index, as_count
from eccaht.base.codec import Field, Sizes
from eccaht.base.presentation.text import unknown
from eccaht.streams.designs import alone
from eccaht.streams.policies.choosers import compose_joint
from eccaht.streams.policies.parts import Choice, Chooser, Parts, View
from eccaht.streams.policies.transductive import FREE_MEANS, WhiteNoise, check_dense, measurement_of
from eccaht.streams.posterior import Joint, Ranker
from eccaht.streams.problem import Problem
from eccaht.streams.stopping import Horizon, Own

_ROUNDING = 1e-9
_ROUNDS = 2000  # of the design of a phase
_TOLERANCE = 0.01  # relative, of that design
_EPSILON = 0.1  # what following a design may lose of it (Fiez et al., section 5)
_LEAST = 1e-10  # of the largest eigenvalue: directions below were not measured


def _free_means(name: str, problem: Problem, rng: np.random.Generator) -> Joint:
    """The belief that names the set; the algorithms here only use its sums of readings."""
    check_dense(name, problem)
    belief = cast("Joint", compose_joint(problem, rng=rng).belief)
    belief.can = FREE_MEANS
    return belief


def _sums(belief: Joint) -> tuple[Array, Array]:
    """M and b of the normal equations M theta = b."""
    evidence, every = belief.likelihood.evidence, np.arange(belief.problem.size)
    return evidence.rows(every)[:, every], evidence.linear[every]


class LinGapE(Chooser):
    """Xu, Honda & Sugiyama 2018, Algorithm 1, for the n best of K (Reda, Kaufmann & Delahaye-Duriez 2021).

    The best set by regularised least squares; the comparison of a member with an outsider whose upper confidence bound,
    theta_j - theta_i + C |y|, |y|^2 = y'A^-1 y, is largest; then the action that shrinks |y| most (the greedy rule of
    the article). In white noise that is x proportional to (A + I)^-1 y. The other rule there, the least |w|_1 with
    y = sum of w_x x, is one action where all weights are allowed, y itself: the plain difference of the two streams.
    Cancelling the noise by other streams, as the pair design does, takes means that are known.

    C = sqrt(log(det A / det A_0) + 2 log(1 / alpha)) + sqrt(ridge) |theta|; the ridge is such that the last term is 1.
    """

    def __init__(self, problem: Problem, alpha: float) -> None:
        self._problem, self._n, self._log_alpha = problem, problem.known_number, math.log(alpha)
        inverse = problem.covariance.solve(np.diag(problem.shift))
        gram = problem.shift[:, None] * inverse  # |theta_A|^2 of a set is a sum of its entries
        largest = np.sort(np.sqrt(gram.diagonal()))[-self._n :].sum() ** 2
        self._prior = 0.5 * (gram + gram.T) / min(largest, self._n * float(np.linalg.eigvalsh(gram)[-1]))
        self._log_det = float(np.linalg.slogdet(self._prior)[1])
        self._noise = problem.covariance.dense() / np.outer(problem.shift, problem.shift)

    def choose(self, view: View) -> Choice:
        problem = self._problem
        if view.available is not None and view.ranking.challenger < 0:
            return Choice(alone(problem, view.ranking.champion))
        i, j = self._select(view)
        y = np.zeros(problem.size)
        y[i], y[j] = 1.0, -1.0
        A = _sums(cast("Joint", view.belief))[0] + self._prior
        h = np.linalg.solve(A @ self._noise + np.eye(problem.size), y)
        contrast = problem.shift * (self._noise @ h)
        return Choice(measurement_of(problem, contrast, view.available), (i, j))

    def _select(self, view: View) -> tuple[int, int]:
        """The comparison in most doubt, of streams that can be measured."""
        members, bounds = self.bounds(cast("Joint", view.belief), view.rank)
        if view.available is not None:
            able = view.available
            bounds = np.where(able[members][:, None] & able, bounds, -np.inf)
        top = bounds.max()
        if top == -np.inf:
            return view.ranking.champion, view.ranking.challenger
        at, others = np.nonzero(bounds >= top - _ROUNDING * abs(top))
        order = view.rank.order
        first = np.lexsort((order[members[at]], order[others]))[0]
        return int(members[at[first]]), int(others[first])

    def bounds(self, belief: Joint, rank: Ranker) -> tuple[Index, Array]:
        """The best set and the upper confidence bounds of theta_j - theta_i, (n, K); -inf where j is in the set."""
        M, b = _sums(belief)
        A = M + self._prior
        factor = cho_factor(A, lower=True)
        theta, inverse = cho_solve(factor, b), cho_solve(factor, np.eye(len(A)))
        members = rank(theta, self._n).members
        gained = 2.0 * float(np.log(np.diag(factor[0])).sum()) - self._log_det
        width = math.sqrt(max(gained - 2.0 * self._log_alpha, 0.0)) + 1.0
        spread = inverse.diagonal()[members][:, None] + inverse.diagonal() - 2.0 * inverse[members]
        bounds = theta - theta[members][:, None] + width * np.sqrt(np.maximum(spread, 0.0))
        bounds[:, members] = -np.inf
        return members, bounds

    def is_over(self, belief: Joint, n_readings: int) -> bool:
        """Is no outsider's upper confidence bound above a member, and the set the one that is named?"""
        if not n_readings:
            return False
        members, bounds = self.bounds(belief, Ranker(np.arange(belief.problem.size)))
        return bool(bounds.max() <= 0.0) and np.array_equal(np.sort(members), belief.map_set)


def compose_lingape(problem: Problem, *, alpha: float, rng: np.random.Generator) -> Parts:
    belief, search = _free_means("lingape", problem, rng), LinGapE(problem, alpha)
    return Parts(belief, search, Own(partial(search.is_over, belief)))


class Rage(Chooser):
    """Fiez, Jain, Jamieson & Ratliff 2019, Algorithm 1: phases of a fixed design, each twice as exact as the last.

    Phase t measures the differences Y of all streams still undecided to 2^-(t+2) shifts with probability 1 - alpha_t,

        N = ceil(8 (2^(t+1))^2 rho (1 + epsilon) log(|Y| / alpha_t)),  rho = min over W of max over Y of y'W^-1 y,

    alpha_t = 6 alpha / (pi t)^2, by the design of rho, and estimates theta from its own readings alone. A set is
    eliminated when another one is better by that much. The program that the authors published with the article differs:
    its phases are a sixteenth as long, 2^(t-1) in the place of 2^(t+1), with log(2 K^2 / alpha_t) and alpha_t = alpha /
    t^2, and a set is eliminated as soon as another is better by sqrt(2 y'A^-1 y log(2 K^2 / alpha_t)).

    Sets are not listed: a member of the best set stays undecided while a surviving set lacks it, another stream while
    one has it. Following the design by tracking takes the place of rounding it.

    phases: "program" or "article".
    """

    FIELDS = (
        Field("phase", (), int, low=1, high=64),
        Field("_passed", (), int, high="t"),
        Field("accepted", ("K",), bool),
        Field("undecided", ("K",), bool),
        *(Field(f"_{name}_before", shape) for name, shape in (("V", ("K", "K")), ("M", ("K", "K")), ("b", ("K",)))),
    )

    def __init__(self, belief: Joint, rng: np.random.Generator, alpha: float, phases: str) -> None:
        K, self._as_article = belief.problem.size, phases == "article"
        self.belief, self.white = belief, WhiteNoise(belief.problem, rng)
        self._units = self.white.root.T / belief.problem.shift  # column k: e_k in white noise
        self._alpha = alpha
        self.accepted, self.undecided = np.zeros(K, dtype=bool), np.ones(K, dtype=bool)
        self.phase, self._passed = 0, 0
        self._begin()

    @property
    def readings(self) -> int:
        """That this phase takes."""
        return self._needed

    def choose(self, view: View) -> Choice:
        V = self.white.information(cast("Joint", view.belief)) - self._V_before
        goal = (self._passed + len(view.pending) + 1) * self._design
        return self.white.most_lacking(goal - V, view)

    def record(self, c: Array) -> None:  # noqa: ARG002
        self._passed += 1
        if self._passed >= self._needed and self.undecided.any():
            self._eliminate()
            self._begin()

    def is_over(self, n_readings: int) -> bool:
        """Is one set left, and is it the one that is named?"""
        left = n_readings and not self.undecided.any()
        return bool(left) and np.array_equal(np.flatnonzero(self.accepted), self.belief.map_set)

    def _begin(self) -> None:
        """The next phase, whose least squares know nothing of what was read before."""
        M, b = _sums(self.belief)
        self.phase, self._passed = self.phase + 1, 0
        self._V_before, self._M_before, self._b_before = self.white.information(self.belief), M.copy(), b.copy()
        self._plan()

    def _plan(self) -> None:
        streams = np.flatnonzero(self.undecided if self.undecided.any() else np.ones_like(self.undecided))
        self._design, rho = comparing_design(self._units[:, streams])
        K, d, doubling = len(self.undecided), streams.size, self.phase + (1 if self._as_article else -1)
        if self._as_article:
            self._doubt = math.log(d * (d - 1) * (math.pi * self.phase) ** 2 / (6.0 * self._alpha))
            least = K * (K + 1) / 2 + 1
        else:
            self._doubt, least = math.log(2.0 * K**2 * self.phase**2 / self._alpha), 2.0 * K
        wanted = 8.0 * 4.0**doubling * rho * (1.0 + _EPSILON) * self._doubt
        self._needed = math.ceil(max(wanted, least / _EPSILON))

    def _eliminate(self) -> None:
        M, b = _sums(self.belief)
        theta, inverse = _least_squares(M - self._M_before, b - self._b_before)
        streams = np.flatnonzero(self.undecided)
        wanted = self.belief.problem.known_number - int(self.accepted.sum())
        order = streams[np.argsort(-theta[streams], kind="stable")]
        inside, outside = order[:wanted], order[wanted:]
        spread = (
            inverse.diagonal()[inside][:, None] + inverse.diagonal()[outside] - 2.0 * inverse[np.ix_(inside, outside)]
        )
        exact = 2.0 ** -(self.phase + 2) if self._as_article else np.sqrt(2.0 * np.maximum(spread, 0.0) * self._doubt)
        better = theta[inside][:, None] - theta[outside] >= exact
        sure, gone = inside[better.all(axis=1)], outside[better.all(axis=0)]
        self.accepted[sure] = True
        self.undecided[sure] = self.undecided[gone] = False
        left = self.belief.problem.known_number - int(self.accepted.sum())
        if left in (0, int(self.undecided.sum())):  # what is left is decided by number
            self.accepted |= self.undecided if left else False
            self.undecided[:] = False

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        wanted = self.belief.problem.known_number - int(self.accepted.sum())
        left = int(self.undecided.sum())
        possible = 0 < wanted < left or wanted == left == 0
        if not possible or (self.accepted & self.undecided).any():
            raise ValueError("its phase is damaged: it cannot have accepted these streams")
        self._plan()


class Halving(Rage):
    """Yang & Tan 2022, Algorithm 1 (OD-LinBAI), for the n best of K: a budget in equal phases, each halves the streams.

    Phase r measures the streams that are left by the best design for their differences, estimates theta from its own
    readings alone, and keeps the max(n, ceil(K / 2^r)) largest.
    """

    def __init__(self, belief: Joint, rng: np.random.Generator, total: int) -> None:
        self.total = total
        super().__init__(belief, rng, alpha=1.0, phases="program")

    def _plan(self) -> None:
        K, n = len(self.undecided), self.belief.problem.known_number
        streams = np.flatnonzero(self.undecided if self.undecided.any() else np.ones_like(self.undecided))
        self._design, _ = comparing_design(self._units[:, streams])
        self._needed = max(self.total // math.ceil(math.log2(K / n)), 1)

    def _eliminate(self) -> None:
        M, b = _sums(self.belief)
        theta, _ = _least_squares(M - self._M_before, b - self._b_before)
        streams, n = np.flatnonzero(self.undecided), self.belief.problem.known_number
        left = max(n, math.ceil(self.undecided.size / 2**self.phase))
        self.undecided[streams[np.argsort(-theta[streams], kind="stable")[left:]]] = False
        if left == n:
            self.accepted, self.undecided = self.undecided, np.zeros_like(self.undecided)


def comparing_design(units: Array) -> tuple[Array, float]:
    """The design W of least max over pairs y of y'W^-1 y, and that value; units: the streams in white noise, (K, m).

    For weights p of the pairs, Q = sum p y y', the best design is Q^1/2 / tr Q^1/2, with (tr Q^1/2)^2 the weighted mean
    of y'W^-1 y: a lower bound of the value. The weights are multiplied by what their pair has until the largest is
    near the bound.
    """
    m = units.shape[1]
    p = (1.0 - np.eye(m)) / (m * (m - 1))
    best, value = np.empty(0), math.inf
    for _ in range(_ROUNDS):
        laplacian = np.diag(p.sum(axis=1)) - p
        values, vectors = np.linalg.eigh(units @ (2.0 * laplacian) @ units.T)
        roots = np.sqrt(np.where(values > _LEAST * values[-1], values, 0.0))
        used, trace = roots > 0.0, float(roots.sum())
        seen = vectors[:, used].T @ units
        gram = trace * (seen.T / roots[used]) @ seen
        spread = gram.diagonal()[:, None] + gram.diagonal() - 2.0 * gram
        if spread.max() < value:
            best, value = (vectors * (roots / trace)) @ vectors.T, float(spread.max())
        if value <= (1.0 + _TOLERANCE) * trace**2:
            break
        p *= spread
        p /= p.sum()
    return 0.5 * (best + best.T), value


def _least_squares(M: Array, b: Array) -> tuple[Array, Array]:
    """M^+ b and M^+: what was not measured is 0."""
    values, vectors = np.linalg.eigh(M)
    used = values > _LEAST * values[-1]
    inverse = (vectors[:, used] / values[used]) @ vectors[:, used].T
    return np.asarray(inverse @ b), np.asarray(inverse)


def compose_rage(problem: Problem, *, alpha: float, rng: np.random.Generator, phases: str = "program") -> Parts:
    """RAGE; phases: as long as in the authors' "program" or in the "article"."""
    if phases not in ("program", "article"):
        raise unknown(phases, ("program", "article"), "phases")
    belief = _free_means("rage", problem, rng)
    search = Rage(belief, rng, alpha, phases)
    return Parts(belief, search, Own(search.is_over))


def compose_od_linbai(problem: Problem, *, rng: np.random.Generator, readings: int | None = None) -> Parts:
    """OD-LinBAI; readings: the budget, 4 K if none is given."""
    total = 4 * problem.size if readings is None else as_count(readings, "readings", least=1)
    belief = _free_means("od-linbai", problem, rng)
    return Parts(belief, Halving(belief, rng, total), Horizon(total))
