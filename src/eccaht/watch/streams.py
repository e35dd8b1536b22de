"""Windows of a plant, one by one, seen as `incident.views` sees stretches of them, in constant memory.

Every window is a candidate onset. A candidate keeps the level as it was before it, so that the level of its stretch
never learns a fault that began with it, and sums of what the windows since then show:

- shift: of g = Q z, the normal scores given all other sensors, each in units of its standard deviation;
- own: a step by the sensor's own past. A step of size d moves the innovations by d in its first window and by
  (1 - phi) d later, so these are their weights; innovations count by their normal scores, which leave out heavy tails;
- power: squares of the innovations' scores; free: what any course of one sensor explains, by the others;
- dense: the distance z'Q z, in the units of the tails: (nu + K) log(1 + z'Q z / nu); fresh: the same for the
  innovations' scores, with what these share.

Old candidates are thinned: of those 2^n to 2^(n + 1) windows old four stay. The last windows for a local level and the
candidates are all there is to keep. Several plants, or stretches of one, go side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.archive import check_keys
from eccaht.arrays import Array
from eccaht.model.normal import FEWEST_BEFORE, Normal, local_level
from eccaht.watch.scores import Floating, Scores

LENGTHS = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 130, 200)  # windows of the stretches that are looked at
LONGEST = LENGTHS[-1]
_OCTAVE = 4  # candidates that stay between an age and twice that age
_NEAR = 0.8  # of a length: an older candidate must be at least as old to stand in for it
_SUMS = 7
_SHIFT, _INFORMATION, _OWN, _WEIGHT, _POWER, _PRESENT, _FREE = range(_SUMS)
_DISTANCE, _FRESH_DISTANCE, _FRESH_WINDOWS = range(3)
_LEAST = 1e-9
_EMPTY = -1  # the onset of a place without a candidate


class Look(NamedTuple):
    """What the stretches of J lengths that end with a window show; of many windows each part has a first axis for them.

    lengths: windows of each, 0 where there are not so many yet, (J,). shift, own: sums in units of the standard
    deviation that they would have if windows were independent, (J, K). power: mean squares of the innovations' scores,
    1 in windows in which a sensor has none; free: mean over the windows, in nats, (J, K). dense, fresh: mean
    distances, (J,).
    """

    lengths: NDArray[np.intp]
    shift: Floating
    own: Floating
    power: Floating
    free: Floating
    dense: Floating
    fresh: Floating


class Lookup:
    """`Normal.scores` for all sensors at once."""

    def __init__(self, normal: Normal) -> None:
        K = normal.size
        self._knots = np.vstack([np.zeros((1, K)), normal.knots])
        self._heights = np.concatenate([[0.0], normal.knot_scores])
        rises = np.diff(self._heights)[:, None] / np.diff(self._knots, axis=0)
        self._rises = np.vstack([rises, np.zeros((1, K))])
        self._sensors = np.arange(K)
        self._growth = normal.scores(np.e * normal.knots[-1:])[0] - normal.knot_scores[-1]

    def __call__(self, deviations: Array) -> Array:
        """Normal scores of deviations, (..., K), with their sign; NaN stays."""
        sizes, top = np.abs(deviations), self._knots[-1]
        place = (sizes[..., None, :] >= self._knots[1:]).sum(axis=-2, dtype=np.uint8)
        lower, rises = self._knots[place, self._sensors], self._rises[place, self._sensors]
        scores = self._heights[place] + (sizes - lower) * rises
        beyond = sizes > top
        if beyond.any():
            scores += self._growth * np.log(np.where(beyond, sizes / top, 1.0))
        return np.asarray(np.copysign(scores, deviations))


class Streams:
    """The candidates of one plant, or of `plants` of them side by side, which have the same normal operation.

    law: the normal operation whose `scores` are those of innovations, and its scatter theirs (see `history.law_of`).
    second: second moments of the scores of deviations and of innovations, (2, K, K), see `Scores`.
    frozen: the level of new candidates, (P, K), NaN where it is that of the windows before. Only a local level can be
    frozen, the others do not learn.
    """

    def __init__(
        self,
        normal: Normal,
        law: Normal,
        second: Array | None = None,
        *,
        plants: int | None = None,
        longest: int = LONGEST,
    ) -> None:
        self.normal, self.law, self.plants = normal, law, plants
        self.lengths = np.array([length for length in LENGTHS if length <= longest])
        P, K, places = plants or 1, normal.size, most_candidates()
        self.frozen: Array = np.full((P, K), np.nan)
        of_deviations, of_innovations = (None, None) if second is None else second
        self._scores = Scores(normal.precision, second=of_deviations)
        self._fresh = Scores(law.precision, second=of_innovations)
        self._of_deviations, self._of_innovations = Lookup(normal), Lookup(law)
        self._local = normal.level == "local"
        self._recent = np.full((P, normal.width, K), np.nan)
        self._row = 0
        self._last = np.full((P, K), np.nan)  # the window before
        self._count = 0
        self._since = np.zeros(P, dtype=np.int64)  # the first candidate that counts, by plant
        self._onsets = np.full(places, _EMPTY, dtype=np.int64)
        self._sums, self._dense = np.zeros((_SUMS, P, places, K)), np.zeros((3, P, places))
        self._levels = np.zeros((P, places if self._local else 0, K))
        self._previous = np.full((P, places if self._local else 1, K), np.nan)  # deviations of the window before

    def restart(self) -> None:
        """Forget all candidates; the windows for the level stay."""
        self._since[:] = self._count

    def forget(self) -> None:
        """Forget everything, as after a long gap."""
        self._recent[:] = np.nan
        self.skip()
        self.restart()

    def skip(self) -> None:
        """A window is missing: the next one has no window just before it."""
        self._last[:] = np.nan
        self._previous[:] = np.nan

    @property
    def ready(self) -> bool:
        """Whether the windows say what the level is: half of those that a local one is taken from, at least."""
        if not self._local:
            return True
        present = (~np.isnan(self._recent)).sum(axis=1)
        fewest = max(FEWEST_BEFORE, self.normal.width // 2)
        return bool(present.max(axis=1).min() >= fewest)

    def level(self) -> Array:
        """The level that a local one has now, (P, K)."""
        profile = self.normal.profile[0]
        if np.isnan(self._recent).any():
            level = np.stack([local_level(before, profile) for before in self._recent])
        else:
            level = np.median(self._recent, axis=1)
        return np.where(np.isnan(self.frozen), level, self.frozen)

    def follow(self, x: Array) -> None:
        """Let the level follow a window, (K,) or (P, K), that is not looked at."""
        self._recent[:, self._row] = x
        self._row = (self._row + 1) % self._recent.shape[1]
        self._last[:] = x

    def update(self, x: Array, moment: float | Array, aside: Sequence[int] = ()) -> Look:
        """Take a window, (K,) or (P, K), in robust units, NaN where a sensor is silent, and its second of the day.

        aside: sensors that the level follows, but that bear no evidence.
        """
        place = self._begin()
        if self._local:
            level = self._levels
        else:
            moments = np.atleast_1d(np.asarray(moment, dtype=np.float64))
            level = self.normal.level_at(self._recent[0], moments)[:, None]
        deviations = np.atleast_2d(x)[:, None] - level
        deviations[:, :, list(aside)] = np.nan
        self._add(deviations, place)
        self._previous = deviations
        self.follow(x)
        return self._look()

    def _begin(self) -> int:
        """The present window is a candidate, older ones are thinned; return its place."""
        now = self._count
        self._count += 1
        ages = now + 1 - self._onsets
        steps = np.left_shift(1, np.log2(np.maximum(ages // _OCTAVE, 1)).astype(np.int64))
        self._onsets[(self._onsets % steps != 0) | (ages > LONGEST)] = _EMPTY
        place = int((self._onsets == _EMPTY).argmax())
        self._onsets[place] = now
        self._sums[:, :, place] = 0.0
        self._dense[:, :, place] = 0.0
        if self._local:
            self._levels[:, place] = self.level()
            self._previous[:, place] = self._last - self._levels[:, place]
        return place

    def _add(self, deviations: Array, place: int) -> None:
        """Add what a window shows to the sums of all candidates; deviations: (P, C, K), or (P, 1, K) if all share it.

        place: of the candidate that begins with it.
        """
        normal = self.normal
        scores = self._of_deviations(deviations)
        silent = np.isnan(scores[:, 0])
        g, known, whole = _given_others(self._scores, scores, silent)
        innovations = (deviations - normal.memory * self._previous) / normal.spread
        fresh = self._of_innovations(innovations)
        present = ~np.isnan(fresh)
        fresh_g, _, fresh_whole = _given_others(self._fresh, fresh, ~present[:, place % fresh.shape[1]])
        scores, fresh = np.where(silent[:, None], 0.0, scores), np.where(present, fresh, 0.0)
        distances = np.maximum(((scores * g) @ self._scores.root), 0.0)
        later = 1.0 - normal.memory
        sums, new = self._sums, place % fresh.shape[1]
        sums[_SHIFT] += g
        sums[_INFORMATION] += known[:, None]
        sums[_OWN] += later * fresh
        sums[_OWN, :, place] += normal.memory * fresh[:, new]
        sums[_WEIGHT] += later**2 * present
        sums[_WEIGHT, :, place] += (1.0 - later**2) * present[:, new]
        sums[_POWER] += fresh * fresh
        sums[_PRESENT] += present
        sums[_FREE] += self._gains(g * g / np.maximum(known, _LEAST)[:, None], distances)
        self._dense[_DISTANCE] += self._distance(distances * whole[:, None])
        fresh_distances = np.maximum((fresh * fresh_g) @ self._fresh.root, 0.0)
        self._dense[_FRESH_DISTANCE] += self._distance(fresh_distances * fresh_whole[:, None])
        self._dense[_FRESH_WINDOWS] += present.any(axis=2)

    def _gains(self, explained: Array, distances: Array) -> Array:
        """What a free course of each sensor explains of a window, in nats."""
        nu, K = self.normal.tails, self.normal.size
        if np.isinf(nu):
            return np.asarray(0.5 * explained)
        share = np.minimum(explained / (nu + distances)[..., None], 1.0 - 1e-9)
        return np.asarray(-0.5 * (nu + K) * np.log1p(-share))

    def _distance(self, distances: Array) -> Array:
        """Distances of all sensors in the units of the tails."""
        nu, K = self.normal.tails, self.normal.size
        return np.asarray(distances if np.isinf(nu) else (nu + K) * np.log1p(distances / nu))

    def _look(self) -> Look:
        counting = self._onsets >= 0
        ages = np.where(counting, self._count - self._onsets, -LONGEST)
        away = ages - self.lengths[:, None]
        nearest = np.where(away > 0, away - 0.5, -away).argmin(axis=1)  # of two as near the older one
        ages = ages[nearest]
        known = (ages >= _NEAR * self.lengths) & (self._onsets[nearest] >= self._since[:, None])
        sums, dense = self._sums[:, :, nearest], self._dense[:, :, nearest]
        look = Look(
            np.where(known, ages, 0),
            _standardised(sums[_SHIFT], sums[_INFORMATION]),
            _standardised(sums[_OWN], sums[_WEIGHT]),
            (sums[_POWER] + ages[:, None] - sums[_PRESENT]) / ages[:, None],
            sums[_FREE] / ages[:, None],
            dense[_DISTANCE] / ages,
            dense[_FRESH_DISTANCE] / np.maximum(dense[_FRESH_WINDOWS], 1.0),
        )
        return look if self.plants is not None else Look(*(part[0] for part in look))

    def state(self) -> dict[str, NDArray[Any]]:
        """What a file must keep."""
        return {
            "counts": np.array([self._count, self._row], dtype=np.int64),
            "since": self._since,
            "onsets": self._onsets,
            "frozen": self.frozen,
            "last": self._last,
            "recent": self._recent,
            "levels": self._levels,
            "previous": self._previous,
            "sums": self._sums,
            "dense": self._dense,
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from a kept state, or say what is wrong with it."""
        mine = self.state()
        check_keys(state, set(mine), "streams")
        for name, array in mine.items():
            given = state[name]
            if given.shape != array.shape or given.dtype.kind != array.dtype.kind:
                raise ValueError(f"the {name} of its streams are damaged")
            if given.dtype.kind == "f" and np.isinf(given).any():
                raise ValueError(f"the {name} of its streams are damaged")
        count, row = state["counts"].tolist()
        onsets, since = state["onsets"], state["since"]
        if not (0 <= row < self._recent.shape[1] and (onsets >= _EMPTY).all() and (onsets < max(count, 1)).all()):
            raise ValueError("the counts of its streams are damaged")
        if not ((since >= 0) & (since <= count)).all() or np.isnan(state["sums"]).any() or (state["sums"][1] < 0).any():
            raise ValueError("the sums of its streams are damaged")
        self._count, self._row = count, row
        self._since[:], self._onsets[:], self.frozen[:] = since, onsets, state["frozen"]
        self._last[:], self._recent[:], self._levels[:] = state["last"], state["recent"], state["levels"]
        self._previous = np.array(state["previous"])
        self._sums[:], self._dense[:] = state["sums"], state["dense"]


def most_candidates() -> int:
    """How many candidates there are at most: all young ones, then _OCTAVE between an age and twice that age."""
    found, age = 2 * _OCTAVE, 2 * _OCTAVE
    while age <= LONGEST:
        found += _OCTAVE + 1
        age *= 2
    return found


def _given_others(scores: Scores, z: Array, silent: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """g of z, (P, C, K), in units of its standard deviation, its information, (P, K), and what makes distances whole.

    silent: by plant, (P, K). The last is (P,), see `scores.Pattern`.
    """
    information, whole = np.ones(silent.shape), np.ones(len(silent))
    if not silent.any():
        return scores.complete(z), information, whole
    g = scores.complete(np.where(np.isnan(z) | silent[:, None], 0.0, z))
    for p in np.flatnonzero(silent.any(axis=1)).tolist():
        pattern = scores.pattern(silent[p])
        g[p] = pattern.left(g[p])
        information[p], whole[p] = pattern.information, pattern.whole
    return g, information, whole


def _standardised(sums: Array, variances: Array) -> Array:
    return np.where(variances > _LEAST, sums / np.sqrt(np.maximum(variances, _LEAST)), 0.0)
