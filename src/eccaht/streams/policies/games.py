"""Three algorithms that approach the best design against all rivals: by solving for it, by one step a reading, by play.

All know the means of every set, name the most likely one, and follow their designs by `Tracking`. They differ in the
design of the next reading. Their stopping time over log(1/alpha) tends to 1 / Gamma*, the least of all searches.

Their own stopping rule is the generalised likelihood ratio of all three articles. The thresholds there pay for means
that are estimated; here all means are known, and Ville's inequality with a union over the sets is enough
(`UnionBound`).
"""

import math

import numpy as np
from scipy.special import logsumexp

from eccaht.base.arrays import Array, Index, as_number
from eccaht.base.codec import Field, Sizes
from eccaht.streams.limits.mixture import best_mix
from eccaht.streams.policies.parts import Parts, View
from eccaht.streams.policies.transductive import Tracking, sets_of
from eccaht.streams.posterior import Joint
from eccaht.streams.problem import Problem
from eccaht.streams.stopping import UnionBound

_KEPT = 64  # best designs
_RADIUS = -0.9  # exponent of the width within which rivals count as nearest (Wang et al., section 5)
_TOLERANCE = 1e-3
_MOST = 400  # nearest rivals of which a direction is worked out
_ROUNDING = 1e-6


class TrackAndStop(Tracking):
    """Jedra & Proutiere 2020, Algorithm 1: track the best design of the leading set, worked out now and then.

    Forced exploration as there: while lambda_min(V) < sqrt(t / K) the direction measured least comes first, where the
    article goes round a basis. Lazy: the design of a new leader is only taken up once there are `lazy` times as many
    readings as when it last was, and first after K; at lazy = 1 at once.
    """

    FIELDS = (
        *Tracking.FIELDS,
        Field("_count", (), int, high="t"),
        Field("_due"),
        Field("_solved", (), int, low=-1),
    )

    def __init__(self, belief: Joint, rng: np.random.Generator, exploration: float, lazy: float) -> None:
        super().__init__(belief, rng)
        self._exploration, self._lazy = exploration, lazy
        self._first = 1.0 if lazy == 1.0 else float(belief.problem.size)
        self._count, self._due, self._solved = 0, self._first, -1
        self._designs: dict[int, Array] = {}  # a cache, by leader

    def deficit(self, V: Array, view: View) -> Array:
        t = view.n_readings + len(view.pending)
        if np.linalg.eigvalsh(V)[0] < self._exploration * math.sqrt(t / len(V)):
            return -V
        return super().deficit(V, view)

    def design(self, leader: int) -> Array:
        self._count += 1
        if self._count < self._due or leader == self._solved:
            return self.latest
        self._due, self._solved = self._lazy * self._count, leader
        if leader not in self._designs:
            if len(self._designs) >= _KEPT:
                self._designs.clear()
            self._designs[leader] = self.alternatives.best_design(leader)
        return self._designs[leader]

    def check_restored(self, sizes: Sizes) -> None:
        super().check_restored(sizes)
        if not self._first <= self._due <= max(self._first, self._lazy * self._count):
            raise ValueError("its next design is due at an impossible time")


