"""Sets of streams drawn from their posterior: a population on a ladder of temperatures.

Readings with almost no noise make the posterior needle-sharp: a set that misses one member fits as badly as any other,
and no sequence of single changes leads to the right one. A flattened posterior, likelihood^beta, has such
paths (parallel tempering). So the population lives on levels beta = 1, q, q^2, ...; every level makes Gibbs sweeps,
and neighbouring levels exchange sets by the Metropolis rule, which keeps the coldest level at the posterior itself.
The ladder grows as the likelihood gets sharper.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eccaht.base.arrays import Array, Index, as_count
from eccaht.base.codec import Field, Sizes
from eccaht.streams.posterior.confidence import advantage, close_rivals, differences, estimate, share_away, share_of
from eccaht.streams.posterior.gibbs import (
    Neighbourhood,
    climb,
    conditional_hypotheses,
    conditionals,
    log_posterior,
    sweep,
)
from eccaht.streams.posterior.likelihood import Likelihood
from eccaht.streams.posterior.protocol import WHOLE_POSTERIOR, Confidence, Posterior
from eccaht.streams.posterior.survey import DRAWS, Survey, Vicinity, explore, survey
from eccaht.streams.sets import Hypotheses, SetPrior

_PROBES = 200  # random sets whose spread of log-likelihoods says how sharp the likelihood is
_NEGLIGIBLE = 1e-4  # probability of all but one set below which a level leaves nothing in doubt
_HOPELESS = 10.0  # nats by which a set must be worse than one just found to be replaced by it
_MOST_LEVELS = 64


@dataclass(frozen=True)
class Effort:
    """How much a population does: `posterior=partial(Population, effort=Effort(checkers=512))` of joint.

    cold, hot: sets on the coldest level and on each other. levels: at most. ratio: of their inverse temperatures.
    climbers, searchers: random sets that climb after each reading: usually, and if no set fits.
    checkers: independent searches that should find the MAP set again. draws: of each sample of a survey.
    """

    cold: int = 64
    hot: int = 24
    levels: int = 8
    ratio: float = 0.4
    climbers: int = 8
    searchers: int = 128
    checkers: int = 128
    draws: int = DRAWS

    def __post_init__(self) -> None:
        for name in ("cold", "hot", "levels", "climbers", "searchers", "checkers", "draws"):
            as_count(getattr(self, name), name, least=1)
        if not (self.hot <= self.cold and 2 <= self.levels <= _MOST_LEVELS and 0.0 < self.ratio < 1.0):
            raise ValueError(f"{self} needs hot up to cold, 2 to {_MOST_LEVELS} levels and a ratio between 0 and 1")


class Population(Posterior):
    """Rows of stream numbers, each on a level of the ladder."""

    can = WHOLE_POSTERIOR
    FIELDS = (
        Field("_probes", (_PROBES, "n"), int, high="K"),
        Field("sets", ("N", "n"), int, high="K"),
        Field("level", ("N",), int, high=_MOST_LEVELS - 1),
        Field("_check", (), int, high=2**32 - 1),
    )

    def __init__(
        self, likelihood: Likelihood, prior: SetPrior, rng: np.random.Generator, *, effort: Effort = Effort()
    ) -> None:
        self._likelihood, self._prior, self._rng, self._effort = likelihood, prior, rng, effort
        self._check = int(rng.integers(2**32))  # seed of the independent searches
        self._probes = prior.random_sets(rng, _PROBES)
        self.sets = prior.random_sets(rng, effort.cold + effort.hot)
        self.level: Index = np.repeat(np.arange(2), [effort.cold, effort.hot])
        self.recent = self.sets[self.level == 0]  # the coldest sets

    def update(self) -> None:
        self._extend_ladder()
        sweep(self._likelihood, self._prior, self.sets, np.power(self._effort.ratio, self.level), self._rng)
        fit = self._likelihood.log_likelihood(self.sets)
        self._exchange(fit)
        self._leap(fit)
        self.recent = self.sets[self.level == 0]
        self._forget()

    def _forget(self) -> None:
        """Drop cached values, which belong to fewer readings."""
        for name in ("_averages", "_found", "_vicinity", "_survey"):
            self.__dict__.pop(name, None)

    def candidates(self) -> Index:
        return self.recent

    def in_doubt(self, around: Neighbourhood) -> Hypotheses:
        """The coldest level that leaves a doubt: each set with the conditional distribution of one of its slots.

        Sets at most one change away from the MAP set are replaced by the exact distribution of those.
        """
        likelihood, prior = self._likelihood, self._prior
        away = self.recent[differences(prior, self.recent, around.members) > 1]
        share = share_away(likelihood, prior, away, len(self.recent), around)
        hypotheses = around.hypotheses(likelihood, self._rng)
        if len(away):
            further = self._hypotheses(away, 1.0)
            hypotheses = hypotheses.joined(further, 1.0 - share) if share < 1.0 else further
        level = 0
        while hypotheses.doubt(prior) < _NEGLIGIBLE and level + 1 < self.n_levels:
            level += 1
            hypotheses = self._hypotheses(self.sets[self.level == level], self._effort.ratio**level)
        return hypotheses

    def _hypotheses(self, sets: Index, beta: float) -> Hypotheses:
        slots = self._rng.integers(self._prior.most, size=len(sets))
        return conditional_hypotheses(self._likelihood, self._prior, sets, slots, beta, self._rng)

    def marginals(self) -> Array:
        return self._survey.marginals if self._likelihood.evidence.n_vectors else self._averages

    @cached_property
    def _averages(self) -> Array:
        """Marginals as averages over the coldest sets' conditional distributions."""
        sets, prior = self.recent, self._prior
        total = np.bincount(sets.ravel(), minlength=prior.n_streams + 1) * (prior.most - 1.0)
        for slot in range(prior.most):
            slots = np.full(len(sets), slot)
            chances = conditionals(self._likelihood, prior, sets, slots, np.ones(len(sets)))
            total += chances.sum(axis=0, dtype=float)
        return np.asarray(total[:-1] / (prior.most * len(sets)))

    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence:
        """The probability of a set: its share, checked by independent searches where that is half or more."""
        if self._likelihood.evidence.n_vectors:
            return self._surveyed_confidence(around.members, needed)
        share = share_of(self._likelihood, self._prior, self.recent, around)
        if share >= max(needed, 0.5):
            share = estimate(self._likelihood, self._prior, self.recent, self._found, around)
            if not share:  # no independent search has found the set again
                return Confidence(0.0, "unsettled")
        return Confidence(share, "estimated")

    def advantage(self, around: Neighbourhood, needed: float = -math.inf) -> float:
        """The advantage of a set over all rivals that were found.

        Never more than k nats if k independent searches found the set again: a rival as easy to find was missed with
        probability exp(-k).
        """
        members, near = around.members, close_rivals(self._likelihood, self._prior, around)
        least = advantage(self._likelihood, self._prior, members, near)
        if least < needed:
            return least
        prior, found = self._prior, self._found
        least = min(least, float(len(found) - len(prior.others(found, members))))
        others = prior.others(prior.distinct(np.vstack([self.sets, found]))[0], members)
        return min(least, advantage(self._likelihood, self._prior, members, others)) if others.size else least

    @cached_property
    def _found(self) -> Index:
        """The sets at which independent searches end; asking again gives the same."""
        rng = np.random.default_rng([self._check, self._likelihood.evidence.n_readings])
        found = self._prior.random_sets(rng, self._effort.checkers)
        climb(self._likelihood, self._prior, found)
        return found

    def _surveyed_confidence(self, members: Index, needed: float) -> Confidence:
        """The confidence after whole vectors: relative to the estimated total over all sets, also those not visited."""
        height = float(log_posterior(self._likelihood, self._prior, members[None])[0])
        rough = math.exp(min(height - self._vicinity.log_weight, 0.0))
        if rough < needed:  # other sets can only lower it
            return Confidence(rough, "estimated")
        _, log_total, agreed = self._survey
        return Confidence(math.exp(min(height - log_total, 0.0)), "estimated" if agreed else "unsettled")

    @cached_property
    def _survey(self) -> Survey:
        rng = np.random.default_rng([self._check, self._likelihood.evidence.n_readings, 1])
        return survey(self._likelihood, self._prior, self._vicinity, rng, self._effort.draws)

    @cached_property
    def _vicinity(self) -> Vicinity:
        return explore(self._likelihood, self._prior, np.vstack([self.sets, self._found]))

    @property
    def n_levels(self) -> int:
        return 1 + (len(self.sets) - self._effort.cold) // self._effort.hot

    def _extend_ladder(self) -> None:
        effort, spread = self._effort, float(np.std(self._likelihood.log_likelihood(self._probes)))
        wanted = 1 + math.ceil(math.log(max(spread, 1.0)) / -math.log(effort.ratio))
        more = min(wanted, effort.levels) - self.n_levels
        if more > 0:
            self.level = np.concatenate([self.level, np.repeat(self.n_levels + np.arange(more), effort.hot)])
            self.sets = np.vstack([self.sets, self._prior.random_sets(self._rng, more * effort.hot)])

    def _leap(self, fit: Array) -> None:
        """Climb from random sets; the best set found replaces the coldest sets that are more than 10 nats worse."""
        lost = self._likelihood.fit(self.sets[fit.argmax()]).refuted
        found = self._prior.random_sets(self._rng, self._effort.searchers if lost else self._effort.climbers)
        climb(self._likelihood, self._prior, found)
        height = self._likelihood.log_likelihood(found)
        best = int(height.argmax())
        hopeless = (self.level == 0) & (fit < height[best] - _HOPELESS)
        self.sets[hopeless] = found[best]

    def _exchange(self, fit: Array) -> None:
        """Offer each set of a level a partner one level up; both keep their place and trade their temperature."""
        level, rng, ratio = self.level, self._rng, self._effort.ratio
        for hotter in range(1, self.n_levels):
            (cold,), (hot,) = (level == hotter - 1).nonzero(), (level == hotter).nonzero()
            cold = rng.permutation(cold)[: hot.size]
            step = ratio ** (hotter - 1) - ratio**hotter
            agreed = np.log(rng.random(cold.size)) < step * (fit[hot] - fit[cold])
            level[cold[agreed]] = hotter
            level[hot[agreed]] = hotter - 1

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        for sets in (self._probes, self.sets):
            self._prior.check(sets)
        counts = np.bincount(self.level, minlength=2)
        if counts.tolist() != [self._effort.cold] + [self._effort.hot] * (counts.size - 1):
            raise ValueError("the levels of its population are damaged")
        self.recent = self.sets[self.level == 0]
        self._forget()
