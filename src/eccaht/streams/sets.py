"""Sets of streams: which are possible, how likely each is before the first reading, and many weighted ones at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from eccaht.base.arrays import Array, Index

__all__ = ["Hypotheses", "SetPrior"]

NEVER = 1e-7  # a weighted set less probable than this is left out

Floating = NDArray[np.float32] | Array


class SetPrior:
    """Sets of `least` to `most` of K streams: each size is equally likely, and each set of a size.

    A set is a row of `most` slots. A slot holds a stream, or K where it is EMPTY; the order of slots means nothing.

    >>> SetPrior(4, 1, 1).count, SetPrior(4, 0, 2).count
    (4, 11)
    """

    def __init__(self, n_streams: int, least: int, most: int) -> None:
        self.n_streams, self.least, self.most = n_streams, least, most
        self.fixed = least == most
        self.count = sum(math.comb(n_streams, size) for size in range(least, most + 1))
        sizes = np.arange(most + 1)
        ways = np.array(
            [math.lgamma(n_streams + 1) - math.lgamma(m + 1) - math.lgamma(n_streams - m + 1) for m in sizes]
        )
        self.log_prior = np.where(sizes >= least, -math.log(most - least + 1) - ways, -np.inf)
        # a set of m streams fills the slots in most! / (most - m)! orders, of which each gets its share
        share = self.log_prior + gammaln(most - sizes + 1)
        with np.errstate(invalid="ignore"):  # log-odds of an EMPTY slot, by the size of the rest
            self._empty, self._empty_in_set = share[:-1] - share[1:], self.log_prior[:-1] - self.log_prior[1:]
        # none where no slot may be EMPTY
        self.odds_in_row, self.odds_in_set = (a[: 0 if self.fixed else None] for a in (self._empty, self._empty_in_set))
        self._keys: Index | None = None

    def log_prior_of(self, sets: Index) -> Array:
        """Log prior probability of every row."""
        return self.log_prior[(sets < self.n_streams).sum(axis=1)]

    def random_sets(self, rng: np.random.Generator, count: int) -> Index:
        K, most = self.n_streams, self.most
        if 64 * most >= K:
            sets = rng.random((count, K)).argpartition(most - 1, axis=1)[:, :most]
        else:
            sets = rng.integers(K, size=(count, most))
            while (twice := (np.diff(np.sort(sets, axis=1), axis=1) == 0).any(axis=1)).any():
                sets[twice] = rng.integers(K, size=(int(twice.sum()), most))
        if not self.fixed:
            size = rng.integers(self.least, most, size=count, endpoint=True)
            sets[np.arange(most) >= size[:, None]] = K
        return sets

    def all_sets(self) -> Index:
        """Every possible set, one a row."""
        blocks = []
        for size in range(self.least, self.most + 1):
            flat = np.fromiter(
                (k for members in combinations(range(self.n_streams), size) for k in members), dtype=np.intp
            )
            block = np.full((math.comb(self.n_streams, size), self.most), self.n_streams)
            block[:, :size] = flat.reshape(len(block), size)
            blocks.append(block)
        return np.concatenate(blocks)

    def forbid(self, gains: Array, sets: Index, slots: Index) -> None:
        """Set to -inf what cannot fill a slot: the other members of the row, and EMPTY if too few would remain.

        Elsewhere EMPTY gains 0.
        """
        each = np.arange(len(sets))
        old = sets[each, slots]
        held = gains[each, old]
        gains[each[:, None], sets] = -np.inf
        gains[each, old] = held
        gains[:, -1] = -np.inf if self.fixed else np.where(self._rest(sets, slots) >= self.least, 0.0, -np.inf)

    def weigh_empty(self, log_weights: Floating, sets: Index, slots: Index, *, of_sets: bool = False) -> None:
        """Add the prior log-odds of an EMPTY slot: those of a row of slots, or (of_sets) those of a set."""
        if not self.fixed:
            rest = self._rest(sets, slots)
            odds = self._empty_in_set if of_sets else self._empty
            log_weights[:, -1] += np.where(rest >= self.least, odds[rest], 0.0)

    def keys(self, sets: Index) -> Index:
        """One number a row that does not depend on the order of its slots (64 random bits a stream, added up).

        Of a vector, the bits of each stream.
        """
        if self._keys is None:
            bits = np.random.default_rng(self.n_streams).integers(np.iinfo(np.int64).max, size=self.n_streams + 1)
            self._keys = bits.astype(np.int64)
        return self._keys[sets].sum(axis=1) if sets.ndim > 1 else self._keys[sets]

    def distinct(self, sets: Index) -> tuple[Index, Array]:
        """The different sets among the rows, and the share of rows that hold each."""
        _, first, counts = np.unique(self.keys(sets), return_index=True, return_counts=True)
        return sets[first], counts / len(sets)

    def once(self, sets: Index) -> Index:
        """The different sets among the rows, in the order of `distinct`."""
        keys = self.keys(sets)
        order = keys.argsort(kind="stable")
        ordered = keys[order]
        first = np.ones(keys.size, dtype=bool)
        np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
        return sets[order[first]]

    def others(self, sets: Index, members: Index) -> Index:
        """The rows that are not the set `members`."""
        return sets[self.keys(sets) != self.keys(members[None])]

    def marginals(self, sets: Index, chances: Array) -> Array:
        """The probability of each stream, (K,), by those of the sets."""
        counted = np.bincount(sets.ravel(), np.repeat(chances, sets.shape[1]), minlength=self.n_streams + 1)
        return counted[:-1].astype(float, copy=False)

    def check(self, sets: Index) -> None:
        """Refuse rows, (N, most) numbers of streams, that are no possible sets."""
        if not ((sets >= 0) & (sets <= self.n_streams)).all():
            raise ValueError("a set of streams has a number that no stream has")
        ordered = np.sort(sets, axis=1)
        twice = (np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] < self.n_streams)
        if twice.any() or ((sets < self.n_streams).sum(axis=1) < self.least).any():
            raise ValueError("a set of streams is damaged")

    def _rest(self, sets: Index, slots: Index) -> Index:
        return (sets < self.n_streams).sum(axis=1) - (sets[np.arange(len(sets)), slots] < self.n_streams)


class Moments(NamedTuple):
    """The posterior of all streams where it is too spread out to be given by sets: which are anomalous, as 0 and 1."""

    log_odds: Array  # (K,)
    variance: Array  # (K,), the diagonal of the covariance
    times_covariance: Callable[[Array], Array]  # of a vector (K,)


class Hypotheses(NamedTuple):
    """Sets with their probabilities, which add up to 1, and the shifts of their streams.

    Set s holds the streams of rest[row[s]], K in EMPTY slots, and `stream[s]`, which may be EMPTY too: many sets that
    differ in one stream share a row. The shift of an EMPTY slot is 0.
    """

    rest: Index  # (N, n - 1)
    rest_shifts: Array
    row: Index  # of each set
    stream: Index
    shift: Array
    chance: Array

    @classmethod
    def of_sets(cls, sets: Index, chance: Array, rest_shifts: Array, shifts: Array) -> Hypotheses:
        """Plain sets, one a row: the last slot is taken as `stream`, with its shift in `shifts` (N, K + 1)."""
        row, stream = np.arange(len(sets)), sets[:, -1]
        return cls(sets[:, :-1], rest_shifts, row, stream, shifts[row, stream], chance)

    @classmethod
    def of_slots(cls, rest: Index, chances: NDArray[np.floating], rest_shifts: Array, shifts: Array) -> Hypotheses:
        """Each row with all streams that may join it, their probabilities and shifts (N, K + 1)."""
        row, stream = np.nonzero(chances > NEVER)
        chance = chances[row, stream].astype(float)
        return cls(rest, rest_shifts, row, stream, shifts[row, stream], chance / chance.sum())

    def joined(self, other: Hypotheses, share: float) -> Hypotheses:
        """Both, this one with the given share of the probability."""
        moved = other._replace(row=other.row + len(self.rest), chance=other.chance * (1.0 - share))
        mine = self._replace(chance=self.chance * share)
        return Hypotheses(*(np.concatenate(parts) for parts in zip(mine, moved, strict=True)))

    def doubt(self, prior: SetPrior) -> float:
        """The probability of all sets but the first row's most probable one."""
        keys = prior.keys(self.rest)[self.row] + prior.keys(self.stream)
        first = int((self.chance * (self.row == self.row[0])).argmax())
        return float(self.chance[keys != keys[first]].sum())
