"""Sensors that stop moving or fall silent for longer than they ever did in the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.data.clock import Clock
from eccaht.data.windows import Sample, Windows

if TYPE_CHECKING:
    from eccaht.model.model import Model

LONGER = 2.0  # a sensor has failed once it stands still for so many times its longest time in the history
FEWEST_ROWS = 5  # and for at least so many rows
FEWEST_WINDOWS: dict[str, int] = {"stuck": 3, "silent": 10}  # and windows; three where there are no more

Kind = Literal["stuck", "silent"]
Flags = NDArray[np.bool_]


class Culprit(NamedTuple):
    """A sensor that stopped moving, or delivers nothing, from the window at `since` on: named without a search."""

    sensor: str
    kind: Kind
    since: np.datetime64

    def told(self, clock: Clock) -> str:
        """What happened to it."""
        if self.kind == "stuck":
            return f"{self.sensor} stopped moving: one value from {clock.show(self.since)} on"
        return f"{self.sensor} fell silent: no reading from {clock.show(self.since)} on"


class Watcher:
    """Takes one window after the other and finds the sensors that stand still.

    A sensor stands still once it repeats one value, or delivers nothing while others do, for more than twice as many
    rows as ever in the history. It is reported if it still does so in the last window, or did so in most windows: many
    sensors drop out for a while. Statuses are never stuck. Windows in which no sensor moves are ignored: the record has
    stopped, not the sensors.
    """

    def __init__(self, model: Model, names: tuple[str, ...]) -> None:
        chosen, kept = model.places(names), model.summary
        self.names, self._usual = names, float(kept.row_counts[0])
        total = float(kept.row_counts[1])
        kinds = model.reading["kinds"]
        status = np.array([kinds.get(name) == "status" for name in names])
        self._limits: dict[Kind, Array] = {
            "stuck": np.where(status, np.inf, _limit(kept.stuck[chosen] * total)),
            "silent": _limit(kept.gaps[chosen] * total),
        }
        size = len(names)
        self._runs: dict[Kind, Array] = {kind: np.zeros((2, size)) for kind in self._limits}  # rows, windows
        self._since = {kind: np.full(size, np.datetime64("NaT", "us")) for kind in self._limits}
        self._last = np.full(size, np.nan)
        self._windows = 0
        self._longest: dict[Kind, Array] = {kind: np.zeros(size) for kind in self._limits}  # windows
        self._found: dict[tuple[str, Kind], Culprit] = {}

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """The sensors found so far."""
        place = {name: k for k, name in enumerate(self.names)}
        return tuple(
            culprit
            for (name, kind), culprit in self._found.items()
            if self._still(kind)[place[name]] or 2 * self._longest[kind][place[name]] > self._windows
        )

    def look(self, sample: Sample) -> Sample:
        """Take a window; return it without the readings of sensors that are stuck now."""
        values, rows, flat = sample.values, sample.rows, sample.flat
        if rows is None or flat is None:
            return sample
        silent, same = np.isnan(values), flat & np.isclose(values, self._last, rtol=1e-9, atol=1e-12)
        if ((flat if self._usual > 1.0 else same) | silent).all():
            return sample
        self._windows += 1
        self._go_on("stuck", flat & ~silent, same, rows, sample.start)
        self._go_on("silent", silent, self._runs["silent"][0] > 0, np.full(values.shape, self._usual), sample.start)
        self._last = np.where(silent, self._last, values)
        still = self._note("stuck")
        self._note("silent")
        return sample._replace(values=np.where(still, np.nan, values)) if still.any() else sample

    def _go_on(self, kind: Kind, now: Flags, before: Flags, rows: Array, start: np.datetime64) -> None:
        """Lengthen the runs of sensors that go on standing still, begin new ones, end the others."""
        run = self._runs[kind]
        self._since[kind][now & ~before] = start
        run[:] = np.where(now, np.where(before, run, 0.0) + np.stack([rows, np.ones(rows.shape)]), 0.0)

    def _note(self, kind: Kind) -> Flags:
        still = self._still(kind)
        for k in np.flatnonzero(still):
            self._found[self.names[k], kind] = Culprit(self.names[k], kind, self._since[kind][k])
        self._longest[kind] = np.maximum(self._longest[kind], self._runs[kind][1])
        return still

    def _still(self, kind: Kind) -> Flags:
        rows, windows = self._runs[kind]
        fewest = np.clip(self._windows, FEWEST_WINDOWS["stuck"], FEWEST_WINDOWS[kind])
        return np.asarray((rows > self._limits[kind]) & (windows >= fewest))


def culprits(windows: Windows) -> tuple[Culprit, ...]:
    """The sensors that stand still in these windows; none without a model, which says what is usual."""
    if windows.model is None:
        return ()
    watcher = Watcher(windows.model, windows.names)
    for sample in windows.samples():
        watcher.look(sample)
    return watcher.culprits


def _limit(rows: Array) -> Array:
    return np.maximum(LONGER * rows, FEWEST_ROWS - 1.0)
