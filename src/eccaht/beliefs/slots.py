"""Changing one slot of many sets at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array, Index
from eccaht.beliefs.likelihood import Likelihood, without_slots
from eccaht.sets import Hypotheses, Sizes

_CHUNK = 1 << 18  # numbers worked on at once: what the processor's cache holds

Chances = NDArray[np.float32]


def sweep(likelihood: Likelihood, sizes: Sizes, sets: Index, beta: Array, rng: np.random.Generator) -> None:
    """Draw every slot of every set from its conditional distribution, likelihood^beta times prior, in place."""
    length = max(1, _CHUNK // (sizes.n_streams + 1))
    for start in range(0, len(sets), length):
        part = sets[start : start + length]
        walk = likelihood.walk(part)
        for slot in range(sets.shape[1]):
            slots = np.full(len(part), slot)
            walk.put(slot, _draw(_chances(walk.gains(slot), sizes, part, slots, beta[start : start + length]), rng))


def open_slots(
    likelihood: Likelihood, sizes: Sizes, sets: Index, slots: Index, beta: float, rng: np.random.Generator
) -> Hypotheses:
    """Give up one slot of each set: the rest, and the conditional distribution of who fills it."""
    chances = chances_of(likelihood, sizes, sets, slots, np.full(len(sets), beta))
    chances /= np.float32(len(sets))
    return Hypotheses(without_slots(sets, slots), chances, *likelihood.draw_shifts(sets, slots, rng))


def open_neighbours(
    likelihood: Likelihood, change: Array, slots: Index, members: Index, rng: np.random.Generator
) -> Hypotheses:
    """A set and all sets one change away (`single_changes`) with their exact probabilities, one slot opened a row."""
    weights = np.exp(np.minimum(change, 80.0))  # nothing is far above the most probable set
    weights[np.arange(slots.size), members[slots]] = 0.0
    weights[0, members[slots[0]]] = 1.0  # the set itself, once
    chances = (weights / weights.sum()).astype(np.float32)
    copies = np.tile(members, (slots.size, 1))
    return Hypotheses(without_slots(copies, slots), chances, *likelihood.draw_shifts(copies, slots, rng))


def single_changes(likelihood: Likelihood, sizes: Sizes, members: Index) -> tuple[Array, Index]:
    """What filling a slot otherwise does to the log-posterior of a set, (slots, K + 1), and which slots these are.

    0 where nothing changes, -inf where it cannot; of several empty slots, which are alike, only one is there.
    """
    nobody = members == sizes.n_streams
    slots = np.flatnonzero(~nobody | (np.cumsum(nobody) == 1))
    copies = np.tile(members, (slots.size, 1))
    return changes(likelihood.gains(copies, slots), sizes, copies, slots), slots


def changes(gains: Array, sizes: Sizes, sets: Index, slots: Index) -> Array:
    """What filling a slot otherwise does to the log-posterior of each set (from gains, which are overwritten)."""
    each = np.arange(len(sets))
    sizes.forbid(gains, sets, slots)
    sizes.weigh_nobody(gains, sets, slots, of_sets=True)
    gains -= gains[each, sets[each, slots]][:, None]
    return gains


def chances_of(likelihood: Likelihood, sizes: Sizes, sets: Index, slots: Index, beta: Array) -> Chances:
    """The conditional distribution of one slot of each set, (N, K + 1)."""
    chances = _chances(likelihood.gains(sets, slots), sizes, sets, slots, beta)
    chances /= chances.sum(axis=1, keepdims=True)
    return chances


def _draw(chances: Chances, rng: np.random.Generator) -> Index:
    """One place a row, in proportion: all rows are laid end to end on one line."""
    length, width = chances.shape
    line = chances.ravel().cumsum(dtype=float)
    ends = line[width - 1 :: width]
    starts = np.concatenate([[0.0], ends[:-1]])
    drawn = starts + (ends - starts) * (1.0 - rng.random(length))  # in (start, end]
    place: Index = np.searchsorted(line, drawn) - width * np.arange(length)
    return np.clip(place, 0, width - 1)


def _chances(gains: Array, sizes: Sizes, sets: Index, slots: Index, beta: Array) -> Chances:
    """Unnormalised probabilities of who fills the slot, from what each would add (which is overwritten)."""
    sizes.forbid(gains, sets, slots)
    gains -= gains.max(axis=1, keepdims=True)
    chances = gains.astype(np.float32)
    chances *= beta.astype(np.float32)[:, None]
    sizes.weigh_nobody(chances, sets, slots)
    return np.exp(chances, out=chances)
