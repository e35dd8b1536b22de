"""The posterior of very many streams after whole vectors: a few dozen streams looked at closely, the rest summed up.

A complete vector reads all streams at once, so that few are left in doubt and all others have a small share each. The
streams that a single change of the best set brings in at the least cost make the shortlist. Among sets of these the
posterior is worked out as for any small problem; the probability of all sets that one change brings in from
outside is known exactly and lowers the confidence.
"""

from __future__ import annotations

import math

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.streams.posterior.confidence import advantage, close_rivals
from eccaht.streams.posterior.gibbs import Neighbourhood, neighbourhood
from eccaht.streams.posterior.likelihood import Likelihood, likelihood_of
from eccaht.streams.posterior.local_search import climb
from eccaht.streams.posterior.population import Population
from eccaht.streams.posterior.protocol import Confidence
from eccaht.streams.posterior.survey import MOST_DISAGREEMENT
from eccaht.streams.sets import Hypotheses, SetPrior

_LISTED = 64  # streams


class Shortlist:
    """A population of sets of the streams that matter."""

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
        brought = np.exp(np.minimum(change[:, :-1], 300.0)) / (1.0 + self._around.weight)
        brought[:, self.streams[:-1]] = 0.0
        found, share = brought.sum(axis=0), float(brought.sum())
        found[self.streams[:-1]] = (1.0 - share) * self._population.marginals()
        found[members[slots]] += share - brought.sum(axis=1)  # those that stay
        return np.asarray(found)

    def in_doubt(self, around: Neighbourhood) -> Hypotheses:
        """Sets of listed streams."""
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

    def advantage(self, around: Neighbourhood) -> float:
        """Over all rivals that were found, and the best ones one and two changes away."""
        near = close_rivals(self._likelihood, self._prior, around)
        found = self.streams[np.vstack([self._population.sets, self._population._found])]
        others, _ = self._prior.distinct(found)
        others = others[self._prior.keys(others) != self._prior.keys(around.members[None])]
        least = advantage(self._likelihood, self._prior, around.members, np.vstack([near, others]))
        return least if math.isfinite(least) else -math.inf

    def _inside(self, around: Neighbourhood) -> Neighbourhood:
        return neighbourhood(self._inner, self._inner_prior, np.searchsorted(self.streams, around.members))

    def _weight_outside(self, around: Neighbourhood) -> float:
        """The probability of all sets that one change brings in from outside, over that of the set."""
        changes = np.exp(np.minimum(around.change, 300.0))
        return float(changes.sum() - changes[:, self.streams].sum())
