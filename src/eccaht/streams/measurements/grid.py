"""Weights from a list: the levels of a grid by rounding and exchange, whole measurements by looking at each.

Without the grid the problem is convex: its solution is rounded at many scales, and the best of these are improved one
weight and two weights at a time while information rises. The relaxation bounds what the grid could reach.
"""

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.streams.covariance import Covariance
from eccaht.streams.measurements.convex import best_direction, block
from eccaht.streams.measurements.region import Region, Solution

_SCALES, _FACTORS = 16, (0.6, 1.0)  # roundings of the relaxation
_SHAKEN = 16  # roundings of its neighbourhood
_SINGLES = 8  # starts with one weight
_STARTS, _SMALL = 3, 40  # starts; all of them where streams times levels are few
_PAIRS = 640  # streams times levels up to which two weights are changed at once
_GAIN = 1e-9
_ROUNDS = 200
_LOOKED_AT = 400  # changes of two weights whose groups are looked at


def from_list(region: Region, products: Array, D: Array) -> Solution | None:
    """The best of the listed measurements, products[i] = row_i'S row_i; None if none shows the contrast."""
    assert region.rows is not None
    rows = region.rows
    values = (rows @ D) ** 2 / (products + (region.noise or 0.0) ** 2)  # eq. 2
    best = int(values.argmax())
    return Solution(rows[best], True, 0.0, float(values[best])) if values[best] > 0.0 else None


def on_grid(region: Region, covariance: Covariance, D: Array) -> Solution | None:
    """Good weights from the levels; None if none show the contrast."""
    relaxed = best_direction(region.relaxed(), covariance, D)
    if relaxed is None:
        return None
    grid = _Grid(region, covariance, D)
    best, highest = None, 0.0
    for start in grid.starts(relaxed.weights):
        weights, score = grid.climb(start)
        if score > highest * (1.0 + _GAIN):
            best, highest = weights, score
    if best is None:
        return None
    return Solution(best, True, 0.0, max(relaxed.value, highest))


