"""Changing one slot of many sets at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array, Index
from eccaht.beliefs.evidence import Evidence
from eccaht.sets import Hypotheses, Sizes

_CHUNK = 1 << 18  # numbers worked on at once: what the processor's cache holds

Chances = NDArray[np.float32]


def sweep(evidence: Evidence, sizes: Sizes, sets: Index, beta: Array, rng: np.random.Generator) -> None:
    """Draw every slot of every set from its conditional distribution, likelihood^beta times prior, in place."""
    length = max(1, _CHUNK // (sizes.n_streams + 1))
    for start in range(0, len(sets), length):
        part = slice(start, start + length)
        _sweep(evidence, sizes, sets[part], beta[part, None], rng)


def _sweep(evidence: Evidence, sizes: Sizes, sets: Index, beta: Array, rng: np.random.Generator) -> None:
    g = evidence.fields(sets)
    for slot in range(sets.shape[1]):
        old = sets[:, slot].copy()
        left = evidence.coupling(old)
        new = _draw(_chances(g + left, sizes, sets, slot, beta), rng)
        sets[:, slot] = new
        moved = np.flatnonzero(new != old)
        g[moved] += left[moved] - evidence.coupling(new[moved])


def _draw(chances: Chances, rng: np.random.Generator) -> Index:
    """One place a row, in proportion: all rows are laid end to end on one line."""
    length, width = chances.shape
    line = chances.ravel().cumsum(dtype=float)
    ends = line[width - 1 :: width]
    starts = np.concatenate([[0.0], ends[:-1]])
    drawn = starts + (ends - starts) * (1.0 - rng.random(length))  # in (start, end]
    place: Index = np.searchsorted(line, drawn) - width * np.arange(length)
    return np.clip(place, 0, width - 1)


def open_slots(evidence: Evidence, sizes: Sizes, sets: Index, slots: Index, beta: float) -> Hypotheses:
    """Give up one slot of each set: the rest, and the conditional distribution of who fills it."""
    rest = np.empty((len(sets), sets.shape[1] - 1), dtype=np.intp)
    chances = np.empty((len(sets), sizes.n_streams + 1), dtype=np.float32)
    fit = evidence.fields(sets)
    fit += evidence.coupling(sets[np.arange(len(sets)), slots])
    for slot in range(sets.shape[1]):
        rows = np.flatnonzero(slots == slot)
        if rows.size:
            rest[rows] = np.delete(sets[rows], slot, axis=1)
            chances[rows] = _chances(fit[rows], sizes, sets[rows], slot, np.array(beta))
    chances /= chances.sum(axis=1, keepdims=True) * np.float32(len(sets))
    return Hypotheses(rest, chances)


def _chances(fit: Array, sizes: Sizes, sets: Index, slot: int, beta: Array) -> Chances:
    """Unnormalised probabilities of who fills the slot, from what each would add (which is overwritten)."""
    each = np.arange(len(sets))
    old = sets[:, slot]
    held = fit[each, old]
    fit[each[:, None], sets] = -np.inf
    fit[each, old] = held
    sizes.close_or_open_nobody(fit, sets, slot)
    fit -= fit.max(axis=1, keepdims=True)
    chances = fit.astype(np.float32)
    chances *= beta.astype(np.float32)
    sizes.weigh_nobody(chances, sets, slot)
    return np.exp(chances, out=chances)
