"""Begin and end alarms, window by window, in `identify`, `watch` and drills; and date their incidents.

`Engine.step` compares each window with what the sensors and the window before say it should be (`model.normal`), and
the detectors with their thresholds; `Engine._decide_alarms` begins and ends alarms. An alarm is on while a detector
passes, and a few windows longer.

A deviation that lasts and is steady is a change: its alarm ends, and from then on windows are judged about its level
too. Only what is far from normal and far from the level of the change raises an alarm again; where windows are normal
again for as long as the longest sum, the change is over.

A sensor that is out of range, beyond the history by as much as the history's whole range, or stuck is set aside, so
that the others are judged without it; a silent one bears no evidence anyway. `Tuning` has the numbers.

State is a few numbers for each sensor; a window costs a product with a 2K x 3K matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.base.codec import Field, Sizes
from eccaht.plants.model import detectors
from eccaht.plants.model.detectors import Residuals
from eccaht.plants.model.residuals import Normal, clipped
from eccaht.plants.tuning import TUNING

_SAME = 1e-9  # by how much means of the same values differ
_EDGE = 2.576  # deviations that one normal residual in a hundred exceeds
_SURE = 0.95  # of the interval of the onset
Mask = NDArray[np.bool_]
STANDING = ("stuck", "silent", "range")  # in which a sensor is wrong by itself


@dataclass(frozen=True, eq=False)
class WindowResult:
    """What the engine makes of one window of n plants.

    r, e: residuals and their rarities, (n, K). passed: the largest detector value beyond its threshold, in units in
    which chance is e times as rare, (n,): 0 raises an alarm, but where a change lasts. began, ended, changed: plants
    whose alarm begins or is over with this window, and those of the latter whose deviation lasts as a change, (n,).
    standing: sensors that are
    stuck, silent or out of range, which are wrong by themselves, (3, n, K).
    """

    r: Array
    e: Array
    passed: Array
    began: Mask
    ended: Mask
    changed: Mask
    standing: Mask


class Engine:
    """Watch `plants` plants by one description of normal operation.

    every: windows to a false alarm in the mean. gaps: for how many windows each sensor was silent in the history, (K,).
    """

    FIELDS = (
        *(Field(name, ("N", "K"), low=-1e60, high=1e60, nan=True) for name in ("before", "value")),
        *(Field(name, ("N", "K"), low=-1e60, high=1e60) for name in ("repeats", "still", "silent", "ranged_for")),
        Field("_aside", ("N", "K"), bool),
        Field("_out", (TUNING.range_of_windows, "N", "K"), bool),
        *(Field(name, (...,), low=-1e60, high=1e60, keyed=True) for name in ("_rings", "_rings_about")),
        Field("_level", ("N", "deviations"), low=-1e60, high=1e60),
        Field("_level_windows", ("N",), low=1.0, high=1e60),
        Field("_recent", (TUNING.change_windows, "N", "deviations"), low=-1e60, high=1e60),
        *(Field(name, ("N",), bool) for name in ("on", "settled", "_left")),
        *(Field(name, ("N",), int) for name in ("count", "_passed_ago", "_normal_for", "_lasted")),
    )

    def __init__(self, normal: Normal, every: float, plants: int = 1, gaps: Array | None = None) -> None:
        self.normal, self.every = normal, every
        self.limits, self.excess = normal.peaks.limits(every)
        N, K = plants, normal.size
        width = normal.high - normal.low
        self._low, self._high = normal.low - width, normal.high + width
        self._silent_after = np.maximum(
            TUNING.standstill_factor * (np.zeros(K) if gaps is None else gaps), TUNING.least_silence_windows
        )
        self._columns = detectors.columns(K)
        self.before = np.full((N, K), np.nan)  # the last window, in spreads
        self._aside = np.zeros((N, K), dtype=bool)  # and what of it was not judged
        self._rings, self._rings_about = self._empty_rings(), self._empty_rings()
        self._level = np.zeros((N, 3 * K))  # of what windows show, where a change lasts,
        self._level_windows = np.ones(N)  # and the windows that it is the mean of
        self._recent = np.zeros((TUNING.change_windows, N, 3 * K))  # what they show
        self._out = np.zeros((TUNING.range_of_windows, N, K), dtype=bool)
        self.value = np.full((N, K), np.nan)  # the last reading
        self.repeats, self.silent = np.zeros((N, K)), np.zeros((N, K))
        self._usual_still = np.maximum(TUNING.standstill_factor * normal.repeats, TUNING.least_standstill_windows)
        self.still = np.tile(self._usual_still, (N, 1))  # windows for which each sensor may repeat a value
        self.ranged_for = np.zeros((N, K))  # windows for which each sensor has been out of range
        self.count = np.zeros(N, dtype=np.int64)  # windows so far
        self.on, self.settled = np.zeros(N, dtype=bool), np.zeros(N, dtype=bool)  # settled: a change lasts
        self._left = np.zeros(N, dtype=bool)  # the level of the change
        self._passed_ago = np.full(N, 1 << 30)
        self._normal_for = np.full(N, 1 << 30)
        self._lasted = np.zeros(N, dtype=np.int64)
        self._far = normal.tails.base + 10.0  # rarity of a sensor that is stuck

    def step(self, x: Array, which: Index | None = None) -> WindowResult:
        """Take a window of each of the plants `which`, all of them if not given: (n, K), robust units, NaN: silent."""
        n = np.arange(len(self.count)) if which is None else which
        stuck, ranged = self._standing(x, n), self._range(x, n)
        aside = stuck | ranged
        raw, raw_before, was = (x - self.normal.centre) / self.normal.scale, self.before[n], self._aside[n]
        self.before[n], self._aside[n] = raw, aside
        shown, r = self._shown(raw, raw_before, stuck, aside, was)
        about = self._about_levels(shown, n)
        left = (about > 0.0) & self.settled[n]
        leaves = left & ~self._left[n]
        self._left[n] = left
        if leaves.any():  # its window before shows the change: it is judged as the first one
            shown, r = self._shown(raw, np.where(leaves[:, None], np.nan, raw_before), stuck, aside, was)
            self._forget(n[leaves], (self._rings,))
        values, e = self._values(shown, n, self._rings, np.inf)
        passed = self._passed(values)
        self._normal_for[n] = normal_for = np.where(passed > 0.0, 0, self._normal_for[n] + 1)
        self.settled[n] &= normal_for < TUNING.long_windows
        began, ended, changed = self._decide_alarms(np.minimum(passed, about) > 0.0, n)
        self.count[n] += 1
        if aside.any() or was.any():
            e = np.where(stuck, self._far, self.normal.tails(r))
        return WindowResult(r, e, passed, began, ended, changed, self.standing[:, n])

    def _shown(self, raw: Array, raw_before: Array, stuck: Mask, aside: Mask, was: Mask) -> tuple[Residuals, Array]:
        """What windows show without the sensors that are set aside, now and before, and residuals of all sensors.

        The departure of a window is with those that are out of range, which nothing else judges.
        """
        z, before = clipped(raw), clipped(raw_before)
        shown = self.normal.residuals_of(z, before)
        r, beyond = shown.r, self._beyond(raw - z, raw_before - before)
        if beyond is not None:
            r = r + beyond
        if aside.any() or was.any():
            departure = self.normal.residuals_of(np.where(stuck, np.nan, z), before).departure
            others = self.normal.residuals_of(np.where(aside, np.nan, z), np.where(was, np.nan, before))
            of_others = others.r if beyond is None else others.r + np.where(aside | was, 0.0, beyond)
            return others._replace(r=of_others, departure=departure), np.where(aside, r, of_others)
        return shown._replace(r=r), r

    def _passed(self, values: Array) -> Array:
        """The largest of the detectors, (n, D), beyond its threshold; above 0 it raises an alarm."""
        return np.asarray(((values - self.limits) / self.excess).max(axis=1))

    def _beyond(self, now: Array, before: Array) -> Array | None:
        """What deviations that are too far to judge relations by add to a sensor's own residual, (n, K)."""
        if not ((now != 0) & ~np.isnan(now)).any() and not ((before != 0) & ~np.isnan(before)).any():
            return None
        normal = self.normal
        memory = normal.precision[np.arange(normal.size), np.arange(normal.size) + normal.size]
        return np.asarray((np.nan_to_num(now) / normal.unit**2 + np.nan_to_num(before) * memory) * normal.unit)

    def gap(self, missing: int, n: Index | slice = slice(None)) -> None:
        """Windows are missing before the next one; a single one is no gap."""
        if missing > 1:
            self.before[n], self.value[n], self.repeats[n] = np.nan, np.nan, 0.0
        if missing > TUNING.short_gap_windows:
            self._forget(n)
            self._out[:, n] = False

    def gaps(self, missing: Index, which: Index) -> None:
        """Windows are missing before the next ones of some plants, (n,) each."""
        for place in np.flatnonzero(missing).tolist():
            self.gap(int(missing[place]), which[place : place + 1])

    def leave_out(self, places: list[int]) -> None:
        """What these sensors showed no longer counts."""
        if not np.isnan(self.before[:, places]).all():  # others were judged by it
            self._forget(slice(None))
        self.before[:, places], self._out[:, :, places] = np.nan, False
        for lasted in (self.repeats, self.silent, self.ranged_for):
            lasted[:, places] = 0

    def end_alarms(self) -> None:
        """With the next window alarms are over, unless it raises one, and so are changes."""
        self.settled[:], self._passed_ago[:], self._lasted[:] = False, TUNING.alarm_hold_windows, 0

    def _forget(self, n: Index | slice | int, rings: Iterable[dict[str, Array]] = ()) -> None:
        """The windows so far no longer count, in these rings or in all."""
        for some in rings or (self._rings, self._rings_about):
            for ring in some.values():
                ring[:, n] = 0.0

    def _empty_rings(self) -> dict[str, Array]:
        """The last windows of quantities that are sums, and the last rarities of detectors that are means."""
        N, K = self.before.shape
        rings = {}
        for place, quantity in enumerate(self._columns):
            if quantity.windows > 1:
                rings[f"sum_{place}"] = np.zeros((quantity.windows, N, quantity.width(K)))
        for place, detector in enumerate(detectors.ALARM_DETECTORS):
            if detector.mean_windows > 1:
                rings[f"mean_{place}"] = np.zeros((detector.mean_windows, N, detector.quantity.width(K)))
        return rings

    def _sum_in(self, ring: Array, row: Array, n: Index) -> Array:
        """Put what this window adds, (n, C), into a ring, and return the sums of all that it holds."""
        ring[self.count[n] % len(ring), n] = row
        return np.asarray(ring[:, n].sum(axis=0))

    def _values(
        self, shown: Residuals, n: Index, rings: dict[str, Array], level_windows: Array | float
    ) -> tuple[Array, Array]:
        """The detectors, (n, D), and rarities of residuals, (n, K), about a level that is the mean of so many windows.

        That mean has noise of its own, which a sum over m windows takes up m times.
        """
        sizes = []
        for place, quantity in enumerate(self._columns):
            size = quantity.value(shown)
            if quantity.windows > 1:
                size = self._sum_in(rings[f"sum_{place}"], size, n) / np.sqrt(quantity.windows)
            sizes.append(size / np.sqrt(1.0 + quantity.windows / level_windows))
        e = self.normal.rarity(np.concatenate(sizes, axis=1))
        values = np.empty((len(n), len(self.limits)))
        for d, detector in enumerate(detectors.ALARM_DETECTORS):
            found = e[:, self._columns[detector.quantity]]
            if detector.mean_windows > 1:
                found = self._sum_in(rings[f"mean_{d}"], found, n) / detector.mean_windows
            values[:, d] = found.max(axis=1)
        return values, e[:, self._columns[detectors.RESIDUAL]]

    def _about_levels(self, shown: Residuals, n: Index) -> Array:
        """How far windows are beyond a threshold about the level of a change, (n,).

        Infinitely far where no change lasts. The level is the mean of the windows that are normal about it.
        """
        row, found = np.concatenate(shown, axis=1), np.full(len(n), np.inf)
        self._recent[self.count[n] % TUNING.change_windows, n] = row
        here = self.settled[n]
        if here.any():
            some = n[here]
            about, windows = row[here] - self._level[some], self._level_windows[some]
            values, _ = self._values(Residuals.of(about), some, self._rings_about, windows[:, None])
            found[here] = self._passed(values)
            usual = found[here] <= 0.0
            self._level_windows[some] = windows = windows + (usual & (windows < TUNING.level_windows))
            self._level[some] += np.where(usual[:, None], about / windows[:, None], 0.0)
        return found

    def _settle(self, n: int) -> bool:
        """Take the mean of the last windows of a plant for its level, if most of them are normal about it."""
        last = np.roll(self._recent[:, n], -int((self.count[n] + 1) % TUNING.change_windows), axis=0)
        level = last.mean(axis=0)
        about = Residuals.of(last - level)
        rarities = {
            quantity: self.normal.rarity.of_columns(place)(quantity.of_history(about))
            for quantity, place in self._columns.items()
        }
        if (self._passed(detectors.values_of(rarities)) <= 0.0).mean() < TUNING.steady_share:
            return False
        self._level[n], self._level_windows[n] = level, len(last)
        self._forget(n, (self._rings_about,))
        return True

    def _decide_alarms(self, passing: Mask, n: Index) -> tuple[Mask, Mask, Mask]:
        """Begin and end alarms, (n,): plants of which a detector passes; return began, ended and changed, (n,) each."""
        passed_ago = np.where(passing, 0, self._passed_ago[n] + 1)
        now, was = passed_ago < TUNING.alarm_hold_windows, self.on[n]
        begins = now & ~was
        # alarms that follow each other closely are one that flickers
        lasted = np.where(now | (self._normal_for[n] < TUNING.long_windows), self._lasted[n] + 1, 0)
        long_enough = (lasted >= TUNING.change_windows) & (begins | (lasted % TUNING.change_windows == 0))
        changed = np.zeros(len(n), dtype=bool)
        for place in np.flatnonzero(now & long_enough).tolist():
            changed[place] = self._settle(n[place])
        now &= ~changed
        self._passed_ago[n] = np.where(changed, TUNING.alarm_hold_windows, passed_ago)
        self._lasted[n], self.on[n] = np.where(changed, 0, lasted), now
        self.settled[n] |= changed
        began, ended = begins & now, was & ~now
        changed &= was
        if (over := ended & ~changed).any():  # reset the running means, so that the recovery raises no alarm
            self._forget(n[over])
        return began, ended, changed

    def _standing(self, x: Array, n: Index) -> Mask:
        """Count for how long sensors repeat a value or are silent; those that are stuck, (n, K)."""
        silent = np.isnan(x)
        same = np.abs(x - self.value[n]) <= _SAME * (1.0 + np.abs(x))
        repeats, still = self.repeats[n], self.still[n]
        # one that has moved again may stand still for twice as long from then on: some come to rest often
        longer = np.minimum(
            np.maximum(still, TUNING.standstill_factor * repeats), TUNING.most_standstill_factor * self._usual_still
        )
        self.still[n] = still = np.where(~same & ~silent, np.maximum(longer, still), still)
        self.repeats[n] = repeats = np.where(same, repeats + 1, np.where(silent, 0, 1))
        others = ~silent.all(axis=1, keepdims=True)
        self.silent[n] = np.where(silent, self.silent[n] + others, 0)
        self.value[n] = x
        return np.asarray(repeats > np.floor(still))

    def _range(self, x: Array, n: Index) -> Mask:
        self._out[self.count[n] % TUNING.range_of_windows, n] = (x < self._low) | (x > self._high)
        ranged = self._out[:, n].sum(axis=0) >= TUNING.range_windows
        self.ranged_for[n] = np.where(ranged, self.ranged_for[n] + 1, 0)
        return np.asarray(ranged)

    @property
    def standing(self) -> Mask:
        """The sensors that are stuck, silent for longer than they may be, or out of range, (3, N, K): see STANDING."""
        stuck, silent = self.repeats > np.floor(self.still), self.silent >= self._silent_after
        return np.stack([stuck, silent, self.ranged_for > 0])

    @property
    def stood_for(self) -> Array:
        """The windows for which each sensor repeats a value, is silent or is out of range, (3, N, K)."""
        return np.stack([self.repeats, self.silent, self.ranged_for])

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        shapes = {name: ring.shape for name, ring in self._empty_rings().items()}
        rings = (self._rings, self._rings_about)
        fits = all({name: ring.shape for name, ring in some.items()} == shapes for some in rings)
        if not fits or self.before.shape[1] != self.normal.size or self._level.shape[1] != 3 * self.normal.size:
            raise ValueError("its state is damaged: it is of other detectors or sensors")


