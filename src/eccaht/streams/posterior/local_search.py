"""The MAP set by climbing: single changes from many starts."""

from __future__ import annotations

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.streams.posterior.gibbs import weigh
from eccaht.streams.posterior.likelihood import Likelihood
from eccaht.streams.posterior.protocol import Posterior
from eccaht.streams.sets import SetPrior

KEPT, FRESH = 16, 16  # local optima kept, and random starts after each reading


class LocalSearch(Posterior):
    """Local optima of the exact likelihood under swaps; they are no sample of the posterior.

    After each reading the optima found so far climb again, together with random starts, so that no poor optimum
    lasts: the best are kept.
    """

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

    def state(self) -> dict[str, Array]:
        return {"sets": self.sets.astype(float)}

    def restore(self, state: dict[str, Array]) -> None:
        if len(state["sets"]) != KEPT:
            raise ValueError("its local optima are damaged")
        self.sets = self._prior.checked(state["sets"])


def climb(likelihood: Likelihood, prior: SetPrior, sets: Index) -> None:
    """Fill slot after slot of every set in the best way, in place, until no single change helps."""
    tolerance = likelihood.tolerance
    active = np.arange(len(sets))
    while active.size:
        here, each = sets[active], np.arange(active.size)
        walk, moved = likelihood.walk(here), np.zeros(active.size, dtype=bool)
        for slot in range(sets.shape[1]):
            gains, old = walk.gains(slot), here[:, slot]
            weigh(gains, prior, here, np.full(active.size, slot))
            best = gains.argmax(axis=1)
            better = gains[each, best] > gains[each, old] + tolerance
            walk.put(slot, np.where(better, best, old))
            moved |= better
        sets[active] = here
        active = active[moved]
