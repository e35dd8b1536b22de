"""What decides whether something is wrong: five detectors, each with a threshold of its own.

- rarest: the rarest residual of a sensor, in this window and in the mean over SHORT windows;
- drift: the rarest mean of a sensor's residuals over LONG windows;
- distance: how rare the distance of the whole window is, in this window and in the mean over SHORT windows.

The threshold of a detector is the level that clusters of its values pass at an equal share of the false-alarm rate in
windows that the fit has not seen; what no window of the history reached is extended exponentially. Standstill and range
take the other two shares: they are counted on the history by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eccaht.base.arrays import Array, frozen

SHORT, LONG = 4, 12  # windows
DETECTORS = ("rarest", "rarest of 4", "drift", "distance", "distance of 4")
SHARES = len(DETECTORS) + 2  # standstill and range are detectors too
MOST_PEAKS = 512
_APART = np.array([10, 10, 2 * LONG, 10, 10])  # windows that two clusters are apart, at least
_LEAST_EXCESS = np.array([1.0, 1.0 / SHORT, 1.0, 1.0, 1.0 / SHORT])  # of a rarity, which is -log of a share
_TOP = 12  # clusters that say how fast the highest values fall
_HIGHEST, _MOST_WINDOWS = 1e6, 1e12
_FEWEST_WANTED = 3.0  # clusters: a threshold that fewer pass is extended


@dataclass(frozen=True, eq=False)
class Peaks:
    """The highest value of each cluster in the history, by detector.

    heights: (5, M), decreasing. windows: that were looked at.
    """

    heights: Array
    windows: float

    def __post_init__(self) -> None:
        heights = np.array(self.heights, dtype=np.float64)
        if heights.ndim != 2 or len(heights) != len(DETECTORS) or not heights.size:
            raise ValueError(f"its peaks must be those of {len(DETECTORS)} detectors")
        if not ((heights >= 0.0) & (heights <= _HIGHEST)).all() or (heights[:, :-1] < heights[:, 1:]).any():
            raise ValueError("its peaks must decrease")
        if np.ndim(self.windows) or not 1 <= self.windows <= _MOST_WINDOWS:
            raise ValueError("its peaks are of an impossible number of windows")
        object.__setattr__(self, "heights", frozen(heights))

    @staticmethod
    def none() -> Peaks:
        """Before anything was counted."""
        return Peaks(np.zeros((len(DETECTORS), 1)), 1.0)

    def limits(self, every: float) -> tuple[Array, Array]:
        """Thresholds for one false alarm in `every` windows, and how much beyond is e times as rare, (5,)."""
        wanted = self.windows / (every * SHARES)
        found = [_limit(heights, wanted, least) for heights, least in zip(self.heights, _LEAST_EXCESS, strict=True)]
        limits, excesses = np.array(found).T
        return limits, excesses

    def seen(self, every: float) -> bool:
        """Whether the history is long enough to have shown values as rare as the thresholds."""
        return self.windows >= every * SHARES


def _limit(heights: Array, wanted: float, least: float) -> tuple[float, float]:
    top = heights[: _TOP + 1]
    excess = max(float(np.mean(top[:-1] - top[-1])) if len(top) > 1 else 0.0, least)
    if wanted >= _FEWEST_WANTED:
        return float(heights[min(int(np.ceil(wanted)), len(heights)) - 1]), excess
    return float(top[-1] + excess * np.log(max(len(top) - 1, 1) / wanted)), excess


def values_of(e: Array, short: Array, drift: Array, distance: Array, distance_short: Array) -> Array:
    """The values of the detectors, (T, 5), from rarities by sensor, (T, K), and of distances, (T,)."""
    return np.stack([e.max(axis=-1), short.max(axis=-1), drift.max(axis=-1), distance, distance_short], axis=-1)


def peaks_of(e: Array, drift: Array, distance: Array) -> Peaks:
    """The peaks of a history: rarities of residuals and of drifts, (T, K), and of distances, (T,)."""
    values = values_of(e, running_mean(e), drift, distance, running_mean(distance[:, None])[:, 0])
    found = [_clusters(column, apart) for column, apart in zip(values.T, _APART.tolist(), strict=True)]
    fewest = min(map(len, found))
    return Peaks(np.stack([peaks[:fewest] for peaks in found]), float(len(values)))


def running_mean(e: Array, length: int = SHORT) -> Array:
    """The means of the last `length` rows, (T, K); what lies before the first counts as 0."""
    sums = np.cumsum(np.vstack([np.zeros((1, e.shape[1])), e]), axis=0)
    first = np.maximum(np.arange(1, len(e) + 1) - length, 0)
    return np.asarray((sums[1:] - sums[first]) / length)


def _clusters(values: Array, apart: int) -> Array:
    """The highest values, each at least `apart` windows from the others, decreasing."""
    left, taken = np.ones(len(values), dtype=bool), []
    for t in np.argsort(-values, kind="stable").tolist():
        if left[t]:
            taken.append(float(values[t]))
            left[max(0, t - apart) : t + apart + 1] = False
            if len(taken) == MOST_PEAKS:
                break
    return np.array(taken)
