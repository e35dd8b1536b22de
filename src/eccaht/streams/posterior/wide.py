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

from eccaht.base.arrays import Array, Index, whole_numbers
from eccaht.base.extras import one_thread
from eccaht.base.files import part_of
from eccaht.streams.posterior.confidence import advantage, close_rivals
from eccaht.streams.posterior.gibbs import Neighbourhood, climb, finite_exp, neighbourhood
from eccaht.streams.posterior.likelihood import Likelihood, likelihood_of
from eccaht.streams.posterior.population import MOST_DISAGREEMENT, Population
from eccaht.streams.posterior.propagation import Propagation
from eccaht.streams.posterior.protocol import Capabilities, Confidence, Posterior
from eccaht.streams.sets import Hypotheses, Moments, SetPrior

NARROW = 3.0  # nats of doubt below which sets are looked at
_DRAWN = 4  # sets drawn from the marginals that climb after each reading
_SPREAD, _BOTH, _SETS = range(3)  # marginals only; marginals and sets; sets only, after readings that are no sums
_LISTED = 64  # streams of a shortlist
_SURE = 4.0  # nats: a member is certain if each of its changes costs so much
_FARTHEST = 30.0  # log-odds
_STRIPE = 64  # rows of a table of pairs worked on at once


class Wide(Posterior):
    """Expectation propagation first, a population of sets later; of known shifts and a known number of anomalies."""

    can = Capabilities(whole_vectors=True, posterior=True, exact_lead=True)

    def __init__(self, likelihood: Likelihood, prior: SetPrior, rng: np.random.Generator) -> None:
        self._likelihood, self._prior, self._rng = likelihood, prior, rng
        self.marginal, self.population = Propagation(prior), Population(likelihood, prior, rng)
        self._best = prior.random_sets(rng, 1)
        self._stage = _SPREAD
        self._seed = int(rng.integers(2**32))  # of the shortlist, which is made anew after each whole vector
        self._near: Shortlist | None = None
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
            self._look_at_sets()
            return
        for h, r in newest:
            self.marginal.add(h[:-1], r)
        self._climb()
        if self._stage == _SPREAD and self._doubt() < NARROW:
            self._stage = _BOTH
            self.population.sets[:] = self._drawn(len(self.population.sets))
        if self._stage == _BOTH:
            self.population.update()

    def _look_at_sets(self) -> None:
        evidence = self._likelihood.evidence
        if evidence.has_matrix:
            self.population.update()
        else:
            rng = np.random.default_rng([self._seed, evidence.n_readings])
            self._near = Shortlist(self._likelihood, self._prior, self._best, rng)
            self._best = self._near.best[None]

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

    @property
    def _of_sets(self) -> Population | Shortlist:
        """What knows the posterior of sets, once they are looked at."""
        return self._near or self.population

    def candidates(self) -> Index:
        """The best set found so far, that of the largest marginals, and the population once there is one."""
        found = [] if self._stage == _SETS else [self._best, self._likeliest()]
        return np.vstack(found if self._stage == _SPREAD else [*found, self._of_sets.candidates()])

    def marginals(self) -> Array | None:
        return self.marginal.marginals if self._stage == _SPREAD else self._of_sets.marginals()

    def in_doubt(self, around: Neighbourhood) -> Hypotheses:
        if self._stage == _SPREAD:
            return around.hypotheses(self._likelihood, self._rng)
        return self._of_sets.in_doubt(around)

    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence | None:
        """That of the sets; before they are looked at, at most that of the least probable member."""
        if self._stage == _SPREAD:
            least = float(self.marginal.marginals[around.members].min())
            return Confidence(min(least, 1.0 / (1.0 + around.weight)), "unsettled")
        return self._of_sets.confidence(around, needed)

    def advantage(self, around: Neighbourhood, needed: float = -math.inf) -> float:
        return -math.inf if self._stage == _SPREAD else self._of_sets.advantage(around, needed)

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

    def state(self) -> dict[str, Array]:
        kept = {f"population.{name}": array for name, array in self.population.state().items()}
        kept |= {f"marginal.{name}": array for name, array in self.marginal.state().items()}
        return kept | {"best": self._best.astype(float), "stage": np.array([float(self._stage), float(self._seed)])}

    def restore(self, state: dict[str, Array]) -> None:
        evidence = self._likelihood.evidence
        marginal = part_of(state, "marginal")
        self.population.restore(part_of(state, "population"))
        self._stage = int(whole_numbers(state["stage"][:1], "stages", most=_SETS)[0])
        self._seed = int(whole_numbers(state["stage"][1:], "seeds", most=2**32 - 1)[0])
        if len(state["best"]) != 1 or (self._stage == _SETS and len(marginal["rows"])):
            raise ValueError("its marginals are damaged")
        self._best, self._last = self._prior.checked(state["best"]), None
        if self._stage != _SETS:
            self.marginal.restore(marginal, evidence.linear[:-1], evidence.half_diagonal[:-1])
        elif not evidence.has_matrix:
            self._look_at_sets()


