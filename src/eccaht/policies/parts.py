"""What a policy is made of: protocols for beliefs and choosers, and what passes between them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from eccaht.arrays import Array
from eccaht.posterior import Capabilities, Confidence, Likelihood, Ranker, Ranking
from eccaht.posterior.likelihood import Fit
from eccaht.problem import Problem
from eccaht.stopping import StoppingRule

__all__ = ["Belief", "Capabilities", "Choice", "Chooser", "Memoryless", "Parts", "View", "check_able"]


class Belief(Protocol):
    """What all readings say, changed by `update` and `observe` alone.

    One score a stream: inherit `posterior.PerStream`, which answers what only whole sets can tell with None.
    takes_inflation: can it weigh readings of unequal noise?
    """

    takes_inflation: bool

    @property
    def can(self) -> Capabilities:
        """What a policy with this belief can do."""

    @property
    def scores(self) -> Array:
        """What streams are ranked by, read-only."""

    @property
    def beliefs(self) -> Array:
        """The probability of each stream of being anomalous."""

    @property
    def likelihood(self) -> Likelihood | None:
        """What all readings say about sets of streams."""

    def update(self, c: Array, y: float, inflation: float = 1.0) -> None:
        """Add one reading, of so many times the usual noise variance."""

    def observe(self, x: Array, excess: Array | None = None) -> None:
        """Add a reading of all streams, NaN where one was not read; a ValueError where the belief cannot."""

    def ranking(self, rank: Ranker) -> Ranking:
        """The set, its weakest swap and the lead of it; `rank` breaks ties."""

    def confidence(self) -> Confidence | None:
        """The posterior probability of the set."""

    def fit(self) -> Fit | None:
        """How well the readings fit the set."""

    def shifts(self) -> tuple[Array, Array] | None:
        """Posterior mean and standard deviation of the shifts of the set."""

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


def check_able(can: Capabilities, problem: Problem, who: str = "this policy") -> None:
    """Refuse a problem that needs what an algorithm cannot do."""
    if problem.sizes[0] != problem.sizes[1] and not can.open_number:
        needed = f"a known number of anomalies, not {problem.sizes}"
        raise ValueError(f"{who} needs {needed}: {_able('open_number')} do without")
    if problem.unknown_shift and not can.unknown_shift:
        raise ValueError(f"{who} needs known shifts: {_able('unknown_shift')} do without")


def _able(capability: str) -> str:
    from eccaht.policies.catalogue import CATALOGUE

    return " and ".join(name for name, entry in CATALOGUE.items() if getattr(entry.can, capability))
