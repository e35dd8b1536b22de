"""Sets of streams drawn from their posterior: a population on a ladder of temperatures.

Readings with almost no noise make the posterior needle-sharp: a set that misses one member fits as badly as any other,
and no sequence of single changes leads to the right one. A flattened posterior, likelihood^beta, has such
paths (parallel tempering). So the population lives on levels beta = 1, q, q^2, ...; every level makes Gibbs sweeps,
and neighbouring levels exchange sets by the Metropolis rule, which keeps the coldest level at the posterior itself.
The ladder grows as the likelihood gets sharper.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.base.codec import Field, Sizes
from eccaht.streams.posterior.confidence import advantage, close_rivals, differences, estimate, share_away, share_of
from eccaht.streams.posterior.gibbs import (
    Neighbourhood,
    changes,
    climb,
    conditional_hypotheses,
    conditionals,
    log_posterior,
    sweep,
)
from eccaht.streams.posterior.likelihood import Likelihood
from eccaht.streams.posterior.protocol import WHOLE_POSTERIOR, Confidence, Posterior
from eccaht.streams.sets import Hypotheses, SetPrior

RATIO = 0.4  # of neighbouring inverse temperatures
MAX_LEVELS = 8
COLD, HOT = 64, 24  # sets on the coldest level and on each other
CLIMBERS, SEARCHERS = 8, 128  # random sets that climb after each reading: usually, and if no set fits
CHECKERS = 128  # independent searches that should find the MAP set again
_PROBES = 200  # random sets whose spread of log-likelihoods says how sharp the likelihood is
_NEGLIGIBLE = 1e-4  # probability of all but one set below which a level leaves nothing in doubt
_HOPELESS = 10.0  # nats by which a set must be worse than one just found to be replaced by it
DRAWS = 256  # of each of the two independent samples
_FURTHER = 4  # sweeps at the posterior itself, over which marginals are averaged
_BATCH = 64  # sets whose neighbours are looked at together
_MOST = 8192  # sets in the vicinity; beyond, the posterior is so diffuse that draws describe it better
_DEEP = 12.0  # nats below the most probable set from which on sets are left to the draws
_OPEN = 0.003  # share of the vicinity's probability whose neighbours may stay unexplored
MOST_DISAGREEMENT = 0.1  # of the marginals of two samples; the error of their mean is about half of it


class Population(Posterior):
    """Rows of stream numbers, each on a level of the ladder."""

    can = WHOLE_POSTERIOR
    FIELDS = (
        Field("_probes", (_PROBES, "n"), int, high="K"),
        Field("sets", ("N", "n"), int, high="K"),
        Field("level", ("N",), int, high=MAX_LEVELS - 1),
        Field("_check", (), int, high=2**32 - 1),
    )

    def __init__(self, likelihood: Likelihood, prior: SetPrior, rng: np.random.Generator) -> None:
        self._likelihood, self._prior, self._rng = likelihood, prior, rng
        self._check = int(rng.integers(2**32))  # seed of the independent searches
        self._probes = prior.random_sets(rng, _PROBES)
        self.sets = prior.random_sets(rng, COLD + HOT)
        self.level: Index = np.repeat(np.arange(2), [COLD, HOT])
        self.recent = self.sets[self.level == 0]  # the coldest sets

    def update(self) -> None:
        self._extend_ladder()
        sweep(self._likelihood, self._prior, self.sets, np.power(RATIO, self.level), self._rng)
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
            hypotheses = self._hypotheses(self.sets[self.level == level], RATIO**level)
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
        found = self._prior.random_sets(rng, CHECKERS)
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
        return survey(self._likelihood, self._prior, self._vicinity, rng)

    @cached_property
    def _vicinity(self) -> _Vicinity:
        return explore(self._likelihood, self._prior, np.vstack([self.sets, self._found]))

    @property
    def n_levels(self) -> int:
        return 1 + (len(self.sets) - COLD) // HOT

    def _extend_ladder(self) -> None:
        spread = _deviation(self._likelihood.log_likelihood(self._probes))
        wanted = 1 + math.ceil(math.log(max(spread, 1.0)) / -math.log(RATIO))
        more = min(wanted, MAX_LEVELS) - self.n_levels
        if more > 0:
            self.level = np.concatenate([self.level, np.repeat(self.n_levels + np.arange(more), HOT)])
            self.sets = np.vstack([self.sets, self._prior.random_sets(self._rng, more * HOT)])

    def _leap(self, fit: Array) -> None:
        """Climb from random sets; the best set found replaces the coldest sets that are more than 10 nats worse."""
        lost = self._likelihood.fit(self.sets[fit.argmax()]).refuted
        found = self._prior.random_sets(self._rng, SEARCHERS if lost else CLIMBERS)
        climb(self._likelihood, self._prior, found)
        height = self._likelihood.log_likelihood(found)
        best = int(height.argmax())
        hopeless = (self.level == 0) & (fit < height[best] - _HOPELESS)
        self.sets[hopeless] = found[best]

    def _exchange(self, fit: Array) -> None:
        """Offer each set of a level a partner one level up; both keep their place and trade their temperature."""
        level, rng = self.level, self._rng
        for hotter in range(1, self.n_levels):
            (cold,), (hot,) = (level == hotter - 1).nonzero(), (level == hotter).nonzero()
            cold = rng.permutation(cold)[: hot.size]
            step = RATIO ** (hotter - 1) - RATIO**hotter
            agreed = np.log(rng.random(cold.size)) < step * (fit[hot] - fit[cold])
            level[cold[agreed]] = hotter
            level[hot[agreed]] = hotter - 1

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        for sets in (self._probes, self.sets):
            self._prior.check(sets)
        counts = np.bincount(self.level, minlength=2)
        if counts.tolist() != [COLD] + [HOT] * (counts.size - 1):
            raise ValueError("the levels of its population are damaged")
        self.recent = self.sets[self.level == 0]
        self._forget()


def _deviation(values: Array) -> float:
    """`np.std`, with fewer checks."""
    centred = values - values.sum() / values.size
    centred *= centred
    return math.sqrt(float(centred.sum() / values.size))


#
# One whole vector says as much as K readings at once, so that the posterior jumps: a population that moves along
# reading by reading is left behind. So the posterior is sampled from scratch. The sets around every known mode are
# summed up exactly (V, the vicinity). Sequential Monte Carlo moves sets from the prior to the posterior through
# likelihood^beta, beta from 0 to 1; the share f of its draws that lie in V estimates the probability of V. Inside V
# probabilities are exact up to the factor f, outside they are those of the draws. A posterior of a few sharp modes
# lies in V, whatever weights the draws give them, and a diffuse one is easily drawn from.


class _Vicinity(NamedTuple):
    """Sets around the modes with their log-posterior, but for a constant that all share."""

    sets: Index
    keys: Index  # sorted
    height: Array

    @property
    def log_weight(self) -> float:
        """Log of the sum of exp(height)."""
        top = float(self.height.max())
        return top + math.log(float(np.exp(self.height - top).sum()))

    def holds(self, keys: Index) -> Index:
        place = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return np.asarray(self.keys[place] == keys)


class Survey(NamedTuple):
    """Marginals, the log of the posterior's normalising constant, and whether two independent samples agreed."""

    marginals: Array
    log_total: float
    agreed: bool


