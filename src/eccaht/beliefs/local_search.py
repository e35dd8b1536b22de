"""The most probable set by climbing: single swaps from many starts."""

from __future__ import annotations

import numpy as np

from eccaht.arrays import Array, Index
from eccaht.beliefs.evidence import Evidence
from eccaht.sets import Sizes

KEPT, FRESH = 16, 16  # local optima remembered, and random starts a reading


class LocalSearch:
    """Local optima of the exact likelihood under swaps.

    After each reading the optima found so far climb again, together with random starts, so that no poor optimum
    lasts: the best are kept.
    """

    def __init__(self, evidence: Evidence, sizes: Sizes, rng: np.random.Generator) -> None:
        self._evidence, self._sizes, self._rng = evidence, sizes, rng
        self.sets = sizes.random_sets(rng, KEPT)

    def update(self) -> None:
        """Climb from the kept optima, from fresh sets, and from the streams that look worst one by one."""
        evidence, sizes = self._evidence, self._sizes
        alone = np.argsort((evidence.half_diagonal - evidence.linear)[: sizes.n_streams])[: sizes.most]
        sets = np.vstack([self.sets, sizes.random_sets(self._rng, FRESH), alone])
        climb(evidence, sets)
        sets, _ = sizes.distinct(sets)
        best = np.argsort(-evidence.log_likelihood(sets), kind="stable")[:KEPT]
        short = sizes.random_sets(self._rng, KEPT - best.size)
        self.sets = np.vstack([sets[best], short])

    def candidates(self) -> Index:
        """The local optima."""
        return self.sets

    def marginals(self) -> Array | None:
        """Not known: optima are no sample."""
        return None

    def state(self) -> dict[str, Array]:
        """What a file must keep."""
        return {"sets": self.sets.astype(float)}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a kept state."""
        self.sets = self._sizes.checked(state["sets"])


def climb(evidence: Evidence, sets: Index) -> None:
    """Swap the best pair of every set, in place, until no swap helps."""
    n, active = sets.shape[1], np.arange(len(sets))
    g = evidence.fields(sets)
    while active.size:
        here, each = sets[active], np.arange(active.size)
        gain = np.empty((n, active.size))
        best = np.empty((n, active.size), dtype=np.intp)
        for slot in range(n):
            old = here[:, slot]
            fit = g[active] + evidence.coupling(old)
            held = fit[each, old]
            fit[each[:, None], here] = -np.inf
            fit[:, -1] = -np.inf
            best[slot] = fit.argmax(axis=1)
            gain[slot] = fit[each, best[slot]] - held
        slot = gain.argmax(axis=0)
        better = gain[slot, each] > 1e-9 * max(1.0, evidence.misfit)
        active, slot, new = active[better], slot[better], best[slot, each][better]
        old = sets[active, slot]
        g[active] += evidence.coupling(old) - evidence.coupling(new)
        sets[active, slot] = new