@dataclass
class Record:
    """Windows with their residuals and rarities, (T, K) each.

    usual: the windows without those of sensors in earlier incidents, from which levels are taken.
    """

    values: Array
    usual: Array
    r: Array
    e: Array


@dataclass
class Run(Record):
    """A recording that has gone through the engine.

    passed: the detectors beyond their thresholds, (T,). standing: sensors that were stuck, silent or out of range,
    (3, T, K). lasts: whether what an alarm began with lasts as a change, (T,). alarms: the windows with which each
    began and was over, None if it goes on, and whether it lasted as a change then.
    """

    passed: Array
    standing: Mask
    lasts: Mask
    alarms: list[tuple[int, int | None, bool]] = field(default_factory=list)

    def until(self, stop: int) -> Run:
        """The same of the windows before `stop` alone."""
        alarms = [(a, None if b is None or b >= stop else b, c) for a, b, c in self.alarms if a < stop]
        values, r, e = self.values[:stop], self.r[:stop], self.e[:stop]
        return Run(values, values.copy(), r, e, self.passed[:stop], self.standing[:, :stop], self.lasts[:stop], alarms)


def run_engine(
    normal: Normal, values: Array, every: float, *, gaps: Array | None = None, missing: Index | None = None
) -> Run:
    """Run the engine over windows, (T, K), in robust units; missing: windows that are not there before each, (T,)."""
    missing = np.zeros(len(values), dtype=np.intp) if missing is None else missing
    return runs_of(Engine(normal, every, gaps=gaps), values[:, None], missing[:, None])[0]


