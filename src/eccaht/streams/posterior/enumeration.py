"""The two simplest posteriors: every possible set with its probability, and local optima of the likelihood alone."""

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.base.codec import Field, Sizes
from eccaht.streams.posterior.confidence import advantage
from eccaht.streams.posterior.gibbs import Neighbourhood, climb
from eccaht.streams.posterior.likelihood import Likelihood
from eccaht.streams.posterior.protocol import WHOLE_POSTERIOR, Confidence, Posterior
from eccaht.streams.sets import Hypotheses, SetPrior

LARGEST = 200_000  # sets
_MOST, _DRAWS = 1024, 512  # sets handed to the design of a measurement: all, or draws where there are more
_NEGLIGIBLE = 1e-4  # probability of all but one set below which nothing is in doubt
_NEVER = 1e-7  # a set less probable than this is left out
KEPT, FRESH = 16, 16  # local optima kept, and random starts after each reading
_RATIO = 0.4  # how much flatter the posterior is made until it leaves something in doubt


class Enumeration(Posterior):
    """All sets. Nothing is approximate, except that measurements are designed for draws where more than 1024 matter."""

    can = WHOLE_POSTERIOR

    def __init__(self, likelihood: Likelihood, prior: SetPrior, rng: np.random.Generator) -> None:
        if prior.count > LARGEST:
            raise ValueError(
                f"there are {prior.count:,} possible sets, more than the {LARGEST:,} that are enumerated: "
                "use the policy 'joint'"
            )
        self._likelihood, self._prior, self._rng = likelihood, prior, rng
        self.sets = prior.all_sets()
        self._keys = prior.keys(self.sets)
        self._log_prior = prior.log_prior_of(self.sets)
        self.log_posterior = self._log_prior.copy()

    def update(self) -> None:
        unscaled = self._likelihood.log_likelihood(self.sets) + self._log_prior
        unscaled -= unscaled.max()
        self.log_posterior = unscaled - np.log(np.exp(unscaled).sum())

    def candidates(self) -> Index:
        return self.sets[[int(self.log_posterior.argmax())]]

    def in_doubt(self, around: Neighbourhood) -> Hypotheses:  # noqa: ARG002
        """All sets with their probabilities, or draws where too many are possible; made flatter until they differ."""
        weights, beta = np.exp(self.log_posterior), 1.0
        while 1.0 - weights.max() < _NEGLIGIBLE:
            beta *= _RATIO
            weights = np.exp(beta * (self.log_posterior - self.log_posterior.max()))
            weights /= weights.sum()
        (some,) = np.nonzero(weights > _NEVER)
        if some.size <= _MOST:
            return self._with_shifts(self.sets[some], weights[some] / weights[some].sum())
        line, positions = weights.cumsum(), (np.arange(_DRAWS) + self._rng.random()) / _DRAWS
        drawn, counts = np.unique(np.searchsorted(line, positions * line[-1]), return_counts=True)
        return self._with_shifts(self.sets[drawn], counts / _DRAWS)

    def marginals(self) -> Array:
        return self._prior.marginals(self.sets, np.exp(self.log_posterior))

    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence:  # noqa: ARG002
        (place,) = np.flatnonzero(self._keys == self._prior.keys(around.members[None]))
        return Confidence(float(np.exp(self.log_posterior[place])), "exact")

    def advantage(self, around: Neighbourhood, needed: float = -np.inf) -> float:  # noqa: ARG002
        rivals = self._prior.others(self.sets, around.members)
        return advantage(self._likelihood, self._prior, around.members, rivals)

    def lead_over_all(self) -> float:
        """The log-likelihood of the most likely set less that of the next one."""
        second, first = np.partition(self.log_posterior - self._log_prior, -2)[-2:].tolist()
        return float(first - second)

    def _with_shifts(self, sets: Index, weights: Array) -> Hypotheses:
        last = np.full(len(sets), self._prior.most - 1)
        return Hypotheses.of_sets(sets, weights, *self._likelihood.draw_shifts(sets, last, self._rng))

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        if self._likelihood.evidence.n_readings:
            self.update()


class LocalSearch(Posterior):
    """Local optima of the exact likelihood under swaps; they are no sample of the posterior.

    After each reading the optima found so far climb again, together with random starts, so that no poor optimum
    lasts: the best are kept.
    """

    FIELDS = (Field("sets", (KEPT, "n"), int, high="K"),)

    def __init__(self, likelihood: Likelihood, prior: SetPrior, rng: np.random.Generator) -> None:
        self._likelihood, self._prior, self._rng = likelihood, prior, rng
        self.sets = prior.random_sets(rng, KEPT)

    def update(self) -> None:
        """Climb from the kept optima, from fresh sets, and from the streams that look worst one by one."""
        prior, evidence = self._prior, self._likelihood.evidence
        alone = np.argsort((evidence.half_diagonal - evidence.linear)[: prior.n_streams])[: prior.most]
        sets = np.vstack([self.sets, prior.random_sets(self._rng, FRESH), alone])
        climb(self._likelihood, prior, sets)
        sets, _ = prior.distinct(sets)
        best = np.argsort(-self._likelihood.log_likelihood(sets), kind="stable")[:KEPT]
        short = prior.random_sets(self._rng, KEPT - best.size)
        self.sets = np.vstack([sets[best], short])

    def candidates(self) -> Index:
        return self.sets

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        self._prior.check(self.sets)
