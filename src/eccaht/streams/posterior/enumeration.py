"""The exact posterior: every possible set with its probability."""

from __future__ import annotations

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.streams.posterior.confidence import advantage
from eccaht.streams.posterior.gibbs import Neighbourhood
from eccaht.streams.posterior.likelihood import Likelihood
from eccaht.streams.posterior.protocol import WHOLE_POSTERIOR, Confidence, Posterior
from eccaht.streams.sets import Hypotheses, SetPrior

LARGEST = 200_000  # sets
_MOST, _DRAWS = 1024, 512  # sets handed to the design of a measurement: all, or draws where there are more
_NEGLIGIBLE = 1e-4  # probability of all but one set below which nothing is in doubt
_NEVER = 1e-7  # a set less probable than this is left out
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
        """Weigh every set again."""
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
        probabilities = np.repeat(np.exp(self.log_posterior), self.sets.shape[1])
        counted = np.bincount(self.sets.ravel(), probabilities, minlength=self._prior.n_streams + 1)
        return counted[:-1].astype(float, copy=False)

    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence:  # noqa: ARG002
        (place,) = np.flatnonzero(self._keys == self._prior.keys(around.members[None]))
        return Confidence(float(np.exp(self.log_posterior[place])), "exact")

    def advantage(self, around: Neighbourhood, needed: float = -np.inf) -> float:  # noqa: ARG002
        """The advantage of a set over all others."""
        rivals = self.sets[self._keys != self._prior.keys(around.members[None])]
        return advantage(self._likelihood, self._prior, around.members, rivals)

    def _with_shifts(self, sets: Index, weights: Array) -> Hypotheses:
        last = np.full(len(sets), self._prior.most - 1)
        return Hypotheses.of_sets(sets, weights, *self._likelihood.draw_shifts(sets, last, self._rng))

    def restore(self, state: dict[str, Array]) -> None:  # noqa: ARG002
        """Weigh the sets by the restored statistics."""
        if self._likelihood.evidence.n_readings:
            self.update()
