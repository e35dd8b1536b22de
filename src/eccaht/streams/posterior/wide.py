"""The posterior of very many streams: marginals while it is spread out, sets once it has narrowed.

No few dozen sets stand for a posterior over ten of a thousand streams: a measurement designed for them tells the
guesses apart, not the streams. While much is in doubt the measurement is therefore designed for the marginals and the
covariance of all streams (`Propagation`). These are approximate, and no search ends by them: once little is
left in doubt a population of sets takes over, and with it everything that is reported about confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import expit, softmax

from eccaht.base.arrays import Array, Index
from eccaht.base.codec import Field, Part, Sizes
from eccaht.base.extras import one_thread
from eccaht.streams.posterior.gibbs import Neighbourhood, climb, neighbourhood
from eccaht.streams.posterior.likelihood import Likelihood
from eccaht.streams.posterior.population import Population
from eccaht.streams.posterior.propagation import Propagation
from eccaht.streams.posterior.protocol import Capabilities, Confidence, Posterior
from eccaht.streams.sets import Hypotheses, Moments, SetPrior

NARROW = 3.0  # nats of doubt below which sets are looked at
_DRAWN = 4  # sets drawn from the marginals that climb after each reading
_SPREAD, _BOTH, _SETS = range(3)  # marginals only; marginals and sets; sets only, after readings that are no sums
_SURE = 4.0  # nats: a member is certain if each of its changes costs so much
_FARTHEST = 30.0  # log-odds
_STRIPE = 64  # rows of a table of pairs worked on at once


class Wide(Posterior):
    """Expectation propagation first, a population of sets later; of known shifts and a known number of anomalies."""

    can = Capabilities(whole_vectors=True, posterior=True, exact_lead=True)
    FIELDS = (
        Part("population"),
        Part("marginal"),
        Field("_best", (1, "n"), int, high="K-1"),
        Field("_stage", (), int, high=_SETS),
    )

    def __init__(self, likelihood: Likelihood, prior: SetPrior, rng: np.random.Generator) -> None:
        self._likelihood, self._prior, self._rng = likelihood, prior, rng
        self.marginal, self.population = Propagation(prior), Population(likelihood, prior, rng)
        self._best = prior.random_sets(rng, 1)
        self._stage = _SPREAD
        self._last: Moments | None = None  # those of the present readings, once asked for

    def update(self) -> None:
        with one_thread():  # many small products: a second thread doubles the time of late steps
            self._update()

    def _update(self) -> None:
        evidence = self._likelihood.evidence
        newest = evidence.newest or []
        if self._stage != _SETS and (not newest or evidence.n_readings != len(self.marginal.rows) + len(newest)):
            self._stage, self.marginal = _SETS, Propagation(self._prior)
        if self._stage == _SETS:
            self.population.update()
            return
        for h, r in newest:
            self.marginal.add(h[:-1], r)
        self._climb()
        if self._stage == _SPREAD and self._doubt() < NARROW:
            self._stage = _BOTH
            self.population.sets[:] = self._drawn(len(self.population.sets))
        if self._stage == _BOTH:
            self.population.update()

    def moments(self) -> Moments | None:
        """Those of all streams, while much is in doubt."""
        if self._stage == _SETS or (self._stage == _BOTH and self._doubt() < NARROW):
            return None
        return self._moments()

    def _moments(self) -> Moments:
        """Those of the last one or two members where the others are certain, else those of the marginals."""
        if self._last is None:
            self._last = last_members(self._likelihood, self._around) or self.marginal.moments()
        return self._last

    def _doubt(self) -> float:
        """The entropy of all streams as if they were independent, in nats."""
        log_odds = self._moments().log_odds
        p, q = expit(log_odds), expit(-log_odds)
        return float(-(p * np.log(p) + q * np.log(q)).sum())

    @property
    def _around(self) -> Neighbourhood:
        return neighbourhood(self._likelihood, self._prior, self._best[0])

    def candidates(self) -> Index:
        """The best set found so far, that of the largest marginals, and the population once there is one."""
        found = [] if self._stage == _SETS else [self._best, self._likeliest()]
        return np.vstack(found if self._stage == _SPREAD else [*found, self.population.candidates()])

    def marginals(self) -> Array | None:
        return self.marginal.marginals if self._stage == _SPREAD else self.population.marginals()

    def in_doubt(self, around: Neighbourhood) -> Hypotheses:
        if self._stage == _SPREAD:
            return around.hypotheses(self._likelihood, self._rng)
        return self.population.in_doubt(around)

    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence | None:
        """That of the sets; before they are looked at, at most that of the least probable member."""
        if self._stage == _SPREAD:
            least = float(self.marginal.marginals[around.members].min())
            return Confidence(min(least, 1.0 / (1.0 + around.weight)), "unsettled")
        return self.population.confidence(around, needed)

    def advantage(self, around: Neighbourhood, needed: float = -math.inf) -> float:
        return -math.inf if self._stage == _SPREAD else self.population.advantage(around, needed)

    def _climb(self) -> None:
        """Improve the best set, that of the largest marginals and a few drawn ones, and keep the best of all."""
        sets = np.vstack([self._best, self._likeliest(), self._drawn(_DRAWN)])
        climb(self._likelihood, self._prior, sets)
        self._best, self._last = sets[[self._likelihood.log_likelihood(sets).argmax()]], None

    def _likeliest(self) -> Index:
        return np.argsort(-self.marginal.log_odds, kind="stable")[None, : self._prior.most]

    def _drawn(self, count: int) -> Index:
        """Sets in proportion to the odds of their streams: the largest of log-odds plus Gumbel noise."""
        noisy = self.marginal.log_odds + self._rng.gumbel(size=(count, self._prior.n_streams))
        return np.argpartition(-noisy, self._prior.most - 1, axis=1)[:, : self._prior.most]

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        evidence = self._likelihood.evidence
        self._prior.check(self._best)
        self._last = None
        if self._stage != _SETS:
            self.marginal.check_agrees(evidence.linear[:-1], evidence.half_diagonal[:-1])
        elif len(self.marginal.rows):
            raise ValueError("its marginals are damaged: they are no longer used")


def last_members(likelihood: Likelihood, around: Neighbourhood) -> Moments | None:
    """Moments of all streams if all but the one or two weakest members are certain; None if they are not.

    Every stream or pair that may fill their places is weighed exactly. Correlated noise is cancelled by weights of
    alternating signs; two anomalies side by side cancel each other in such readings: each alone looks improbable, and
    marginals miss them. Among all pairs the two are found like any other.
    """
    members, slots, change = around
    evidence, K = likelihood.evidence, likelihood.evidence.problem.size
    cost = -change.max(axis=1)
    weakest = np.argsort(cost, kind="stable")
    count = max(int((cost < _SURE).sum()), 1)
    if count > 2 or (count == 2 and not evidence.has_matrix):
        return None
    rest = members.copy()
    rest[slots[weakest[:count]]] = K
    alone = evidence.one_more(rest)[:K]
    alone[rest[rest < K]] = -np.inf
    if count == 1 or evidence.matrix is None:
        return _one(alone)
    return _two(alone, evidence.matrix[:K, :K])


def _one(alone: Array) -> Moments:
    """One stream more adds a_k to the log-likelihood."""
    chance = softmax(alone)
    return _moments(chance, lambda u: np.asarray(chance * u - chance * (chance @ u)))


def _two(alone: Array, coupling: Array) -> Moments:
    """Two more add a_k + a_l - M_kl."""
    height = np.empty(coupling.shape, dtype=np.float32)
    single, highest = alone.astype(np.float32)[:, None], -np.inf
    for start in range(0, alone.size, _STRIPE):  # what the processor's cache holds
        stripe = slice(start, start + _STRIPE)
        part = np.subtract(alone, coupling[stripe], out=height[stripe], casting="same_kind")
        part += single[stripe]
        np.fill_diagonal(part[:, start:], -np.inf)
        highest = max(highest, float(part.max()))
    for start in range(0, alone.size, _STRIPE):
        part = height[start : start + _STRIPE]
        part -= np.float32(highest)
        np.exp(part, out=part)
    both = height
    both *= np.float32(2.0 / both.sum(dtype=float))
    chance = np.clip(both.sum(axis=1, dtype=float), 0.0, 1.0)

    def times_covariance(u: Array) -> Array:
        return np.asarray(both @ u.astype(np.float32) + chance * u - chance * (chance @ u))

    return _moments(chance, times_covariance)


def _moments(chance: Array, times_covariance: Callable[[Array], Array]) -> Moments:
    with np.errstate(divide="ignore"):
        log_odds = np.clip(np.log(chance) - np.log1p(-chance), -_FARTHEST, _FARTHEST)
    return Moments(log_odds, chance * (1.0 - chance), times_covariance)
