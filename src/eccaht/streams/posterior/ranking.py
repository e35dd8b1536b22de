"""The set of the n largest scores, its weakest member and the strongest stream outside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index

_SMALL = 512  # up to here sorting is faster than selecting


class Ranking(NamedTuple):
    """The n largest scores and the two streams on either side of the cut."""

    members: Index  # sorted
    champion: int  # weakest member
    challenger: int  # strongest stream outside
    lead: float  # what separates the two

    def among(self, rank: Ranker, scores: Array, available: NDArray[np.bool_]) -> Ranking:
        """The same set, with the weakest member and the strongest outsider that are available.

        Where all available streams are on one side of the cut, the two of them nearest to it; where only one is
        available, that one and -1.
        """
        streams = available.nonzero()[0]
        if streams.size == 1:
            return self._replace(champion=int(streams[0]), challenger=-1)
        inside = min(max(int(np.isin(streams, self.members).sum()), 1), streams.size - 1)
        nearest = Ranker(rank.order[streams].argsort().argsort())(scores[streams], inside)
        return self._replace(champion=int(streams[nearest.champion]), challenger=int(streams[nearest.challenger]))


class Ranker:
    """Splits off the n largest scores; among equal scores the one of smaller `order` is the stronger.

    order: a permutation, the rank of each stream among equals.

    >>> Ranker(np.array([0, 1, 3, 2]))(np.array([0.0, 2.0, 1.0, 1.0]), 2)
    Ranking(members=array([1, 3]), champion=3, challenger=2, lead=0.0)
    """

    def __init__(self, order: Index) -> None:
        self.order = order
        self._queue = np.empty_like(order)  # streams by their order
        self._queue[order] = np.arange(order.size)

    def __call__(self, scores: Array, n: int) -> Ranking:
        cut = scores.size - n
        parted = scores.copy()
        if parted.size <= _SMALL:
            parted.sort()
        else:
            parted.partition((cut - 1, cut))
        outside, inside = parted[cut - 1], parted[cut]
        if outside < inside:
            members = (scores >= inside).nonzero()[0]
            champion = self._last(members[scores[members] == inside])
            challenger = self._first((scores == outside).nonzero()[0])
            return Ranking(members, champion, challenger, float(inside - outside))
        above = (scores > inside).nonzero()[0]
        chosen = self._first_in_queue(scores == inside, n - above.size + 1)
        members = np.sort(np.concatenate([above, chosen[:-1]]))
        return Ranking(members, int(chosen[-2]), int(chosen[-1]), 0.0)

    def _first_in_queue(self, waiting: NDArray[np.bool_], count: int) -> Index:
        """The first `count` waiting streams, looking no further down the queue than needed."""
        found, start, length = np.empty(0, dtype=np.intp), 0, 256
        while found.size < count:
            here = self._queue[start : start + length]
            found = np.concatenate([found, here[waiting[here]]])
            start, length = start + length, 2 * length
        return found[:count]

    def _first(self, streams: Index) -> int:
        return int(streams[0] if streams.size == 1 else streams[self.order[streams].argmin()])

    def _last(self, streams: Index) -> int:
        return int(streams[0] if streams.size == 1 else streams[self.order[streams].argmax()])
