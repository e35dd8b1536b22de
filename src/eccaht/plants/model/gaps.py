"""Windows that lack rows, and sensors that stand still: what a search by sums of sensors must know of its data.

The mean of m of the M rows of a window is the mean of all M plus an error. Where rows are missing at random,
that error is uncorrelated with the full mean and has the covariance (1/m - 1/M) W, with W the covariance of rows within
a window: exact for sampling without replacement, however the rows depend on each other in time. With independent rows
W = M S, and the noise grows M/m times; where rows hardly change within a window, W is small and a few rows suffice.
Where consecutive rows are lost, as at the end of a file that still grows, dependent rows err more than that; by what
factor is measured on the history, for runs of rows at either end of a window.

Sensors that stop moving or fall silent for longer than they ever did in the history are named without a search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.base.clock import Clock
from eccaht.plants.data.windows import Cut, Sample, Windows
from eccaht.plants.model.model_file import SHARES

if TYPE_CHECKING:
    from eccaht.plants.model.model import Model
    from eccaht.streams import Covariance
    from eccaht.streams.covariance.base import Excess

_WINDOWS, _NUMBERS = 400, 8_000_000  # the most windows, and readings, that are looked at row by row
_FEWEST = 50
LONGER = 2.0  # a sensor has failed once it stands still for LONGER times its longest standstill in the history,
FEWEST_ROWS = 5  # for at least FEWEST_ROWS rows,
Kind = Literal["stuck", "silent"]
KINDS: tuple[Kind, ...] = ("stuck", "silent")
FEWEST_WINDOWS = np.array([3, 10])  # and for this many windows, by kind (three if the data have no more)


def sampled_rows(cut: Cut, full: NDArray[np.bool_], size: int) -> Index:
    """Which rows to look at, (n, M): n full windows spread over the history, the first M rows of each, M the median."""
    usual = int(np.median(cut.rows[full]))
    whole = np.flatnonzero(full & (cut.rows >= usual))
    count = min(len(whole), _WINDOWS, max(_FEWEST, _NUMBERS // (usual * size)))
    chosen = whole[np.linspace(0, len(whole) - 1, count).round().astype(np.intp)]
    return np.asarray(cut.first[chosen][:, None] + np.arange(usual))


def row_noise(rows: Array, covariance: Covariance | None) -> tuple[Array, Array]:
    """W, (1, K, K), and the factor for runs, (9,), from rows (n, M, K); without a covariance no W, (0, K, K).

    The factor is the largest over the sensors and, with W, over the principal combinations of their correlations.
    """
    n, M, K = rows.shape
    if M < 2:
        return np.zeros((0 if covariance is None else 1, K, K)), np.ones(SHARES.size)
    deviations = rows - rows.mean(axis=1, keepdims=True)
    flat = deviations.reshape(n * M, K)
    if covariance is None:
        own = np.square(flat).sum(axis=0) / (n * (M - 1))
        return np.zeros((0, K, K)), _runs(deviations, np.eye(K), own)
    W = flat.T @ flat / (n * (M - 1))
    S = covariance.dense()
    spread = np.sqrt(S.diagonal())
    principal = np.linalg.eigh(S / np.outer(spread, spread))[1] / spread[:, None]
    directions = np.hstack([np.diag(1.0 / spread), principal])
    return W[None], _runs(deviations, directions, np.einsum("kd,kd->d", directions, W @ directions))


def _runs(deviations: Array, directions: Array, noise: Array) -> Array:
    """Error variance of the mean of consecutive rows over that of as many random rows, at each of SHARES."""
    M = deviations.shape[1]
    moving = noise > 1e-12 * noise.max(initial=np.finfo(float).tiny)
    sums, directions, noise = np.cumsum(deviations, axis=1), directions[:, moving], noise[moving]
    factors = np.ones(SHARES.size)
    for place, m in enumerate(np.clip(np.rint(SHARES * M).astype(np.intp), 1, M - 1).tolist()):
        ends = np.concatenate([sums[:, m - 1], sums[:, M - m - 1]]) @ directions / m
        more = np.square(ends).mean(axis=0) / (noise * (1.0 / m - 1.0 / M))
        factors[place] = more.max(initial=1.0)
    return factors


@dataclass(frozen=True)
class RowNoise:
    """What a model knows about windows with missing rows.

    usual: rows of a window; delivered: share of them that each sensor delivers, (K,).
    variances: of rows within a window, (K,); within: their covariance times a vector. runs: factor at each of SHARES.
    """

    usual: float
    delivered: Array
    variances: Array
    within: Callable[[Array], Array]
    runs: Array

    @staticmethod
    def of(model: Model, names: tuple[str, ...], covariance: Covariance) -> RowNoise:
        """For some of the sensors, with the covariance of their windows.

        Models of many sensors do not keep W: their rows are treated as independent.
        """
        kept, chosen = model.summary, model.places(names)
        usual = float(kept.row_counts[0])
        imputed = {column.name: column.imputed for column in model.columns}
        delivered = np.array([1.0 - imputed[name] for name in names])
        if len(kept.within):
            W = kept.within[0][np.ix_(chosen, chosen)]
            return RowNoise(usual, delivered, W.diagonal(), lambda c: np.asarray(W @ c), kept.runs)
        return RowNoise(
            usual, delivered, usual * covariance.diagonal(), lambda c: usual * covariance.matvec(c), kept.runs
        )

    def excess(self, rows: Array) -> Excess | None:
        """The noise that missing rows add, given the number of readings of each sensor; None if no row is missing."""
        most = min(float(rows.max(initial=0.0)), self.usual)
        if most < 1.0:
            return None
        counts = np.clip(rows, 1.0, self.usual)
        expected = np.maximum(most * self.delivered, 1.0)
        own = np.where(rows > 0, np.maximum(1.0 / counts - 1.0 / expected, 0.0), 0.0)
        common = float(self._factor(most)) * (1.0 / most - 1.0 / self.usual)
        if not common and not own.any():
            return None
        from eccaht.streams.covariance.base import Excess

        return Excess(common, own * self._factor(counts) * self.variances, self.within)

    def _factor(self, rows: Array | float) -> Array:
        return np.interp(np.asarray(rows) / self.usual, SHARES, self.runs)


# -- sensors that stand still ----------------------------------------------------------------------------


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
