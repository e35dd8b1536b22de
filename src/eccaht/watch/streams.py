"""Windows of a plant, one by one, seen as `incident.views` sees stretches of them, in constant memory.

Every window is a candidate onset. A candidate keeps the level as it was before it, so that the level of its stretch
never learns a fault that began with it, and sums of what the windows since then show:

- shift: of g = Q z, the normal scores given all other sensors, each in units of its standard deviation;
- own: a step by the sensor's own past. A step of size d moves the innovations by d in its first window and by
  (1 - phi) d later, so these are their weights; innovations count by their normal scores, which leave out heavy tails;
- power: squares of the innovations' scores; free: what any course of one sensor explains, by the others;
- dense: the distance z'Q z, in the units of the tails: (nu + K) log(1 + z'Q z / nu).

Old candidates are thinned: of those 2^n to 2^(n + 1) windows old about eight stay. The last windows for a local level
and the candidates are all there is to keep.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.model.normal import FEWEST_BEFORE, Normal, local_level
from eccaht.watch.scores import Floating, Scores

LENGTHS = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 130, 200)  # windows of the stretches that are looked at
LONGEST = LENGTHS[-1]
_OCTAVE = 8  # candidates that stay between an age and twice that age
_NEAR = 0.8  # of a length: an older candidate must be at least as old to stand in for it
_SUMS = 7
_SHIFT, _INFORMATION, _OWN, _WEIGHT, _POWER, _PRESENT, _FREE = range(_SUMS)
_LEAST = 1e-9


class Look(NamedTuple):
    """What the stretches of J lengths that end with a window show.

    lengths: windows of each, 0 where there are not so many yet, (J,). shift, own: sums in units of the standard
    deviation that they would have if windows were independent, (J, K). power: mean squares of the innovations' scores,
    1 where a sensor has none; free: mean over the windows, in nats, (J, K). dense: mean over the windows, (J,).
    """

    lengths: NDArray[np.intp]
    shift: Floating
    own: Floating
    power: Floating
    free: Floating
    dense: Floating


class Lookup:
    """`Normal.scores` for few windows of many sensors at once."""

    def __init__(self, normal: Normal) -> None:
        K = normal.size
        self._knots = np.vstack([np.zeros((1, K)), normal.knots])
        self._heights = np.concatenate([[0.0], normal.knot_scores])
        rises = np.diff(self._heights)[:, None] / np.diff(self._knots, axis=0)
        self._rises = np.vstack([rises, np.zeros((1, K))])
        self._sensors = np.arange(K)
        self._growth = normal.scores(np.e * normal.knots[-1:])[0] - normal.knot_scores[-1]

    def __call__(self, deviations: Array) -> Array:
        """Normal scores of deviations, (T, K), with their sign; NaN stays."""
        sizes, top = np.abs(deviations), self._knots[-1]
        place = (sizes[:, None, :] >= self._knots[None, 1:]).sum(axis=1)
        lower, rises = self._knots[place, self._sensors], self._rises[place, self._sensors]
        scores = self._heights[place] + (sizes - lower) * rises
        beyond = sizes > top
        if beyond.any():
            scores += self._growth * np.log(np.where(beyond, sizes / top, 1.0))
        return np.asarray(np.copysign(scores, deviations))


class Streams:
    """The candidates of one plant.

    law: the normal operation whose `scores` are those of innovations (see `history.law_of`).
    frozen: the level of new candidates, (K,), NaN where it is that of the windows before. Only a local level can be
    frozen, the others do not learn.
    """

    def __init__(self, normal: Normal, law: Normal, *, longest: int = LONGEST) -> None:
        self.normal, self.law = normal, law
        self.lengths = np.array([length for length in LENGTHS if length <= longest])
        self.frozen: Array = np.full(normal.size, np.nan)
        self._scores = Scores(normal.precision)
        self._of_deviations, self._of_innovations = Lookup(normal), Lookup(law)
        self._local = normal.level == "local"
        self._recent = np.full((normal.width, normal.size), np.nan)
        self._row = 0
        self._last = np.full(normal.size, np.nan)  # the window before
        self.restart()

    def restart(self) -> None:
        """Forget all candidates; the windows for the level stay."""
        K = self.normal.size
        self._count = 0
        self._onsets = np.zeros(0, dtype=np.int64)
        self._levels, self._sums, self._dense = np.zeros((0, K)), np.zeros((0, _SUMS, K)), np.zeros(0)
        self._previous = np.full((0 if self._local else 1, K), np.nan)  # deviations of the window before

    def forget(self) -> None:
        """Forget everything, as after a long gap."""
        self._recent[:] = np.nan
        self._last = np.full(self.normal.size, np.nan)
        self.restart()

    def skip(self) -> None:
        """A window is missing: the next one has no window just before it."""
        self._last = np.full(self.normal.size, np.nan)
        self._previous = np.full_like(self._previous, np.nan)

    @property
    def ready(self) -> bool:
        """Whether the windows say what the level is: half of those that a local one is taken from, at least."""
        if not self._local:
            return True
        present = (~np.isnan(self._recent)).sum(axis=0)
        fewest = max(FEWEST_BEFORE, self.normal.width // 2)
        return bool(present.max() >= fewest)

    def level(self) -> Array:
        """The level that a local one has now, (K,)."""
        return np.where(np.isnan(self.frozen), local_level(self._recent, self.normal.profile[0]), self.frozen)

    def follow(self, x: Array) -> None:
        """Let the level follow a window, (K,), that is not looked at."""
        self._recent[self._row] = x
        self._row = (self._row + 1) % len(self._recent)
        self._last = x

    def update(self, x: Array, moment: float) -> Look:
        """Take a window, (K,), in robust units, NaN where a sensor is silent, and its second of the day."""
        self._begin()
        level = self._levels if self._local else self.normal.level_at(self._recent, np.array([moment]))
        deviations = x - level
        self._add(deviations)
        self._previous = deviations
        self.follow(x)
        return self._look()

    def _begin(self) -> None:
        """The present window is a candidate; older ones are thinned."""
        K, now = self.normal.size, self._count
        self._count += 1
        ages = now + 1 - self._onsets
        steps = np.left_shift(1, np.log2(np.maximum(ages // _OCTAVE, 1)).astype(np.int64))
        kept = (self._onsets % steps == 0) & (ages <= LONGEST)
        self._onsets = np.append(self._onsets[kept], now)
        self._sums = np.concatenate([self._sums[kept], np.zeros((1, _SUMS, K))])
        self._dense = np.append(self._dense[kept], 0.0)
        if self._local:
            level = self.level()
            self._levels = np.vstack([self._levels[kept], level])
            self._previous = np.vstack([self._previous[kept], self._last - level])

    def _add(self, deviations: Array) -> None:
        """Add what a window shows to the sums of all candidates; deviations: (C, K), or (1, K) if all share it."""
        normal = self.normal
        scores = self._of_deviations(deviations)
        g, information = self._scores.of(scores)
        innovations = (deviations - normal.memory * self._previous) / normal.spread
        fresh = self._of_innovations(innovations)
        present = ~np.isnan(fresh)
        fresh = np.where(present, fresh, 0.0)
        silent = np.isnan(scores)
        distances = np.maximum((np.where(silent, 0.0, scores) * g * self._scores.root).sum(axis=1), 0.0)
        known = np.ones_like(g) if information is None else information
        explained = g * g / np.maximum(known, _LEAST)
        weights = np.ones((len(self._onsets), normal.size))
        weights[:-1] -= normal.memory
        sums = self._sums
        sums[:, _SHIFT] += g
        sums[:, _INFORMATION] += known
        sums[:, _OWN] += weights * fresh
        sums[:, _WEIGHT] += weights**2 * present
        sums[:, _POWER] += fresh**2
        sums[:, _PRESENT] += present
        sums[:, _FREE] += self._gains(explained, distances)
        self._dense += self._distance(distances, silent)

    def _gains(self, explained: Array, distances: Array) -> Array:
        """What a free course of each sensor explains of a window, in nats."""
        nu, K = self.normal.tails, self.normal.size
        if np.isinf(nu):
            return np.asarray(0.5 * explained)
        share = np.minimum(explained / (nu + distances)[:, None], 1.0 - 1e-9)
        return np.asarray(-0.5 * (nu + K) * np.log1p(-share))

    def _distance(self, distances: Array, silent: NDArray[np.bool_]) -> Array:
        """The distance of a window in the units of the tails, as if no sensor were silent."""
        nu, K = self.normal.tails, self.normal.size
        whole = distances * (K / np.maximum((~silent).sum(axis=1), 1))
        return np.asarray(whole if np.isinf(nu) else (nu + K) * np.log1p(whole / nu))

    def _look(self) -> Look:
        ages = self._count - self._onsets
        nearest = np.abs(ages - self.lengths[:, None]).argmin(axis=1)
        lengths = np.where(ages[nearest] >= _NEAR * self.lengths, ages[nearest], 0)
        sums, ages = self._sums[nearest], ages[nearest]
        return Look(
            lengths,
            _standardised(sums[:, _SHIFT], sums[:, _INFORMATION]),
            _standardised(sums[:, _OWN], sums[:, _WEIGHT]),
            np.where(sums[:, _PRESENT] > 0, sums[:, _POWER] / np.maximum(sums[:, _PRESENT], 1.0), 1.0),
            sums[:, _FREE] / ages[:, None],
            self._dense[nearest] / ages,
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """What a file must keep."""
        return {
            "counts": np.array([self._count, self._row], dtype=np.int64),
            "onsets": self._onsets,
            "frozen": self.frozen,
            "last": self._last,
            "recent": self._recent,
            "levels": self._levels,
            "previous": self._previous,
            "sums": self._sums,
            "dense": self._dense,
        }


def _standardised(sums: Array, variances: Array) -> Array:
    return np.where(variances > _LEAST, sums / np.sqrt(np.maximum(variances, _LEAST)), 0.0)
