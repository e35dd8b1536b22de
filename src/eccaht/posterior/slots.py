"""Changing one slot of many sets at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array, Index
from eccaht.posterior.likelihood import Likelihood, without_slots
from eccaht.sets import Hypotheses, SetPrior

_CHUNK = 1 << 18  # numbers worked on at once: what the processor's cache holds

Chances = NDArray[np.float32]


def sweep(likelihood: Likelihood, sizes: SetPrior, sets: Index, beta: Array, rng: np.random.Generator) -> None:
    """Draw every slot of every set from its conditional distribution, likelihood^beta times prior, in place."""
    length = max(1, _CHUNK // (sizes.n_streams + 1))
    for start in range(0, len(sets), length):
        part = sets[start : start + length]
        walk = likelihood.walk(part)
        for slot in range(sets.shape[1]):
            slots = np.full(len(part), slot)
            walk.put(slot, _draw(_chances(walk.gains(slot), sizes, part, slots, beta[start : start + length]), rng))


def open_slots(
    likelihood: Likelihood, sizes: SetPrior, sets: Index, slots: Index, beta: float, rng: np.random.Generator
) -> Hypotheses:
    """Give up one slot of each set: the rest, and the conditional distribution of who fills it."""
    chances = chances_of(likelihood, sizes, sets, slots, np.full(len(sets), beta))
    chances /= np.float32(len(sets))
    return Hypotheses.of_slots(without_slots(sets, slots), chances, *likelihood.draw_shifts(sets, slots, rng))


class Neighbourhood(NamedTuple):
    """A set, and what filling one of its slots otherwise does to its log-posterior.

    -inf where nothing changes or nobody can; of several empty slots, which are alike, only one is there.
    """

    members: Index
    slots: Index
    change: Array  # (slots, K + 1)

    @property
    def best(self) -> float:
        """Of all changes; at most 0 at a local optimum."""
        return float(self.change.max())

    @property
    def weight(self) -> float:
        """How probable all sets one change away are together, relative to this one; kept finite."""
        return float(np.exp(np.minimum(self.change, 300.0)).sum())


def neighbourhood(likelihood: Likelihood, sizes: SetPrior, members: Index) -> Neighbourhood:
    """Look at all sets one change away."""
    nobody = members == sizes.n_streams
    slots = np.flatnonzero(~nobody | (np.cumsum(nobody) == 1))
    copies = np.tile(members, (slots.size, 1))
    change = changes(likelihood.gains(copies, slots), sizes, copies, slots)
    change[np.arange(slots.size), members[slots]] = -np.inf
    return Neighbourhood(members, slots, change)


def open_neighbours(likelihood: Likelihood, around: Neighbourhood, rng: np.random.Generator) -> Hypotheses:
    """A set and all sets one change away with their exact probabilities, one slot opened a row."""
    members, slots, change = around
    weights = np.exp(np.minimum(change, 80.0))  # nothing is far above the most probable set
    weights[0, members[slots[0]]] = 1.0  # the set itself, once
    weights /= weights.sum()
    copies = np.tile(members, (slots.size, 1))
    return Hypotheses.of_slots(without_slots(copies, slots), weights, *likelihood.draw_shifts(copies, slots, rng))


def changes(gains: Array, sizes: SetPrior, sets: Index, slots: Index) -> Array:
    """What filling a slot otherwise does to the log-posterior of each set (from gains, which are overwritten)."""
    each = np.arange(len(sets))
    weigh(gains, sizes, sets, slots)
    gains -= gains[each, sets[each, slots]][:, None]
    return gains


def weigh(gains: Array, sizes: SetPrior, sets: Index, slots: Index) -> None:
    """Turn what each stream adds to the log-likelihood into what it adds to the log-posterior, in place."""
    sizes.forbid(gains, sets, slots)
    sizes.weigh_nobody(gains, sets, slots, of_sets=True)


def chances_of(likelihood: Likelihood, sizes: SetPrior, sets: Index, slots: Index, beta: Array) -> Chances:
    """The conditional distribution of one slot of each set, (N, K + 1)."""
    chances = _chances(likelihood.gains(sets, slots), sizes, sets, slots, beta)
    chances /= chances.sum(axis=1, keepdims=True)
    return chances


def _draw(chances: Chances, rng: np.random.Generator) -> Index:
    """One place a row, in proportion; never one without a chance."""
    line = chances.cumsum(axis=1)
    drawn = (np.float32(1.0) - rng.random((len(chances), 1), dtype=np.float32)) * line[:, -1:]  # in (0, end]
    place: Index = (line >= drawn).argmax(axis=1)
    return place


def _chances(gains: Array, sizes: SetPrior, sets: Index, slots: Index, beta: Array) -> Chances:
    """Unnormalised probabilities of who fills the slot, from what each would add (which is overwritten)."""
    sizes.forbid(gains, sets, slots)
    gains -= gains.max(axis=1, keepdims=True)
    chances = gains.astype(np.float32)
    chances *= beta.astype(np.float32)[:, None]
    sizes.weigh_nobody(chances, sets, slots)
    return np.exp(chances, out=chances)
