"""What a policy is made of: a belief, a chooser, what passes between them, and the measurements under way."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from eccaht.base.arrays import Array, frozen
from eccaht.base.codec import Field, Fields, Part
from eccaht.streams.designs import Mask
from eccaht.streams.posterior import Belief, Capabilities, Ranker, Ranking
from eccaht.streams.problem import Problem
from eccaht.streams.stopping import StoppingRule

_PATIENCE = 4  # younger readings, at least, by which a measurement is overtaken before it is taken for late


class View(NamedTuple):
    """What a chooser may look at. Random draws come from `rng`, the policy's own generator.

    While measurements are under way, belief and ranking are those that are expected after them, unless the chooser
    `foresees` them itself. Where not all streams are available, the champion and the challenger of the ranking are;
    the challenger is -1 if only one stream is.
    """

    belief: Belief
    ranking: Ranking
    rank: Ranker  # ranks scores and breaks ties
    n_readings: int
    rng: np.random.Generator
    pending: tuple[Array, ...] = ()  # measurements that are under way and not late
    available: Mask | None = None  # the streams that can be measured now, where not all can
    n_asked: int = 0  # measurements read or under way, with those that are late


class Choice(NamedTuple):
    """A measurement and the pair it separates, if it was chosen for one."""

    weights: Array
    pair: tuple[int, int] | None = None


class Chooser(Protocol):
    """Chooses a measurement. What it remembers, by default nothing, changes only in `record`.

    FIELDS: what a file must keep of it.
    foresees: does it take account of measurements under way by `view.pending`? If not, it is shown what is expected.
    """

    FIELDS: ClassVar[Fields] = ()
    foresees: bool = False

    def choose(self, view: View) -> Choice:
        """Return the next measurement."""

    def record(self, c: Array) -> None:  # noqa: ARG002
        """Note that the measurement c was made, whether it was asked for or not."""
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
            f"{what} is refused: this policy is sequential and cannot choose batches; call ask(), or use joint"
        )


def _able(capability: str) -> str:
    from eccaht.streams.policies.catalogue import CATALOGUE

    *first, last = (name for name, entry in CATALOGUE.items() if getattr(entry.can, capability))
    return f"{', '.join(first)} and {last}"


@dataclass(frozen=True, eq=False)
class _Awaited:
    """A measurement that is under way.

    call: of `ask` by which it was asked for. overtaken: readings of later calls that came before its own. patience: how
    many of those are nothing unusual.
    """

    weights: Array  # (K,), read-only
    call: int
    patience: int
    overtaken: int = 0

    FIELDS = (
        Field("weights", ("K",)),
        Field("call", (), int, high=2**31),
        Field("patience", (), int, low=_PATIENCE, high=2**31),
        Field("overtaken", (), int, high=2**31),
    )

    @property
    def late(self) -> bool:
        """Has it been overtaken by so many that its reading may never come?"""
        return self.overtaken >= self.patience


class Pending:
    """What is under way, in the order in which it was asked for; the same weights may be there more than once.

    >>> pending = Pending(2)
    >>> pending.extend([frozen(np.array([1.0, 0.0]))])
    >>> pending.remove(np.array([1.0, 0.0])), pending.remove(np.array([1.0, 0.0]))
    (True, False)
    """

    FIELDS = (Part("awaited", _Awaited, many=True),)

    def __init__(self, size: int) -> None:
        self._size = size
        self.awaited: tuple[_Awaited, ...] = ()

    @property
    def expected(self) -> tuple[Array, ...]:
        """The weights of those whose readings are not late."""
        return tuple(each.weights for each in self.awaited if not each.late)

    @property
    def matrix(self) -> Array:
        """The weights of all, (m, K), read-only."""
        return frozen(np.array([each.weights for each in self.awaited]).reshape(-1, self._size))

    def extend(self, batch: list[Array]) -> None:
        call = self.awaited[-1].call + 1 if self.awaited else 0
        patience = max(_PATIENCE, len(self.expected) + len(batch))
        self.awaited += tuple(_Awaited(weights, call, patience) for weights in batch)

    def remove(self, weights: Array, *, arrived: bool = False) -> bool:
        """Take out the first with these very weights; is there one? arrived: its reading came."""
        for place, known in enumerate(self.awaited):
            if np.array_equal(known.weights, weights):
                rest = self.awaited[:place] + self.awaited[place + 1 :]
                if arrived:
                    rest = tuple(replace(e, overtaken=e.overtaken + (e.call < known.call)) for e in rest)
                self.awaited = rest
                return True
        return False
