"""Who is in the set, who is its weakest member, and who is next in line."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eccaht.arrays import Array, Index


class Ranking(NamedTuple):
    """The n largest scores and the two streams on either side of the cut."""

    members: Index  # sorted
    champion: int  # weakest member
    challenger: int  # strongest stream outside


def rank(scores: Array, n: int, order: Index) -> Ranking:
    """Split off the n largest scores; among equal scores the one of smaller `order` is the stronger.

    >>> rank(np.array([0.0, 2.0, 1.0, 1.0]), 2, order=np.array([0, 1, 3, 2]))
    Ranking(members=array([1, 3]), champion=3, challenger=2)
    """
    cut = scores.size - n
    parted = scores.copy()
    parted.partition((cut - 1, cut))
    outside, inside = parted[cut - 1], parted[cut]
    above = (scores > inside).nonzero()[0]
    level = (scores == inside).nonzero()[0]
    if outside < inside:
        rivals = (scores == outside).nonzero()[0]
        challenger = rivals[0] if rivals.size == 1 else rivals[order[rivals].argmin()]
        chosen = level
    else:
        seats = n - above.size
        queue = level[np.argpartition(order[level], (seats - 1, seats))[: seats + 1]]
        chosen, challenger = queue[:-1], queue[-1]
    champion = chosen[0] if chosen.size == 1 else chosen[order[chosen].argmax()]
    return Ranking(np.sort(np.concatenate([above, chosen])), int(champion), int(challenger))