def survey(likelihood: Likelihood, prior: SetPrior, vicinity: _Vicinity, rng: np.random.Generator) -> Survey:
    """Weigh the vicinity against the rest by two independent samples."""
    parts = [_sampled(likelihood, prior, vicinity, rng) for _ in range(2)]
    shares = np.array([share for share, _ in parts])
    near = prior.marginals(vicinity.sets, np.exp(vicinity.height - vicinity.log_weight))
    marginals = [share * near + outside for share, outside in parts]
    disagreement = max(float(np.abs(marginals[0] - marginals[1]).max()), float(np.ptp(shares)))
    share = max(float(shares.mean()), 0.5 / DRAWS)
    return Survey(np.mean(marginals, axis=0), vicinity.log_weight - math.log(share), disagreement <= MOST_DISAGREEMENT)


def explore(likelihood: Likelihood, prior: SetPrior, seeds: Index) -> _Vicinity:
    """The sets around the seeds, best first, until the unexplored weight is negligible or the limit is reached."""
    known, _ = prior.distinct(seeds)
    height = log_posterior(likelihood, prior, known)
    keys, fresh = prior.keys(known), np.ones(len(known), dtype=bool)
    while len(known) < _MOST:
        weight = np.exp(np.minimum(height - height.max(), 0.0))
        if weight[fresh].sum() <= _OPEN * weight.sum():
            break
        chosen = np.flatnonzero(fresh)
        chosen = chosen[np.argsort(-height[chosen], kind="stable")[:_BATCH]]
        fresh[chosen] = False
        sets, found = _neighbours(likelihood, prior, known[chosen], height[chosen], float(height.max()) - _DEEP)
        new_keys, first = np.unique(prior.keys(sets), return_index=True)
        first = first[~np.isin(new_keys, keys)]
        known, height = np.vstack([known, sets[first]]), np.append(height, found[first])
        keys, fresh = np.append(keys, prior.keys(sets[first])), np.append(fresh, np.ones(first.size, dtype=bool))
    order = np.argsort(keys)
    return _Vicinity(known[order], keys[order], height[order])