def runs_of(engine: Engine, values: Array, missing: Index) -> list[Run]:
    """Run the engine of N plants over their windows, (T, N, K); missing: windows before each, (T, N)."""
    r, e, passed = np.zeros(values.shape), np.zeros(values.shape), np.zeros(values.shape[:2])
    standing, lasts = np.zeros((3, *values.shape), dtype=bool), np.zeros(values.shape[:2], dtype=bool)
    runs = [
        Run(values[:, n], values[:, n].copy(), r[:, n], e[:, n], passed[:, n], standing[:, :, n], lasts[:, n])
        for n in range(values.shape[1])
    ]
    for t in range(len(values)):
        engine.gaps(missing[t], np.arange(len(runs)))
        shown = engine.step(values[t])
        r[t], e[t], passed[t] = shown.r, shown.e, shown.passed
        standing[:, t], lasts[t] = shown.standing, engine.settled
        for n in np.flatnonzero(shown.ended).tolist():
            runs[n].alarms[-1] = (runs[n].alarms[-1][0], t, bool(shown.changed[n]))
        for n in np.flatnonzero(shown.began).tolist():
            runs[n].alarms.append((t, None, False))
    return runs


#
# The likelihood of every beginning and end around an alarm. A sensor that is off by d spreads from window s to before
# window t moves its residuals by d h, with h = sqrt(Q_kk) in window s, (Q_kk + P_kk') / sqrt(Q_kk) after it and
# P_kk' / sqrt(Q_kk) in window t, k' the sensor in the window before: the first window stands out most, and the recovery
# has the other sign. The log-likelihood ratio of the best d is (h'r)^2 / (2 h'h); likewise for a drift, whose d grows
# from window to window. A sensor of any other course gains by the rarity of its residuals beyond what is usual. For
# each sensor the largest of the three counts, summed over the sensors that are wrong.


