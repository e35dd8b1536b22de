"""Readings on their way into a plant, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array


@dataclass(frozen=True, eq=False)
class Rows:
    """Readings as they came, in raw units.

    times: (N,), datetime64[us] on the clock of the plant's model; names: of the M columns, distinct, unknown ones are
    ignored and counted. values: (N, M), NaN where a reading is missing or bad, never the last value.
    """

    times: NDArray[np.datetime64]
    names: tuple[str, ...]
    values: Array

    def __post_init__(self) -> None:
        times = np.asarray(self.times).astype("datetime64[us]")
        values = np.asarray(self.values, dtype=np.float64)
        if values.shape != (len(times), len(self.names)):
            raise ValueError(f"{len(times)} rows of {len(self.names)} columns cannot have values of {values.shape}")
        if len(set(self.names)) < len(self.names):
            raise ValueError("two columns have the same name: rename one")
        if np.isnat(times).any():
            raise ValueError("a row has no time: leave the row out")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "values", values)


class Taken(NamedTuple):
    """What became of rows: how many came; of these, how many too late for their window, how many were there before.

    windows: how many they completed. unknown: columns that the model does not have. ahead: rows from the future, left
    out. held: rows that wait now because they are ahead of all others, until others agree with them.
    """

    rows: int
    late: int
    duplicate: int
    windows: int
    unknown: tuple[str, ...] = ()
    ahead: int = 0
    held: int = 0


class Busy(Exception):
    """Not at the moment; after: seconds after which to try again; broken: it is the store that fails."""

    def __init__(self, message: str, after: float = 1.0, *, broken: bool = False) -> None:
        super().__init__(message)
        self.after, self.broken = after, broken


class UnknownPlant(KeyError):
    """There is no plant of this name."""

    def __str__(self) -> str:
        return f"there is no plant {self.args[0]!r}"


@dataclass(frozen=True)
class RowGap:
    """A stretch without rows: how long, and the time of the first row after it, on the clock of the plant."""

    seconds: float
    until: str


@dataclass(frozen=True)
class SourceState:
    """What a source says of itself; rows: delivered so far, last: when the last of them came, gap: the last in them."""

    state: Literal["connecting", "running", "waiting", "broken"]
    since: datetime
    detail: str = ""
    rows: int = field(default=0)
    last: datetime | None = None
    gap: RowGap | None = None
