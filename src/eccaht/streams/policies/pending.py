"""Measurements that were asked for together and whose readings have not come yet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, frozen
from eccaht.base.stored import whole_numbers

_PATIENCE = 4  # younger readings, at least, by which a measurement is overtaken before it is taken for late


class Awaited(NamedTuple):
    """A measurement that is under way.

    call: of `ask` by which it was asked for. overtaken: readings of later calls that came before its own. patience: how
    many of those are nothing unusual.
    """

    weights: Array  # (K,), read-only
    call: int
    patience: int
    overtaken: int = 0

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

    def __init__(self, size: int) -> None:
        self._size = size
        self._awaited: tuple[Awaited, ...] = ()

    def __len__(self) -> int:
        return len(self._awaited)

    @property
    def expected(self) -> tuple[Array, ...]:
        """The weights of those whose readings are not late."""
        return tuple(each.weights for each in self._awaited if not each.late)

    @property
    def matrix(self) -> Array:
        """The weights of all, (m, K), read-only."""
        return frozen(np.array([each.weights for each in self._awaited]).reshape(-1, self._size))

    def extend(self, batch: list[Array]) -> None:
        call = self._awaited[-1].call + 1 if self._awaited else 0
        patience = max(_PATIENCE, len(self.expected) + len(batch))
        self._awaited += tuple(Awaited(weights, call, patience) for weights in batch)

    def remove(self, weights: Array, *, arrived: bool = False) -> bool:
        """Take out the first with these very weights; is there one? arrived: its reading came."""
        for place, known in enumerate(self._awaited):
            if np.array_equal(known.weights, weights):
                rest = self._awaited[:place] + self._awaited[place + 1 :]
                if arrived:
                    rest = tuple(e._replace(overtaken=e.overtaken + (e.call < known.call)) for e in rest)
                self._awaited = rest
                return True
        return False

    def state(self) -> dict[str, Array]:
        """What a file must keep, if there is anything."""
        if not self._awaited:
            return {}
        ages = np.array([each[1:] for each in self._awaited], dtype=float)
        return {"pending": self.matrix, "pending.ages": ages}

    def restore(self, weights: list[Array], ages: Array) -> None:
        numbers = whole_numbers(ages, "ages of measurements", most=2**31)
        good = numbers.shape == (len(weights), 3) and (np.diff(numbers[:, 0]) >= 0).all()
        if not good or (numbers[:, 1] < _PATIENCE).any():
            raise ValueError("its pending measurements are damaged")
        self._awaited = tuple(Awaited(c, *age) for c, age in zip(weights, numbers.tolist(), strict=True))
