"""What a policy is made of: protocols for beliefs and choosers, and what passes between them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from eccaht.arrays import Array
from eccaht.posterior import Ranker, Ranking
from eccaht.stopping import StoppingRule


class Belief(Protocol):
    """Evidence per stream, changed by `update` alone; `takes_inflation`: can it weigh readings of unequal noise?"""

    takes_inflation: bool

    @property
    def scores(self) -> Array:
        """What streams are ranked by, read-only."""

    @property
    def beliefs(self) -> Array:
        """The probability of being anomalous that the evidence stands for."""

    def update(self, c: Array, y: float, inflation: float = 1.0) -> None:
        """Add one reading, of so many times the usual noise variance."""

    def state(self) -> dict[str, Array]:
        """What a file must keep."""

    def restore(self, state: dict[str, Array], n_told: int) -> None:
        """Go on from a state kept after so many readings; one that no readings lead to is a ValueError."""


class View(NamedTuple):
    """What a chooser may look at. Whatever it draws comes from the policy's own generator."""

    belief: Belief
    ranking: Ranking
    rank: Ranker  # breaks ties
    n_told: int
    rng: np.random.Generator


class Choice(NamedTuple):
    """A measurement and the pair it separates, if it was chosen for one."""

    weights: Array
    pair: tuple[int, int] | None = None


class Chooser(Protocol):
    """Chooses a measurement; what it must remember it takes from what it is told."""

    def choose(self, view: View) -> Choice:
        """Return the next measurement."""

    def told(self, c: Array) -> None:
        """Note that the measurement c was made, asked for or not."""

    def state(self) -> dict[str, Array]:
        """What a file must keep."""

    def restore(self, state: dict[str, Array], n_told: int) -> None:
        """Go on from a state kept after so many readings; one that no readings lead to is a ValueError."""


class Memoryless:
    """A chooser that looks at the present only."""

    def told(self, c: Array) -> None:
        """Nothing to note."""

    def state(self) -> dict[str, Array]:
        """Nothing to keep."""
        return {}

    def restore(self, state: dict[str, Array], n_told: int) -> None:
        """Nothing to restore."""


class Parts(NamedTuple):
    """A composed algorithm; `own_stop` is the stopping rule of its own source, where it has one."""

    belief: Belief
    chooser: Chooser
    own_stop: StoppingRule | None = None
