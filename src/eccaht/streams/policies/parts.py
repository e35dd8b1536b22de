"""What a policy is made of: a belief, a chooser, and what passes between them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from eccaht.base.arrays import Array
from eccaht.streams.designs import Mask
from eccaht.streams.posterior import Belief, Capabilities, Ranker, Ranking
from eccaht.streams.problem import Problem
from eccaht.streams.stopping import StoppingRule

__all__ = [
    "Belief",
    "Capabilities",
    "Choice",
    "Chooser",
    "Parts",
    "View",
    "check_able",
    "check_batches",
    "check_shared_noise",
    "check_whole_vectors",
]


class View(NamedTuple):
    """What a chooser may look at. Random draws come from `rng`, the policy's own generator.

    While measurements are under way, belief and ranking are those that are expected after them, unless the chooser
    `foresees` them itself. Where not all streams are available, the champion and the challenger of the ranking are;
    the challenger is -1 if only one stream is.
    """

    belief: Belief
    ranking: Ranking
    rank: Ranker  # ranks scores and breaks ties
    n_told: int
    rng: np.random.Generator
    pending: tuple[Array, ...] = ()  # measurements that are under way and not late
    available: Mask | None = None  # the streams that can be measured now, where not all can
    n_asked: int = 0  # measurements read or under way, with those that are late


class Choice(NamedTuple):
    """A measurement and the pair it separates, if it was chosen for one."""

    weights: Array
    pair: tuple[int, int] | None = None


class Chooser(Protocol):
    """Chooses a measurement. Its state, by default none, changes only in `record`.

    foresees: does it take account of measurements under way by `view.pending`? If not, it is shown what is expected.
    """

    foresees: bool = False

    def choose(self, view: View) -> Choice:
        """Return the next measurement."""

    def record(self, c: Array) -> None:  # noqa: ARG002
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
    problem.check_gaussian("searches")
    if problem.sizes[0] != problem.sizes[1] and not can.open_number:
        needed = f"a known number of anomalies, not {problem.sizes}"
        raise ValueError(f"{who} needs {needed}: {_able('open_number')} do without")
    if problem.unknown_shift and not can.unknown_shift:
        raise ValueError(f"{who} needs known shifts: {_able('unknown_shift')} do without")


def check_whole_vectors(can: Capabilities) -> None:
    """Refuse readings of all streams at once where an algorithm cannot take them."""
    if not can.whole_vectors:
        raise ValueError(f"only {_able('whole_vectors')} take whole vectors: others score weighted sums alone")


def check_batches(can: Capabilities, what: str) -> None:
    """Refuse several measurements at a time, or some of the streams, where an algorithm goes one fixed way."""
    if not can.batches:
        raise ValueError(
            f"{what} is not for this policy, which goes one way, reading by reading: use another, or ask()"
        )


def check_shared_noise(can: Capabilities) -> None:
    """Refuse readings of one moment where an algorithm cannot take them."""
    if not can.shared_noise:
        raise ValueError("this policy takes no readings that share noise: tell them one by one, or use joint")


def _able(capability: str) -> str:
    from eccaht.streams.policies.catalogue import CATALOGUE

    *first, last = (name for name, entry in CATALOGUE.items() if getattr(entry.can, capability))
    return f"{', '.join(first)} and {last}"
