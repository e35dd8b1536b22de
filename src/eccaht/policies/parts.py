"""What a policy is made of: a belief, a chooser, and what passes between them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from eccaht.arrays import Array
from eccaht.posterior import Belief, Capabilities, Ranker, Ranking
from eccaht.problem import Problem
from eccaht.stopping import StoppingRule

__all__ = ["Belief", "Capabilities", "Choice", "Chooser", "Parts", "View", "check_able", "check_whole_vectors"]


class View(NamedTuple):
    """What a chooser may look at. Random draws come from `rng`, the policy's own generator."""

    belief: Belief
    ranking: Ranking
    rank: Ranker  # ranks scores and breaks ties
    n_told: int
    rng: np.random.Generator


class Choice(NamedTuple):
    """A measurement and the pair it separates, if it was chosen for one."""

    weights: Array
    pair: tuple[int, int] | None = None


class Chooser(Protocol):
    """Chooses a measurement. Its state, by default none, changes only in `told`."""

    def choose(self, view: View) -> Choice:
        """Return the next measurement."""

    def told(self, c: Array) -> None:  # noqa: ARG002
        """Note that the measurement c was made, whether it was asked for or not."""
        return

    def state(self) -> dict[str, Array]:
        """The arrays that a file must hold to continue from here."""
        return {}

    def restore(self, state: dict[str, Array], n_told: int) -> None:  # noqa: ARG002
        """Continue from a state saved after `n_told` readings; an impossible state is a ValueError."""
        return


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


def check_whole_vectors(can: Capabilities) -> None:
    """Refuse readings of all streams at once where an algorithm cannot take them."""
    if not can.whole_vectors:
        raise ValueError(f"only {_able('whole_vectors')} take whole vectors: others score weighted sums alone")


def _able(capability: str) -> str:
    from eccaht.policies.catalogue import CATALOGUE

    *first, last = (name for name, entry in CATALOGUE.items() if getattr(entry.can, capability))
    return f"{', '.join(first)} and {last}"
