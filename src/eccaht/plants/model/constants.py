"""Columns that never changed in the history and so are no sensors: one that moves now is worth a word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from eccaht.base.clock import Clock
from eccaht.plants.data.reading import Faults
from eccaht.plants.model.model import Model
from eccaht.plants.model.prepare import Notation

ROUNDING = 1e-9  # of the usual value: files round


class Moved(NamedTuple):
    """A column that read `usual` in all of the history, and `read` at the time `since`, for the first time."""

    name: str
    usual: float
    read: float
    since: np.datetime64

    def text(self, clock: Clock) -> str:
        return f"{self.read:.6g} since {clock.show(self.since)}, {self.usual:.6g} in all of the history"


def moved_constants(
    model: Model, data: Any, *, start: Any = None, stop: Any = None, notation: Notation | None = None
) -> list[Moved]:
    """The constants of the history that are none in new data, in the order of their columns.

    data, start, stop, notation: as for `Model.prepare`. Columns that the data do not have are left out.
    """
    notation = notation or Notation()
    source = notation.recorded(model, data)
    usual = {name: value for name, value in model.constants.items() if not source.lacks(name)}
    if not usual:
        return []
    expected = replace(notation.expected(model), names=tuple(usual), levels={})
    table = source.read_as(expected, missing="allow", limits=(start, stop), faults=Faults())
    moved: dict[str, Moved] = {}
    for batch in table.batches({}):
        for k, name in enumerate(table.names):
            away = np.abs(batch.readings[:, k] - usual[name]) > ROUNDING * abs(usual[name])  # never for NaN
            if name not in moved and away.any():
                first = int(away.argmax())
                moved[name] = Moved(name, usual[name], float(batch.readings[first, k]), batch.times[first])
    return [moved[name] for name in usual if name in moved]
