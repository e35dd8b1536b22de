"""Columns that never changed in the history and so are no sensors: one that moves in the rows of a plant is reported.

The replay of a recording finds the same (`model.constants.moved_constants`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eccaht.base.clock import Clock
from eccaht.plants.model.constants import ROUNDING, Moved
from eccaht.service.runtime.buffer import Readings


class Constants:
    """The constants of a model, in the columns of a buffer after its sensors; usual: their values."""

    def __init__(self, usual: Mapping[str, float], sensors: int, clock: Clock) -> None:
        self.places = {name: sensors + k for k, name in enumerate(usual)}
        self._sensors, self._names, self._clock = sensors, tuple(usual), clock
        self._usual = np.array(list(usual.values()))

    def moved(self, rows: Readings, known: frozenset[str]) -> dict[str, tuple[int, str]]:
        """Constants that move in these rows and are not known to: when first, in microseconds, and what to report."""
        values = rows.values[:, self._sensors :]
        away = np.abs(values - self._usual) > ROUNDING * np.abs(self._usual)  # never for NaN
        found = {}
        for k in np.flatnonzero(away.any(axis=0)).tolist():
            if self._names[k] in known:
                continue
            row = int(away[:, k].argmax())
            since = np.datetime64(int(rows.times[row]), "us")
            moved = Moved(self._names[k], float(self._usual[k]), float(values[row, k]), since)
            found[moved.name] = (int(rows.times[row]), moved.text(self._clock))
        return found