class Shortlist:
    """The posterior of very many streams after whole vectors: a population of sets of the few streams that matter.

    A complete vector reads all streams at once, so that few are left in doubt and all others have a small share each.
    The streams that a single change of the best set brings in at the least cost make the shortlist. Among sets of
    these the posterior is worked out as for any small problem; the probability of all sets that one change brings in
    from outside is known exactly and lowers the confidence.
    """

    def __init__(self, likelihood: Likelihood, prior: SetPrior, start: Index, rng: np.random.Generator) -> None:
        self._likelihood, self._prior = likelihood, prior
        evidence = likelihood.evidence
        alone = np.argsort((evidence.half_diagonal - evidence.linear)[:-1], kind="stable")[: prior.most]
        sets = np.vstack([start, alone])
        climb(likelihood, prior, sets)
        best = sets[likelihood.log_likelihood(sets).argmax()]
        self.best, self._around = best, neighbourhood(likelihood, prior, best)
        ease = self._around.change[:, :-1].max(axis=0)
        ease[best] = np.inf
        count = min(max(_LISTED, 4 * prior.most), prior.n_streams)
        listed = np.argpartition(-ease, count - 1)[:count] if count < ease.size else np.arange(ease.size)
        self.streams: Index = np.append(np.sort(listed), prior.n_streams)
        self._inner = likelihood_of(evidence.restricted(self.streams[:-1]))
        self._inner_prior = SetPrior(count, prior.least, prior.most)
        self._population = Population(self._inner, self._inner_prior, rng)
        self._population.sets[0] = np.searchsorted(self.streams, best)
        self._population.update()

    def candidates(self) -> Index:
        return self.streams[self._population.candidates()]

    def marginals(self) -> Array:
        """Posterior probability of each stream; of one that is not listed, that of its single changes."""
        members, slots, change = self._around
        brought = finite_exp(change[:, :-1]) / (1.0 + self._around.weight)
        brought[:, self.streams[:-1]] = 0.0
        found, share = brought.sum(axis=0), float(brought.sum())
        found[self.streams[:-1]] = (1.0 - share) * self._population.marginals()
        found[members[slots]] += share - brought.sum(axis=1)  # those that stay
        return np.asarray(found)

    def in_doubt(self, around: Neighbourhood) -> Hypotheses:
        found = self._population.in_doubt(self._inside(around))
        return found._replace(rest=self.streams[found.rest], stream=self.streams[found.stream])

    def confidence(self, around: Neighbourhood, needed: float) -> Confidence:
        """That among sets of listed streams, less the share of all single changes that bring in others."""
        if not np.isin(around.members, self.streams).all():
            return Confidence(0.0, "unsettled")
        inner = self._population.confidence(self._inside(around), needed)
        outside = self._weight_outside(around)
        many = outside > MOST_DISAGREEMENT * (1.0 + around.weight)  # then sets with several of them matter as well
        return Confidence(inner.probability / (1.0 + inner.probability * outside), "unsettled" if many else inner.how)

    def advantage(self, around: Neighbourhood, needed: float = -math.inf) -> float:  # noqa: ARG002
        """Over all rivals that were found, and the best ones one and two changes away."""
        near = close_rivals(self._likelihood, self._prior, around)
        found = self.streams[np.vstack([self._population.sets, self._population._found])]
        others = self._prior.others(self._prior.distinct(found)[0], around.members)
        least = advantage(self._likelihood, self._prior, around.members, np.vstack([near, others]))
        return least if math.isfinite(least) else -math.inf

    def _inside(self, around: Neighbourhood) -> Neighbourhood:
        return neighbourhood(self._inner, self._inner_prior, np.searchsorted(self.streams, around.members))

    def _weight_outside(self, around: Neighbourhood) -> float:
        """The probability of all sets that one change brings in from outside, over that of the set."""
        changes = finite_exp(around.change)
        return float(changes.sum() - changes[:, self.streams].sum())


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
