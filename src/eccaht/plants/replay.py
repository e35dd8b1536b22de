"""Recorded windows as an environment: a reading is the weighted sum of the sensors in the next window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, as_count, frozen, inner, l1_norm
from eccaht.streams import Problem, Reading

if TYPE_CHECKING:
    from eccaht.plants.data.windows import Sample, Windows

_NOTHING_NEW = 1e-8  # share of the weights left after projection: less is rounding error
_FULL = 0.5  # share of the usual rows from which on a window counts


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

    A window with less than half of the usual rows is noisier than the problem says, and is skipped, as a watch skips
    it. So is a window that repeats the one before in every sensor, which is the same observation.

    windows: a `Windows`, or any iterable of (start, values) pairs, all of which count as full.

    >>> problem = Problem(np.eye(2), shift=1.0, n_anomalies=1, budget=1.0)
    >>> minute = np.datetime64("2024-05-01T08:00")
    >>> replay = Replay([(minute, np.array([2.0, np.nan])), (minute + 1, np.array([1.0, 3.0]))], problem)
    >>> replay.read([0.5, 0.5]).weights, replay.read([0.5, 0.5]).value
    (array([0.5, 0. ]), 2.0)
    """

    def __init__(
        self,
        windows: Windows | Iterable[tuple[np.datetime64, Array]],
        problem: Problem,
        *,
        per_window: int = 1,
    ) -> None:
        self.problem = problem
        self.n_windows = 0  # taken so far, skipped ones included
        self.n_skipped = 0  # skipped without a reading
        self._per_window = as_count(per_window, "per_window", least=1)
        self._source = _source(windows, problem)
        model = getattr(windows, "model", None)
        self._least_rows = 0.0 if model is None else _FULL * model.usual_rows
        self._window: tuple[np.datetime64, Array] | None = None
        self._before: Array | None = None  # values of the window before
        self._used: list[tuple[Array, Array, float]] = []  # c, S c and c'S c of the readings of this window
        self._n_read = 0  # in this window

    def read(self, c: ArrayLike) -> Reading | None:
        """Read the measurement c, in this window or the first later one that can; None where the data end."""
        asked = self.problem.checked_measurement(c)
        while (window := self._open()) is not None:
            time, x = window
            weights = self._innovation(np.where(np.isnan(x), 0.0, asked))
            if weights is not None:
                self._remember(weights)
                value = inner(weights, np.nan_to_num(x, nan=0.0))
                return Reading(weights, value, self.n_windows - 1, time)
            self._close()
        return None

    def _remember(self, c: Array) -> None:
        self._n_read += 1
        if self._n_read < self._per_window:  # needed only if this window will be read again
            Sc = self.problem.covariance.matvec(c)
            self._used.append((c, Sc, inner(c, Sc)))

    def _open(self) -> tuple[np.datetime64, Array] | None:
        """The window to read from, the next one if this one is used up."""
        if self._window is not None and self._n_read >= self._per_window:
            self._close()
        if self._window is None and (sample := self._next()) is not None:
            self._window = sample.start, sample.values
        return self._window

    def _next(self) -> Sample | None:
        """The next window that has enough rows and does not repeat the one before."""
        for sample in self._source:
            self.n_windows += 1
            repeats = self._before is not None and np.array_equal(self._before, sample.values, equal_nan=True)
            short = sample.rows is not None and float(sample.rows.max(initial=0.0)) < self._least_rows
            self._before = sample.values
            if not repeats and not short:
                return sample
            self.n_skipped += 1
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


def _source(windows: Windows | Iterable[tuple[np.datetime64, Array]], problem: Problem) -> Iterator[Sample]:
    from eccaht.plants.data.windows import Sample, Windows

    if not isinstance(windows, Windows):
        return (Sample(*window) for window in windows)
    if problem.names is not None and tuple(windows.names) != problem.names:
        raise ValueError("the windows and the problem have different sensors, or the same in another order")
    if windows.values.shape[1] != problem.size:
        raise ValueError(f"the windows have {windows.values.shape[1]} sensors, the problem {problem.size}")
    return windows.samples()
