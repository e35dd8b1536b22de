"""The posterior of very many streams: marginals while it is spread out, sets once it has narrowed.

No few dozen sets stand for a posterior over ten of a thousand streams: a measurement designed for them tells the
guesses apart, not the streams. While much is in doubt the measurement is therefore designed for the marginals and the
covariance of all streams (`Propagation`). These are approximate, and no search ends by them: once little is
left in doubt a population of sets takes over, and with it everything that is reported about confidence.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
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
_SURE = 4.0  # nats: a member is certain if each of its changes costs so much
_FARTHEST = 30.0  # log-odds
_STRIPE = 64  # rows of a table of pairs worked on at once


class Spread(Posterior):
    """Marginals by expectation propagation and the best set that climbs from them, as long as all readings are sums.

    over: were there readings that are none, of which it knows nothing?
    """

    FIELDS = (Part("marginal"), Field("_best", (1, "n"), int, high="K-1"), Field("over", (), bool))

    def __init__(self, likelihood: Likelihood, prior: SetPrior, rng: np.random.Generator) -> None:
        self._likelihood, self._prior, self._rng = likelihood, prior, rng
        self.marginal, self._best, self.over = Propagation(prior), prior.random_sets(rng, 1), False
        self._last: Moments | None = None  # those of the present readings, once asked for

    def update(self) -> None:
        """Take the readings, and improve the best set, that of the largest marginals and a few drawn ones."""
        evidence = self._likelihood.evidence
        newest = evidence.newest or []
        if not newest or evidence.n_readings != self.marginal.n_readings + len(newest):
            self.over, self.marginal = True, Propagation(self._prior)
        if self.over:
            return
        for h, r in newest:
            self.marginal.add(h[:-1], r)
        sets = np.vstack([self.candidates(), self.drawn(_DRAWN)])
        climb(self._likelihood, self._prior, sets)
        self._best, self._last = sets[[self._likelihood.log_likelihood(sets).argmax()]], None

    def candidates(self) -> Index:
        """The best set found so far and that of the largest marginals."""
        likeliest = np.argsort(-self.marginal.log_odds, kind="stable")[: self._prior.most]
        return np.vstack([self._best, likeliest])

    def drawn(self, count: int) -> Index:
        """Sets in proportion to the odds of their streams: the largest of log-odds plus Gumbel noise."""
        noisy = self.marginal.log_odds + self._rng.gumbel(size=(count, self._prior.n_streams))
        return np.argpartition(-noisy, self._prior.most - 1, axis=1)[:, : self._prior.most]

    def moments(self) -> Moments:
        """Those of the last one or two members where the others are certain, else those of the marginals."""
        if self._last is None:
            around = neighbourhood(self._likelihood, self._prior, self._best[0])
            self._last = last_members(self._likelihood, around) or self.marginal.moments()
        return self._last

    def doubt(self) -> float:
        """The entropy of all streams as if they were independent, in nats."""
        log_odds = self.moments().log_odds
        p, q = expit(log_odds), expit(-log_odds)
        return float(-(p * np.log(p) + q * np.log(q)).sum())

    def marginals(self) -> Array:
        return self.marginal.marginals

    def in_doubt(self, around: Neighbourhood) -> Hypotheses:
        return around.hypotheses(self._likelihood, self._rng)

    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence:  # noqa: ARG002
        """At most that of the least probable member."""
        least = float(self.marginal.marginals[around.members].min())
        return Confidence(min(least, 1.0 / (1.0 + around.weight)), "unsettled")

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        evidence = self._likelihood.evidence
        self._prior.check(self._best)
        self._last = None
        if not self.over:
            self.marginal.check_agrees(evidence.linear[:-1], evidence.half_diagonal[:-1])
        elif len(self.marginal.rows):
            raise ValueError("its marginals are damaged: they are no longer used")


class Wide(Posterior):
    """`Spread` first, a population of sets later; of known shifts and a known number of anomalies."""

    can = Capabilities(whole_vectors=True, posterior=True, exact_lead=True)
    FIELDS = (Part("population"), Part("spread"), Field("_narrow", (), bool))

    def __init__(self, likelihood: Likelihood, prior: SetPrior, rng: np.random.Generator) -> None:
        self.spread, self.population = Spread(likelihood, prior, rng), Population(likelihood, prior, rng)
        self._narrow = False  # was so little in doubt that sets were drawn?

    def update(self) -> None:
        with one_thread():  # many small products: a second thread doubles the time of late steps
            self.spread.update()
            if not self._by_sets and self.spread.doubt() < NARROW:
                self._narrow = True
                self.population.sets[:] = self.spread.drawn(len(self.population.sets))
            if self._by_sets:
                self.population.update()

    def moments(self) -> Moments | None:
        """Those of all streams, while much is in doubt."""
        settled = self.spread.over or (self._narrow and self.spread.doubt() < NARROW)
        return None if settled else self.spread.moments()

    def candidates(self) -> Index:
        parts = [self.spread] * (not self.spread.over) + [self.population] * self._by_sets
        return np.vstack([part.candidates() for part in parts])

    @property
    def _by_sets(self) -> bool:
        return self._narrow or self.spread.over

    @property
    def _reported(self) -> Posterior:
        return self.population if self._by_sets else self.spread

    def marginals(self) -> Array | None:
        return self._reported.marginals()

    def in_doubt(self, around: Neighbourhood) -> Hypotheses:
        return self._reported.in_doubt(around)

    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence | None:
        return self._reported.confidence(around, needed)

    def advantage(self, around: Neighbourhood, needed: float = -math.inf) -> float:
        return self._reported.advantage(around, needed)


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
        return _moments(softmax(alone), None)  # one stream more adds a_k to the log-likelihood
    both = _both(alone, evidence.matrix[:K, :K])
    return _moments(np.clip(both.sum(axis=1, dtype=float), 0.0, 1.0), both)


def _both(alone: Array, coupling: Array) -> NDArray[np.float32]:
    """The probability of every two streams more, which add a_k + a_l - M_kl, (K, K)."""
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
    height *= np.float32(2.0 / height.sum(dtype=float))
    return height


def _moments(chance: Array, both: NDArray[np.float32] | None) -> Moments:
    """Those of streams of these probabilities; both: that of every two of them, if more than one is there."""

    def times_covariance(u: Array) -> Array:
        apart = chance * u - chance * (chance @ u)
        return apart if both is None else np.asarray(both @ u.astype(np.float32) + apart)

    with np.errstate(divide="ignore"):
        log_odds = np.clip(np.log(chance) - np.log1p(-chance), -_FARTHEST, _FARTHEST)
    return Moments(log_odds, chance * (1.0 - chance), times_covariance)
