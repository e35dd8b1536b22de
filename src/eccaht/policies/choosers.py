"""How the next measurement is chosen from what is believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from eccaht.arrays import Array
from eccaht.beliefs import Ranking


class Choice(NamedTuple):
    """A measurement and the pair it separates, if it was chosen for one."""

    weights: Array
    pair: tuple[int, int] | None


class Chooser(Protocol):
    """Chooses a measurement; what it draws comes from the policy's own generator."""

    def choose(self, scores: Array, ranking: Ranking, rng: np.random.Generator) -> Choice:
        """Return the next measurement."""


Selector = Callable[[Array, Ranking, np.random.Generator], tuple[int, int]]
PairToWeights = Callable[[int, int], Array]


def champion_challenger(
    scores: Array,  # noqa: ARG001
    ranking: Ranking,
    rng: np.random.Generator,  # noqa: ARG001
) -> tuple[int, int]:
    """The weakest member of the set and the strongest stream outside (paper, Algorithm 1, lines 7 to 10)."""
    return ranking.champion, ranking.challenger


class Pair:
    """Select a pair, then design the measurement that separates it."""

    def __init__(self, select: Selector, design: PairToWeights) -> None:
        self._select, self._design = select, design

    def choose(self, scores: Array, ranking: Ranking, rng: np.random.Generator) -> Choice:
        """Return the measurement for the selected pair."""
        i, j = self._select(scores, ranking, rng)
        return Choice(self._design(i, j), (i, j))