def _neighbours(
    likelihood: Likelihood, prior: SetPrior, sets: Index, height: Array, least: float
) -> tuple[Index, Array]:
    """All sets one change away from these whose log-posterior is at least `least`."""
    found, heights = [sets[:0]], [height[:0]]
    for slot in range(sets.shape[1]):
        slots = np.full(len(sets), slot)
        reached = changes(likelihood, prior, sets, slots) + height[:, None]
        row, stream = np.nonzero(reached >= least)
        changed = sets[row]
        changed[:, slot] = stream
        found.append(changed)
        heights.append(reached[row, stream])
    return np.vstack(found), np.concatenate(heights)


def _sampled(
    likelihood: Likelihood, prior: SetPrior, vicinity: _Vicinity, rng: np.random.Generator
) -> tuple[float, Array]:
    """The share of draws that lie in the vicinity, and what the others add to the marginals."""
    sets = drawn(likelihood, prior, rng, DRAWS)
    inside, outside = 0, np.zeros(prior.n_streams + 1)
    for _ in range(_FURTHER):
        sweep(likelihood, prior, sets, np.ones(len(sets)), rng)
        held = vicinity.holds(prior.keys(sets))
        inside += int(held.sum())
        outside += np.bincount(sets[~held].ravel(), minlength=outside.size)
    total = _FURTHER * len(sets)
    return inside / total, outside[:-1] / total


def drawn(likelihood: Likelihood, prior: SetPrior, rng: np.random.Generator, count: int) -> Index:
    """Sets from the posterior by sequential Monte Carlo: from the prior, through likelihood^beta.

    Each step goes as far as it leaves weights that are worth half of the draws (Del Moral, Doucet & Jasra 2006).
    """
    sets, beta = prior.random_sets(rng, count), 0.0
    while beta < 1.0:
        fit = likelihood.log_likelihood(sets)
        fit = np.maximum(fit - fit.max(), -1e300)
        step = _step(fit, 1.0 - beta)
        beta = min(beta + step, 1.0)
        line = np.cumsum(np.exp(step * fit))
        places = np.searchsorted(line, (np.arange(count) + rng.random()) / count * line[-1])
        sets = sets[np.minimum(places, count - 1)]
        sweep(likelihood, prior, sets, np.full(count, beta), rng)
    return sets


def _step(fit: Array, most: float) -> float:
    """The largest step of beta, up to `most`, whose weights are worth half of the draws."""

    def worth(step: float) -> float:
        weights = np.exp(step * fit)
        return float(weights.sum() ** 2 / np.square(weights).sum())

    if worth(most) >= 0.5 * fit.size:
        return most
    low, high = math.log(most) - 700.0, math.log(most)
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if worth(math.exp(middle)) >= 0.5 * fit.size else (low, middle)
    return math.exp(low)
