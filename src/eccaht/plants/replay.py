"""Recorded windows as an environment: a reading is the weighted sum of the sensors in the next window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, as_count, frozen, inner, l1_norm
from eccaht.base.clock import PLAIN, Clock
from eccaht.streams import Problem, Reading, Window

if TYPE_CHECKING:
    from eccaht.plants.data.windows import Sample, Windows
    from eccaht.plants.model.gaps import Culprit, RowNoise, StandstillWatcher
    from eccaht.plants.model.model import Model
    from eccaht.streams.covariance.base import Excess

__all__ = ["EndOfData", "Replay"]

_NOTHING_NEW = 1e-8  # share of the weights left after projection: less is rounding error
ALIKE = 1.1  # largest inflation at which a policy that takes no inflation may treat a window as full


class EndOfData(ValueError):
    """There is no further window."""


class Replay:
    """Reads c'x of one recorded window after the other, `per_window` times each.

    A sensor that delivered nothing in a window gets no weight there, so the weights used may differ from those
    asked for: pass the weights of the `Reading` to the policy. Where all the weight falls on such sensors the window
    is skipped.

    Readings c_1'x and c_2'x of one window share its noise; their covariance is c_1'S c_2. Treated as independent they
    would count evidence twice. So a later measurement of a window is made S-orthogonal to the earlier ones,
    c_2 - (c_2'S c_1 / c_1'S c_1) c_1, and that is what is read: independent of them, with nothing lost. As many
    readings as there are sensors then carry exactly the evidence of the whole vector. A measurement that
    adds nothing to the earlier ones of its window is read in the next.

    A window with fewer rows than usual is noisier: its readings carry the `inflation` of their noise variance, which
    the policy gets too. A window that repeats the one before in every sensor is the same observation and is skipped.
    A sensor that has stopped moving counts as missing from the window in which that is noticed.

    windows: a `Windows`, or any iterable of (start, values) pairs or `Sample`s, such as a file that still grows.
    model: what prepared them, if they are no `Windows`; without one all windows count as full.

    >>> problem = Problem(np.eye(2), shift=1.0, n_anomalies=1, budget=1.0)
    >>> minute = np.datetime64("2024-05-01T08:00")
    >>> replay = Replay([(minute, np.array([2.0, np.nan])), (minute + 1, np.array([1.0, 3.0]))], problem)
    >>> replay.read([0.5, 0.5]).weights, replay.read([0.5, 0.5]).value
    (array([0.5, 0. ]), 2.0)
    """

    def __init__(
        self,
        windows: Windows | Iterable[tuple[np.datetime64, Array] | Sample],
        problem: Problem,
        *,
        per_window: int = 1,
        model: Model | None = None,
    ) -> None:
        self.problem = problem
        self.model = getattr(windows, "model", None) if model is None else model
        self.n_windows = 0  # taken so far, skipped ones included
        self.n_skipped = 0  # skipped without a reading
        self.n_short = 0  # of these, because they have too few rows
        self.repeated: list[np.datetime64] = []  # of these, those that repeat the window before
        self.read_from: list[Window] = []  # every window that was read from, with all its values
        self._per_window = as_count(per_window, "per_window", least=1)
        self._windows, self._source = windows, _source(windows, problem)
        self._rows, self._watcher = _knowledge(self.model, problem)
        self._window: tuple[np.datetime64, Array] | None = None
        self._excess: Excess | None = None  # of this window
        self._before: Array | None = None  # values of the window before
        self._used: list[tuple[Array, Array, float]] = []  # c, S c and c'S c of the readings of this window
        self._n_read = 0  # in this window

    @property
    def clock(self) -> Clock:
        """How times are shown; a growing file knows it once there is a row."""
        return getattr(self._windows, "clock", PLAIN)

    def read(self, c: ArrayLike, *, short: bool = True) -> Reading | None:
        """Read the measurement c, in this window or the first later one that can; None where the data end.

        short: whether windows with so few rows that their noise is not the usual one may be read.
        """
        asked = self.problem.checked_measurement(c)
        while True:
            window = self._open()
            if window is None:
                return None
            time, x = window
            weights = self._innovation(np.where(np.isnan(x), 0.0, asked))
            inflation = 1.0 if weights is None else self._inflation(weights)
            if weights is not None and (short or inflation <= ALIKE):
                self._remember(weights)
                value = inner(weights, np.nan_to_num(x, nan=0.0))
                return Reading(weights, value, self.n_windows - 1, time, inflation, x)
            self.n_short += weights is not None and self._n_read == 0
            self._close()

    def whole(self) -> Window | None:
        """Read the next window that holds any value, all sensors at once; None where the data end."""
        if self._window is not None:
            self._close()
        while (window := self._open()) is not None:
            if not np.isnan(window[1]).all():
                self._n_read = self._per_window
                return self._keep()
            self._close()
        return None

    def measure(self, c: ArrayLike) -> float:
        """Return the reading of exactly the weights c: for complete windows and one reading a window.

        Windows whose noise is not the usual one, because they lack rows, are skipped: `read` gives their inflation.
        """
        if self._per_window > 1:
            raise ValueError("readings of one window share its noise: use read() where per_window is more than 1")
        reading = self.read(c, short=False)
        if reading is None:
            raise EndOfData(f"the data end after {self.n_windows} windows")
        if not np.array_equal(reading.weights, self.problem.checked_measurement(c)):
            k = int(np.flatnonzero(reading.weights != self.problem.checked_measurement(c))[0])
            raise ValueError(f"sensor {self.problem.label(k)} is missing at {reading.time}: use read()")
        return reading.value

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """Sensors that stood still or delivered nothing for longer than ever in the history; they get no weight."""
        return () if self._watcher is None else self._watcher.culprits

    def _remember(self, c: Array) -> None:
        if self._n_read == 0:
            self._keep()
        self._n_read += 1
        if self._n_read < self._per_window:  # needed only if this window will be read again
            Sc = self.problem.covariance.matvec(c)
            if self._excess is not None:
                Sc = Sc + self._excess.matvec(c)
            self._used.append((c, Sc, inner(c, Sc)))

    def _keep(self) -> Window:
        assert self._window is not None
        time, x = self._window
        self.read_from.append(Window(x, self.n_windows - 1, time, self._excess))
        return self.read_from[-1]

    def _inflation(self, c: Array) -> float:
        """Noise variance of c'x in this window over that in a full one."""
        return 1.0 if self._excess is None else 1.0 + self._excess.quad(c) / self.problem.noise_variance(c)

    def _open(self) -> tuple[np.datetime64, Array] | None:
        """The window to read from, the next one if this one is used up."""
        if self._window is not None and self._n_read >= self._per_window:
            self._close()
        if self._window is None and (sample := self._next()) is not None:
            self._window, self._excess = (sample.start, sample.values), None
            if self._rows is not None and sample.rows is not None:
                self._excess = self._rows.excess(sample.rows)
        return self._window

    def _next(self) -> Sample | None:
        """The next window that does not repeat the one before."""
        for sample in self._source:
            self.n_windows += 1
            repeats = self._before is not None and np.array_equal(self._before, sample.values, equal_nan=True)
            if not repeats:
                self._before = sample.values
                return sample if self._watcher is None else self._watcher.look(sample)
            self.n_skipped += 1
            self.repeated.append(sample.start)
        return None

    def _close(self) -> None:
        self.n_skipped += self._n_read == 0
        self._window, self._used, self._n_read = None, [], 0

    def _innovation(self, c: Array) -> Array | None:
        """The part of c that is S-orthogonal to what was read in this window, on the scale of c."""
        if not c.any():
            return None
        if not self._used:
            return frozen(c)
        new = c.copy()
        for _ in range(2):  # twice: one projection leaves rounding errors as large as those of what it removes
            for used, Sc, variance in self._used:
                new -= (inner(new, Sc) / variance) * used
        size, before = l1_norm(new), l1_norm(c)
        return frozen(new * (before / size)) if size > _NOTHING_NEW * before else None


def _source(windows: Windows | Iterable[tuple[np.datetime64, Array] | Sample], problem: Problem) -> Iterator[Sample]:
    from eccaht.plants.data.windows import Sample, Windows

    if not isinstance(windows, Windows):
        return (Sample(*window) for window in windows)
    if problem.names is not None and tuple(windows.names) != problem.names:
        raise ValueError("the windows and the problem have different sensors, or the same in another order")
    if windows.values.shape[1] != problem.size:
        raise ValueError(f"the windows have {windows.values.shape[1]} sensors, the problem {problem.size}")
    return windows.samples()


def _knowledge(model: Model | None, problem: Problem) -> tuple[RowNoise | None, StandstillWatcher | None]:
    """What the model knows about missing rows and standing still, for the sensors of the problem."""
    if model is None:
        return None, None
    from eccaht.plants.model.gaps import RowNoise, StandstillWatcher

    names = problem.names or model.names
    return RowNoise.of(model, names, problem.covariance), StandstillWatcher(model, names)