@dataclass(frozen=True)
class Dates:
    """The first window of an incident, its interval of 95 %, and the first window after it, None if it goes on."""

    onset: int
    first: int
    last: int
    end: int | None


def date(
    normal: Normal, r: Array, e: Array, begun: int, over: int | None, sensors: list[int], latest: int | None = None
) -> Dates:
    """Date the incident of an alarm that began with window `begun` and was over with window `over`, None: goes on.

    r, e: residuals and rarities of the recording, (T, K). sensors: those that are wrong. latest: how far it may have
    lasted, since a small deviation may go on below the thresholds; not beyond `over` if not given.
    """
    stop = len(r) if over is None else min(over if latest is None else min(latest, over + TUNING.later_windows), len(r))
    low = max(0, begun - TUNING.earlier_windows)
    scores = np.zeros((begun - low + 1, stop - low + 1))
    for k in sensors:
        scores += _scores(normal, k, r[low:stop, k], e[low:stop, k], begun - low)
    starts, ends = np.arange(scores.shape[0])[:, None], np.arange(scores.shape[1])[None, :]
    scores = np.where((ends > starts) & (ends > begun - low), scores, -np.inf)
    best = scores.max()
    weights = np.exp(scores - best).sum(axis=1)
    share = np.cumsum(weights) / weights.sum()
    first, last = (int(np.searchsorted(share, tail)) for tail in ((1.0 - _SURE) / 2, (1.0 + _SURE) / 2))
    onset, end = np.unravel_index(int(scores.argmax()), scores.shape)
    last = min(max(last, int(onset)), len(share) - 1)
    finished = int(end) + low if over is not None or int(end) < stop - low else None
    return Dates(low + int(onset), low + min(first, int(onset)), low + last, finished)


