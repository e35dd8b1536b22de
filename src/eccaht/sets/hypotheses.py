"""Many weighted sets in little room."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array, Index
from eccaht.sets.sizes import Sizes


class Hypotheses(NamedTuple):
    """Each row stands for K + 1 sets: its `rest` and one stream more (or nobody, K), with their probabilities.

    rest: (N, n - 1) streams, K in unused slots, with their shifts. chances: (N, K + 1), all of them add up to 1, with
    the shift that each stream has if it is the one more. Shifts of nobody are 0.
    """

    rest: Index
    chances: NDArray[np.float32]
    rest_shifts: Array
    shifts: Array

    @classmethod
    def of_sets(cls, sets: Index, weights: Array, rest_shifts: Array, shifts: Array) -> Hypotheses:
        """Plain sets, one a row: the last slot counts as the one more."""
        chances = np.zeros(shifts.shape, dtype=np.float32)
        chances[np.arange(len(sets)), sets[:, -1]] = weights
        return cls(sets[:, :-1], chances, rest_shifts, shifts)

    def joined(self, other: Hypotheses, share: float) -> Hypotheses:
        """Both, this one with the given share of the probability."""
        mine, theirs = (np.float32(weight) for weight in (share, 1.0 - share))
        first, second = self._replace(chances=self.chances * mine), other._replace(chances=other.chances * theirs)
        return Hypotheses(
            np.concatenate([first.rest, second.rest]),
            np.concatenate([first.chances, second.chances]),
            np.concatenate([first.rest_shifts, second.rest_shifts]),
            np.concatenate([first.shifts, second.shifts]),
        )

    def doubt(self, sizes: Sizes) -> float:
        """The probability of all sets but the first row's most probable one."""
        first = np.append(self.rest[0], self.chances[0].argmax())
        most = self.chances.argmax(axis=1)
        same = sizes.keys(np.column_stack([self.rest, most])) == sizes.keys(first[None])
        agreed = self.chances[same, most[same]].sum(dtype=float)
        return float(self.chances.sum(dtype=float) - agreed)