class _Grid:
    """Weights with what one more change needs: c'D, c'S c and S c."""

    def __init__(self, region: Region, covariance: Covariance, D: Array) -> None:
        assert region.levels is not None
        self.region, self.covariance, self.D = region, covariance, D
        allowed = region.allowed_levels()
        self.stream, place = np.nonzero(allowed)  # all single settings
        self.level = region.levels[place]
        self.variance = covariance.diagonal()[self.stream]
        self.noise = (region.noise or 0.0) ** 2
        sizes = np.where(allowed, np.abs(region.levels), np.inf)
        self.allowed, self.levels = allowed, region.levels
        self.least = np.where(region.off, 0.0, region.levels[sizes.argmin(axis=1)])  # the weight nearest to 0
        self.cross: Array | None = None

    def starts(self, relaxed: Array) -> list[Array]:
        """The best roundings of the relaxation, and the best single settings."""
        tried = np.unique(np.array(self._candidates(relaxed)), axis=0)
        tried = np.array([c if self._within(c) else self._fewest(c) for c in tried])
        tried = tried[[bool(c.any()) and self._within(c) for c in tried]]
        if not len(tried):
            return []
        if self.stream.size <= _SMALL:
            return list(tried)
        noise = np.einsum("ij,ji->i", tried, self.covariance.matvec(np.ascontiguousarray(tried.T))) + self.noise
        return list(tried[np.argsort(-((tried @ self.D) ** 2) / noise, kind="stable")[:_STARTS]])

    def _candidates(self, relaxed: Array) -> list[Array]:
        top = float(np.abs(self.level).max())
        strong = np.abs(relaxed[np.abs(relaxed) > 1e-9 * np.abs(relaxed).max()])
        scales = top / np.unique(np.quantile(strong, np.linspace(0.0, 1.0, _SCALES)))
        sides = (1.0,) if np.array_equal(self.levels, -self.levels[::-1]) else (1.0, -1.0)
        rounded = [
            self._rounded(side * factor * scale * relaxed) for scale in scales for factor in _FACTORS for side in sides
        ]
        if self.stream.size <= _SMALL:  # and some of its neighbourhood, the same ones each time
            shaken = relaxed + strong.mean() * np.random.default_rng(0).standard_normal((_SHAKEN, relaxed.size))
            rounded += [self._rounded(top / strong.mean() * c) for c in shaken]
        strength = np.where(self.level != 0.0, np.abs(self.D[self.stream]) / np.sqrt(self.variance), 0.0)
        for setting in np.argsort(-strength, kind="stable")[:_SINGLES].tolist():
            rounded.append(self._changed(self.least, np.array([setting])))
        return rounded

    def _rounded(self, c: Array) -> Array:
        """The nearest level of each stream."""
        distance = np.where(self.allowed, np.abs(self.levels - c[:, None]), np.inf)
        return np.where(self.region.off, 0.0, self.levels[distance.argmin(axis=1)])

    def _fewest(self, c: Array) -> Array:
        """The same with weights taken away, small ones first, until few enough streams and sum are left."""
        kept = self.least.copy()
        strength = np.abs(c * self.D) + 1e-9 * np.abs(c)
        for k in np.argsort(-strength, kind="stable").tolist():
            before, kept[k] = kept[k], c[k]
            if c[k] != before and not self._within(kept):
                kept[k] = before
        return kept

    def _within(self, c: Array) -> bool:
        if np.abs(c).sum() > self.region.norm * (1.0 + 1e-12):
            return False
        return self.region.few_enough(np.flatnonzero(c))

    def _score(self, c: Array) -> float:
        return float((c @ self.D) ** 2 / (self.covariance.quad(c) + self.noise))  # eq. 2

    def climb(self, c: Array) -> tuple[Array, float]:
        """Change one weight, or where that does not help two, while it pays."""
        score = self._score(c)
        for _ in range(_ROUNDS):
            changed = self._single(c, score)
            if changed is None and self.stream.size <= _PAIRS:
                changed = self._double(c, score)
            if changed is None:
                break
            c, score = changed
        return c, score

    def _settings(self, c: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Of each setting: its change, what it does to c'D, S c there, and what it adds to |c|_1 and to the streams."""
        now = c[self.stream]
        change = self.level - now
        used = (self.level != 0.0).astype(float) - (now != 0.0)
        pull = self.covariance.matvec(c)[self.stream]
        return change, change * self.D[self.stream], pull, np.abs(self.level) - np.abs(now), used

    def _single(self, c: Array, score: float) -> tuple[Array, float] | None:
        change, signal, pull, size, used = self._settings(c)
        noise = self.covariance.quad(c) + self.noise + 2.0 * change * pull + change**2 * self.variance
        good = (noise > 0.0) & (np.abs(c).sum() + size <= self.region.norm * (1.0 + 1e-12))
        good &= np.count_nonzero(c) + used <= self.region.most
        scores = np.where(good, (c @ self.D + signal) ** 2 / np.where(good, noise, 1.0), -1.0)
        for best in np.argsort(-scores, kind="stable")[:_LOOKED_AT].tolist():
            if scores[best] <= score * (1.0 + _GAIN):
                return None
            changed = self._changed(c, np.array([best]))
            if self._within(changed) and changed.any():
                return changed, self._score(changed)
        return None

    def _double(self, c: Array, score: float) -> tuple[Array, float] | None:
        change, signal, pull, size, used = self._settings(c)
        if self.cross is None:
            self.cross = block(self.covariance, np.arange(c.size))[np.ix_(self.stream, self.stream)]
        alone = 2.0 * change * pull + change**2 * self.variance
        noise = self.covariance.quad(c) + self.noise + _outer(alone) + 2.0 * np.outer(change, change) * self.cross
        good = (noise > 0.0) & (self.stream[:, None] < self.stream)
        good &= np.abs(c).sum() + _outer(size) <= self.region.norm * (1.0 + 1e-12)
        good &= np.count_nonzero(c) + _outer(used) <= self.region.most
        scores = np.where(good, (c @ self.D + _outer(signal)) ** 2 / np.where(good, noise, 1.0), -1.0).ravel()
        better = np.flatnonzero(scores > score * (1.0 + _GAIN))
        for best in better[np.argsort(-scores[better], kind="stable")][:_LOOKED_AT].tolist():
            changed = self._changed(c, np.array(np.unravel_index(best, noise.shape)))
            if self._within(changed) and changed.any():
                return changed, self._score(changed)
        return None

    def _changed(self, c: Array, settings: Index) -> Array:
        changed = c.copy()
        changed[self.stream[settings]] = self.level[settings]
        return changed


def _outer(x: Array) -> Array:
    """All sums of two entries."""
    return x[:, None] + x
