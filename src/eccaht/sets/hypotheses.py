"""Many weighted sets in little room."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array, Index
from eccaht.sets.prior import SetPrior

_NEVER = 1e-7  # a set less probable than this is left out


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
        """Plain sets, one a row: the last slot counts as the one more, with its shift in `shifts` (N, K + 1)."""
        row, stream = np.arange(len(sets)), sets[:, -1]
        return cls(sets[:, :-1], rest_shifts, row, stream, shifts[row, stream], chance)

    @classmethod
    def of_slots(cls, rest: Index, chances: NDArray[np.floating], rest_shifts: Array, shifts: Array) -> Hypotheses:
        """Each row with all streams that may join it, their probabilities and shifts (N, K + 1)."""
        row, stream = np.nonzero(chances > _NEVER)
        chance = chances[row, stream].astype(float)
        return cls(rest, rest_shifts, row, stream, shifts[row, stream], chance / chance.sum())

    def joined(self, other: Hypotheses, share: float) -> Hypotheses:
        """Both, this one with the given share of the probability."""
        moved = other._replace(row=other.row + len(self.rest), chance=other.chance * (1.0 - share))
        mine = self._replace(chance=self.chance * share)
        return Hypotheses(*(np.concatenate(parts) for parts in zip(mine, moved, strict=True)))

    def doubt(self, prior: SetPrior) -> float:
        """The probability of all sets but the first row's most probable one."""
        keys = prior.keys(self.rest)[self.row] + prior.keys(self.stream[:, None])
        first = int((self.chance * (self.row == self.row[0])).argmax())
        return float(self.chance[keys != keys[first]].sum())
