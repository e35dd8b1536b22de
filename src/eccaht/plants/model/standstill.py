"""Sensors that stop moving or fall silent for longer than they ever did in the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.clock import Clock
from eccaht.plants.data.windows import Sample, Windows

if TYPE_CHECKING:
    from eccaht.plants.model.model import Model

LONGER = 2.0  # a sensor has failed once it stands still for LONGER times its longest standstill in the history,
FEWEST_ROWS = 5  # for at least FEWEST_ROWS rows,
Kind = Literal["stuck", "silent"]
KINDS: tuple[Kind, ...] = ("stuck", "silent")
FEWEST_WINDOWS = np.array([3, 10])  # and for this many windows, by kind (three if the data have no more)


class Culprit(NamedTuple):
    """A sensor that stopped moving, or delivers nothing, from the window at `since` on: named without a search."""

    sensor: str
    kind: Kind
    since: np.datetime64

    def text(self, clock: Clock) -> str:
        """What happened to the sensor, in words."""
        if self.kind == "stuck":
            return f"{self.sensor} stopped moving: one value from {clock.show(self.since)} on"
        return f"{self.sensor} fell silent: no reading from {clock.show(self.since)} on"


class StandstillWatcher:
    """Takes one window after the other and finds the sensors that stand still.

    A sensor stands still once it repeats one value, or delivers nothing while others do, for more than twice as many
    rows as ever in the history. It is reported if it still does so in the last window, or did so in most windows: many
    sensors drop out for a while. Statuses are never stuck. Windows in which no sensor moves are ignored: the record has
    stopped, not the sensors.
    """

    def __init__(self, model: Model, names: tuple[str, ...]) -> None:
        chosen, kept = model.places(names), model.summary
        self.names, self._usual = names, float(kept.row_counts[0])
        kinds = model.reading["kinds"]
        status = np.array([kinds.get(name) == "status" for name in names])
        longest = np.stack([kept.stuck[chosen], kept.gaps[chosen]]) * float(kept.row_counts[1])
        # from here on, (2, K): one row for each of KINDS
        self._limits = np.maximum(LONGER * longest, FEWEST_ROWS - 1.0)
        self._limits[0, status] = np.inf
        self._rows, self._lasted, self._longest = np.zeros((3, 2, len(names)))  # of the present run, in windows, ever
        self._since = np.full((2, len(names)), np.datetime64("NaT", "us"))
        self._last = np.full(len(names), np.nan)
        self._windows = 0
        self._found: dict[tuple[int, int], Culprit] = {}

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """The sensors found so far."""
        reported = self._still() | (2 * self._longest > self._windows)
        return tuple(culprit for place, culprit in self._found.items() if reported[place])

    def look(self, sample: Sample) -> Sample:
        """Take a window; return it without the readings of sensors that are stuck now."""
        values, rows, flat = sample.values, sample.rows, sample.flat
        if rows is None or flat is None:
            return sample
        silent, same = np.isnan(values), flat & np.isclose(values, self._last, rtol=1e-9, atol=1e-12)
        if ((flat if self._usual > 1.0 else same) | silent).all():
            return sample
        self._windows += 1
        self._last = np.where(silent, self._last, values)
        now, goes_on = np.stack([flat & ~silent, silent]), np.stack([same, self._rows[1] > 0])
        self._since[now & ~goes_on] = sample.start
        added = np.stack([rows, np.full(values.shape, self._usual)])
        self._rows = np.where(now, np.where(goes_on, self._rows, 0.0) + added, 0.0)
        self._lasted = np.where(now, np.where(goes_on, self._lasted, 0.0) + 1.0, 0.0)
        self._longest = np.maximum(self._longest, self._lasted)
        still = self._still()
        for j, k in np.argwhere(still).tolist():
            self._found[j, k] = Culprit(self.names[k], KINDS[j], self._since[j, k])
        return sample._replace(values=np.where(still[0], np.nan, values)) if still[0].any() else sample

    def _still(self) -> NDArray[np.bool_]:
        """Which sensors stand still for longer than ever in the history, and for enough windows."""
        fewest = np.clip(self._windows, FEWEST_WINDOWS[0], FEWEST_WINDOWS)
        return np.asarray((self._rows > self._limits) & (self._lasted >= fewest[:, None]))


def culprits(windows: Windows) -> tuple[Culprit, ...]:
    """The sensors that stand still in these windows; none without a model, which says what is usual."""
    if windows.model is None:
        return ()
    watcher = StandstillWatcher(windows.model, windows.names)
    for sample in windows.samples():
        watcher.look(sample)
    return watcher.culprits