def _scores(normal: Normal, k: int, r: Array, e: Array, latest: int) -> Array:
    """The log-likelihood of each onset up to `latest` and each end, (latest + 1, L + 1), for one sensor."""
    L, own, before = len(r), normal.precision[k, k], normal.precision[k, k + normal.size]
    spread = max(float(normal.tails.edge[k]) / _EDGE, TUNING.least_residual_spread)
    head, middle, tail = np.array([own, own + before, before]) / np.sqrt(own)
    sums, rare = np.concatenate([[0.0], np.cumsum(r)]), np.concatenate([[0.0], np.cumsum(e - TUNING.usual_rarity)])
    moments = np.concatenate([[0.0], np.cumsum(np.arange(L) * r)])
    s, t = np.arange(latest + 1)[:, None], np.arange(L + 1)[None, :]
    lasts = t < L  # a window after the end is there to see
    after = np.where(lasts, np.append(r, 0.0)[None, :], 0.0)
    within, length = sums[t] - sums[s], np.maximum(t - s, 1)
    product = head * r[: latest + 1, None] + middle * (sums[t] - sums[s + 1]) + tail * after
    power = head**2 + middle**2 * (length - 1) + tail**2 * lasts
    step = product**2 / power
    # a drift: d grows by as much in each window
    product = middle * (moments[t] - moments[s] - s * within) + head * within + tail * length * after
    power = middle**2 * (length - 1) * length * (2 * length - 1) / 6.0 + head * middle * length * (length - 1)
    power += head**2 * length + (tail * length) ** 2 * lasts
    drift = product**2 / power
    step = np.maximum(step, drift) / (2.0 * spread**2)
    return np.asarray(np.maximum(step, rare[t] - rare[s]))


def gain(normal: Normal, r: Array, e: Array, sensors: list[int], start: int, stop: int) -> float:
    """The log-likelihood of one incident of these sensors in windows [start, stop)."""
    last = min(stop + 1, len(r))
    scores = [_scores(normal, k, r[start:last, k], e[start:last, k], 0)[0, stop - start] for k in sensors]
    return float(np.sum(scores))