class FrankWolfe(Tracking):
    """Wang, Tzeng & Proutiere 2021, Algorithm 1: one step of Frank and Wolfe towards the best design, a reading.

    The objective is min over rivals of d'W d / 2. The step goes to the design that is best against the rivals within r
    of the nearest one at the mean of all designs so far, r = t^-0.9 / K in units of the most that the nearest rival can
    show. Forced exploration as there: the design I / K where sqrt(floor(t / K)) is a whole number.
    """

    FIELDS = (*Tracking.FIELDS, Field("_steps", (), int, low=1, high="t+1"))

    def __init__(self, belief: Joint, rng: np.random.Generator, *, exploration: bool) -> None:
        super().__init__(belief, rng)
        self._exploration, self._steps = exploration, 1

    def design(self, leader: int) -> Array:
        K, t = len(self.goal), self._steps
        self._steps += 1
        if self._exploration and math.isqrt(t // K) ** 2 == t // K:
            return np.eye(K) / K
        nats = self.alternatives.nats(self.goal / t, leader)
        most = 0.5 * float((self.alternatives.differences(np.array([nats.argmin()]), leader) ** 2).sum())
        near = np.flatnonzero(nats <= nats.min() + most * t**_RADIUS / K)
        near = near[np.argsort(nats[near], kind="stable")[:_MOST]]
        d = self.alternatives.differences(near, leader)
        if near.size == 1:
            return np.asarray(d @ d.T / float((d**2).sum()))
        return best_mix(d, _TOLERANCE).W


class LinGame(Tracking):
    """Degenne, Menard, Shang & Valko 2020, LinGame: a learner of designs plays against the nearest rival.

    The learner of the article that plays by gains, AdaHedge, is here its version for matrices, W proportional to
    exp(eta H), H the sum of the gains d d' / 2 so far and eta = log K / (sum of mixability gaps). One learner for each
    leading set. Gains need no optimism: given the leader all means are known, and a design that refutes all rivals of a
    wrong leader refutes that leader.
    """

    FIELDS = (
        *Tracking.FIELDS,
        Field("_leaders", ("m",), int),
        Field("_gaps", ("m",), low=0.0),
        Field("_gains", ("m", "K", "K")),
    )

    def __init__(self, belief: Joint, rng: np.random.Generator) -> None:
        super().__init__(belief, rng)
        K = len(self.goal)
        self._leaders: Index = np.zeros(0, dtype=np.intp)  # those that have a learner
        self._gaps, self._gains = np.zeros(0), np.zeros((0, K, K))  # of each: the sum of its mixability gaps, and H

    def design(self, leader: int) -> Array:
        """Play the learner's design, see the nearest rival, and learn for the next time."""
        if leader not in self._leaders:
            self._leaders, self._gaps = np.append(self._leaders, leader), np.append(self._gaps, 0.0)
            self._gains = np.concatenate([self._gains, np.zeros((1, *self.goal.shape))])
        place = int(np.flatnonzero(self._leaders == leader)[0])
        H = self._gains[place]
        W, eta = _played(float(self._gaps[place]), H)
        nearest = np.array([self.alternatives.nats(W, leader).argmin()])
        d = self.alternatives.differences(nearest, leader)[:, 0]
        gain = 0.5 * np.outer(d, d)
        self._gaps[place] += _mixability_gap(eta, W, H, gain)
        self._gains[place] += gain
        return W


def _played(gaps: float, H: Array) -> tuple[Array, float]:
    """The design exp(eta H) of trace 1 and its learning rate; the leading eigenspace where the rate has no bound."""
    K = len(H)
    values, vectors = np.linalg.eigh(H)
    if gaps > 0.0:
        eta = math.log(max(K, 2)) / gaps
        weights = np.exp(eta * (values - values[-1]))
    else:
        eta = math.inf
        weights = (values >= values[-1] - _ROUNDING * max(abs(float(values[-1])), 1e-300)).astype(float)
    W = (vectors * (weights / weights.sum())) @ vectors.T
    return 0.5 * (W + W.T), eta


def _mixability_gap(eta: float, W: Array, H: Array, gain: Array) -> float:
    """What the mix gains on the learner: log tr exp(eta (H + g)) - log tr exp(eta H), over eta, less tr(W g)."""
    before, after = np.linalg.eigvalsh(H), np.linalg.eigvalsh(H + gain)
    if math.isinf(eta):
        mixed = float(after[-1] - before[-1])
    else:
        mixed = float(logsumexp(eta * after) - logsumexp(eta * before)) / eta
    return max(mixed - float((W * gain).sum()), 0.0)


def compose_track_and_stop(
    problem: Problem, *, alpha: float, rng: np.random.Generator, exploration: float = 1.0, lazy: float = 1.1
) -> Parts:
    """Track-and-Stop.

    exploration: how much of the article's forced exploration, 0 for none.
    lazy: the design is renewed when there are so many times as many readings; 1 for whenever the leader changes.
    """
    amount, rarely = as_number(exploration, "exploration"), as_number(lazy, "lazy")
    if not 0.0 <= amount <= 10.0:
        raise ValueError(f"exploration is a factor from 0 to 10, not {exploration!r}")
    if not 1.0 <= rarely <= 10.0:
        raise ValueError(f"lazy is a factor from 1 to 10, not {lazy!r}")
    belief = sets_of("track-and-stop", problem, rng)
    return Parts(belief, TrackAndStop(belief, rng, amount, rarely), UnionBound(alpha, belief))


def compose_frank_wolfe(problem: Problem, *, alpha: float, rng: np.random.Generator, exploration: bool = True) -> Parts:
    """Frank-Wolfe sampling; exploration: whether to explore by force, as in the article."""
    if not isinstance(exploration, bool):
        raise ValueError(f"exploration is True or False, not {exploration!r}")
    belief = sets_of("frank-wolfe", problem, rng)
    return Parts(belief, FrankWolfe(belief, rng, exploration=exploration), UnionBound(alpha, belief))


def compose_lingame(problem: Problem, *, alpha: float, rng: np.random.Generator) -> Parts:
    belief = sets_of("lingame", problem, rng)
    return Parts(belief, LinGame(belief, rng), UnionBound(alpha, belief))
