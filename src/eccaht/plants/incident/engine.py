"""The one engine: windows in, alarms out, for one plant or for many that share a model.

Each window is compared with what the sensors and the window before say it should be (`model.normal`), and the detectors
(`model.detectors`) are compared with their thresholds. An alarm is on while a detector passes, and for HOLD windows
after. Deviations below BIG of a sensor's spread raise an alarm but keep it for PATIENCE windows only: what lasts longer
is a change that the other sensors hardly contradict, reported once. A sensor beyond the history by as much as the
history's whole range is out of range: an alarm by itself, for LASTING windows; it is set aside, so that the others are
judged without it. So is a sensor that is stuck; one that is silent says nothing anyway.

State is a few numbers for each sensor, and a window costs two products with K x K matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.plants.model.detectors import LONG, SHORT, values_of
from eccaht.plants.model.normal import FARTHEST, Normal
from eccaht.plants.model.tails import Tails

HOLD = 4  # windows for which an alarm goes on after the last that passed
BIG = 0.5  # spreads of the sensor: smaller deviations given the others keep an alarm for
PATIENCE = 32  # windows only
LASTING = 1000  # windows after which a sensor that is out of range raises no alarm any more
RANGE_OF, RANGE_IN = 4, 8  # windows beyond the range, of so many, that make a sensor out of range
SETTLING, ESCALATES = 16, 1.5  # windows of an alarm after which a value so many times its largest is another incident
LONGER = 2.0  # a sensor is stuck once it repeats a value for LONGER times its longest repetition in the history,
MOST_LONGER = 8.0  # up to so many times that if it often comes to rest,
FEWEST_STILL = 4  # and for more than so many windows
FEWEST_SILENT = 10  # windows in a row without a reading, while others deliver, that make a sensor silent
SHORT_GAP = 5  # windows: after a longer gap nothing of before counts
_SAME = 1e-9  # by how much means of the same values differ
Mask = NDArray[np.bool_]
_ARRAYS = (
    *("before", "_aside", "_e", "_firm", "_r", "_d", "_out", "value", "repeats", "still", "silent", "ranged_for"),
    *("count", "on", "settled", "_fine_ago", "_firm_ago", "_small_for", "_age", "_peak", "_strengths"),
)


@dataclass(frozen=True, eq=False)
class _Large:
    """Rarities in which deviations below a size count at most as one in a hundred, and larger ones from there on.

    size: (K,). less: what rarities beyond it lose, (K,). base: what smaller ones count at most.
    """

    size: Array
    less: Array
    base: float

    @staticmethod
    def of(tails: Tails, size: Array) -> _Large:
        """For deviations of at least this size, (K,)."""
        edge = np.maximum(tails.edge, size)
        return _Large(edge, tails.shape * np.log(edge / tails.edge), tails.base)

    def __call__(self, r: Array, e: Array) -> Array:
        """The rarities of residuals, (n, K), whose plain rarities are e."""
        return np.where(np.abs(r) > self.size, e - self.less, np.minimum(e, self.base))


@dataclass(frozen=True, eq=False)
class Shown:
    """What one window of n plants shows.

    r, e: residuals and their rarities, (n, K). passed: the largest detector value beyond its threshold, in units in
    which chance is e times as rare, (n,): 0 raises an alarm. aside: sensors that were not judged, (n, K). began, ended,
    changed: plants whose alarm begins or is over with this window, and those of the latter whose deviation lasts as a
    change, (n,).
    """

    r: Array
    e: Array
    passed: Array
    aside: Mask
    began: Mask
    ended: Mask
    changed: Mask


class Engine:
    """Watch `plants` plants by one description of normal operation.

    every: windows to a false alarm in the mean. gaps: for how many windows each sensor was silent in the history, (K,).
    """

    def __init__(self, normal: Normal, every: float, plants: int = 1, gaps: Array | None = None) -> None:
        self.normal, self.every = normal, every
        self.limits, self.excess = normal.peaks.limits(every)
        N, K = plants, normal.size
        width = normal.high - normal.low
        self._low, self._high = normal.low - width, normal.high + width
        self._silent_after = np.maximum(LONGER * (np.zeros(K) if gaps is None else gaps), FEWEST_SILENT)
        self._large = _Large.of(normal.tails, BIG / normal.unit)
        self._large_drift = _Large.of(normal.drifts, BIG / normal.unit * np.sqrt(LONG))
        self.before = np.full((N, K), np.nan)  # the last window, in spreads
        self._aside = np.zeros((N, K), dtype=bool)  # and what of it was not judged
        self._e, self._firm, self._r = (np.zeros((length, N, K)) for length in (SHORT, SHORT, LONG))
        self._d, self._out = np.zeros((SHORT, N)), np.zeros((RANGE_IN, N, K), dtype=bool)
        self.value = np.full((N, K), np.nan)  # the last reading
        self.repeats, self.silent = np.zeros((N, K)), np.zeros((N, K))
        self._usual_still = np.maximum(LONGER * normal.repeats, FEWEST_STILL)
        self.still = np.tile(self._usual_still, (N, 1))  # windows for which each sensor may repeat a value
        self.ranged_for = np.zeros((N, K))  # windows for which each sensor has been out of range
        self.count = np.zeros(N, dtype=np.int64)  # windows so far
        self.on, self.settled = np.zeros(N, dtype=bool), np.zeros(N, dtype=bool)
        self._fine_ago, self._firm_ago, self._small_for = (np.full(N, 1 << 30) for _ in range(3))
        self._age, self._peak, self._strengths = np.zeros(N, dtype=np.int64), np.zeros(N), np.zeros((HOLD, N))
        self._far = normal.tails.base + 10.0  # rarity of a sensor that is stuck

    # -- one window ----------------------------------------------------------------------------------

    def step(self, x: Array, which: Index | None = None) -> Shown:
        """Take a window of each of the plants `which`, all of them if not given: (n, K), robust units, NaN: silent."""
        n = np.arange(len(self.count)) if which is None else which
        stuck, ranged = self._standing(x, n), self._range(x, n)
        aside = stuck | ranged
        raw, raw_before, was = (x - self.normal.centre) / self.normal.scale, self.before[n], self._aside[n]
        self.before[n], self._aside[n] = raw, aside
        z, before = np.clip(raw, -FARTHEST, FARTHEST), np.clip(raw_before, -FARTHEST, FARTHEST)
        any_aside = bool(aside.any() or was.any())
        if any_aside:
            shown = self.normal.residuals_of(np.where(aside, np.nan, z), np.where(was, np.nan, before))
        else:
            shown = self.normal.residuals_of(z, before)
        beyond = self._beyond(raw - z, raw_before - before)
        if beyond is not None:
            shown = shown._replace(r=shown.r + np.where(aside | was, 0.0, beyond))
        values, firm, e = self._values(shown.r, shown.distance, n)
        passed = ((values - self.limits) / self.excess).max(axis=1)
        began, ended, changed = self._decide(passed > 0.0, np.asarray((firm > self.limits[:3]).any(axis=1)), n)
        again = self._escalated((values / self.limits).max(axis=1), began, n)
        if ended.any():  # what an incident and its recovery leave behind is no news
            self._forget(n[ended])
        self.count[n] += 1
        r = shown.r
        if any_aside:  # what is set aside is shown all the same
            whole = self.normal.residuals_of(z, before).r
            r = np.where(aside, whole if beyond is None else whole + beyond, r)
            e = np.where(stuck, self._far, self.normal.tails(r))
        return Shown(r, e, passed, aside, began | again, ended | again, changed)

    def _beyond(self, now: Array, before: Array) -> Array | None:
        """What deviations beyond FARTHEST add to a sensor's own residual, (n, K): relations are judged up to there."""
        if not ((now != 0) & ~np.isnan(now)).any() and not ((before != 0) & ~np.isnan(before)).any():
            return None
        normal = self.normal
        memory = normal.precision[np.arange(normal.size), np.arange(normal.size) + normal.size]
        return np.asarray((np.nan_to_num(now) / normal.unit**2 + np.nan_to_num(before) * memory) * normal.unit)

    def gap(self, missing: int, n: Index | slice = slice(None)) -> None:
        """Windows are missing before the next one; a single one is no gap."""
        if missing > 1:
            self.before[n], self.value[n], self.repeats[n] = np.nan, np.nan, 0.0
        if missing > SHORT_GAP:
            self._forget(n)
            self._out[:, n] = False

    def _forget(self, n: Index | slice) -> None:
        """The windows so far no longer count."""
        for ring in (self._e, self._firm, self._r, self._d):
            ring[:, n] = 0.0

    def _values(self, r: Array, distance: Array, n: Index) -> tuple[Array, Array, Array]:
        """The detectors, (n, 5), the first three by large deviations alone, (n, 3), and rarities, (n, K)."""
        normal, at = self.normal, self.count[n] % SHORT
        e, d = normal.tails(r), normal.distances(distance[:, None])[:, 0]
        large = self._large(r, e)
        self._r[self.count[n] % LONG, n], self._d[at, n], self._e[at, n], self._firm[at, n] = r, d, e, large
        drifts = self._r[:, n].sum(axis=0) / np.sqrt(LONG)
        drift, short = normal.drifts(drifts), self._e[:, n].sum(axis=0) / SHORT
        values = values_of(e, short, drift, d, self._d[:, n].sum(axis=0) / SHORT)
        firm = (large, self._firm[:, n].sum(axis=0) / SHORT, self._large_drift(drifts, drift))
        return values, np.stack([rarities.max(axis=1) for rarities in firm], axis=1), e

    def _decide(self, fine: Mask, firm: Mask, n: Index) -> tuple[Mask, Mask, Mask]:
        """Begin alarms and end them."""
        self._fine_ago[n] = fine_ago = np.where(fine, 0, self._fine_ago[n] + 1)
        self._firm_ago[n] = firm_ago = np.where(firm, 0, self._firm_ago[n] + 1)
        ranged_for = self.ranged_for[n]
        ranged = ((ranged_for > 0) & (ranged_for <= LASTING)).any(axis=1)
        still_fine, still_firm = fine_ago < HOLD, (firm_ago < HOLD) | ranged
        settled = self.settled[n] & still_fine
        now = still_firm | (still_fine & ~settled)
        was = self.on[n]
        began = now & ~was
        self._small_for[n] = small_for = np.where(began | still_firm, 0, self._small_for[n] + 1)
        changed = now & ~still_firm & (small_for >= PATIENCE)
        now &= ~changed
        self.settled[n], self.on[n] = settled | changed, now
        return began & now, was & ~now, changed

    def _escalated(self, strength: Array, began: Mask, n: Index) -> Mask:
        """Alarms in which another, larger incident begins: far more than all that the alarm has shown before."""
        at, on = self.count[n] % HOLD, self.on[n]
        leaving = self._strengths[at, n]
        self._strengths[at, n] = strength
        age = np.where(began | ~on, 0, self._age[n] + 1)
        self._peak[n] = peak = np.where(age < HOLD, 0.0, np.maximum(self._peak[n], leaving))
        again = on & (age >= SETTLING) & (strength > ESCALATES * np.maximum(peak, 1.0))
        self._age[n] = np.where(again, 0, age)
        return np.asarray(again)

    # -- standstill, silence, range ------------------------------------------------------------------

    def _standing(self, x: Array, n: Index) -> Mask:
        """Count for how long sensors repeat a value or are silent; those that are stuck, (n, K)."""
        silent = np.isnan(x)
        same = np.abs(x - self.value[n]) <= _SAME * (1.0 + np.abs(x))
        repeats, still = self.repeats[n], self.still[n]
        # one that has moved again may stand still for twice as long from then on: some come to rest often
        longer = np.minimum(np.maximum(still, LONGER * repeats), MOST_LONGER * self._usual_still)
        self.still[n] = still = np.where(~same & ~silent, np.maximum(longer, still), still)
        self.repeats[n] = repeats = np.where(same, repeats + 1, np.where(silent, 0, 1))
        others = ~silent.all(axis=1, keepdims=True)
        self.silent[n] = np.where(silent, self.silent[n] + others, 0)
        self.value[n] = x
        return np.asarray(repeats > np.floor(still))

    def _range(self, x: Array, n: Index) -> Mask:
        self._out[self.count[n] % RANGE_IN, n] = (x < self._low) | (x > self._high)
        ranged = self._out[:, n].sum(axis=0) >= RANGE_OF
        self.ranged_for[n] = np.where(ranged, self.ranged_for[n] + 1, 0)
        return np.asarray(ranged)

    @property
    def stuck(self) -> Mask:
        """Sensors that repeat one value for longer than they may, (N, K)."""
        return np.asarray(self.repeats > np.floor(self.still))

    @property
    def gone(self) -> Mask:
        """Sensors that are silent for longer than they may be, (N, K)."""
        return np.asarray(self.silent >= self._silent_after)

    @property
    def ranged(self) -> Mask:
        """Sensors that are out of range, (N, K)."""
        return np.asarray(self.ranged_for > 0)

    # -- files ---------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """What a file must keep, as floats and whole numbers."""
        arrays = {name.lstrip("_"): getattr(self, name) for name in _ARRAYS}
        return {name: array.astype(np.int64) if array.dtype == bool else array for name, array in arrays.items()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from a kept state, or refuse it."""
        mine = self.state()
        if set(state) != set(mine):
            raise ValueError("its state is incomplete")
        for name in _ARRAYS:
            known, found = mine[name.lstrip("_")], state[name.lstrip("_")]
            if found.shape != known.shape or found.dtype != known.dtype:
                raise ValueError("its state is damaged")
            if found.dtype == np.float64:
                finite = found[~np.isnan(found)] if name in ("before", "value") else found
                good = bool((np.abs(finite) <= 1e60).all())
            else:
                most = 1 if getattr(self, name).dtype == bool else 1 << 40
                good = bool(((found >= 0) & (found <= most)).all())
            if not good:
                raise ValueError("its state is damaged")
            setattr(self, name, found.astype(getattr(self, name).dtype))
