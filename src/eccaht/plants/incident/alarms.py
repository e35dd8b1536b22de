"""Where an alarm is decided: the one engine of `identify`, `watch` and drills; and when its incident began and ended.

`Engine.step` compares each window with what the sensors and the window before say it should be (`model.normal`), and
the detectors with their thresholds; `Engine._decide_alarms` begins and ends alarms. An alarm is on while a detector
passes, and for HOLD windows after. Deviations below BIG of a sensor's spread raise an alarm but keep it for PATIENCE
windows only: what lasts longer is a change that the other sensors hardly contradict, reported once. A sensor beyond the
history by as much as the history's whole range is out of range: an alarm by itself, for LASTING windows; it is set
aside, so that the others are judged without it. So is a sensor that is stuck; one that is silent says nothing anyway.

State is a few numbers for each sensor; a window costs two products with K x K matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.plants.model.residuals import FARTHEST, LONG, SHORT, Normal, Tails, values_of

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
EARLIER = 2 * LONG  # windows before an alarm in which the incident may have begun
LATER = 512  # windows after an alarm that its incident may have gone on for
USUAL = 2.0  # nats of a window that a sound sensor exceeds in one window in seven
_EDGE = 2.576  # deviations that one normal residual in a hundred exceeds
_LEAST_SPREAD = 0.3  # of residuals, in units that they have if the fit is right
_SURE = 0.95  # of the interval of the onset
Mask = NDArray[np.bool_]
_ARRAYS = (
    *("before", "_aside", "_e", "_firm", "_r", "_d", "_out", "value", "repeats", "still", "silent", "ranged_for"),
    *("count", "on", "settled", "_fine_ago", "_firm_ago", "_small_for", "_age", "_peak", "_strengths"),
)


@dataclass(frozen=True, eq=False)
class _Large:
    """Rarities in which deviations below a size count at most as one in a hundred, and larger ones from there on."""

    size: Array  # (K,)
    less: Array  # what rarities beyond it lose, (K,)
    base: float  # what smaller ones count at most

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
    which chance is e times as rare, (n,): 0 raises an alarm. began, ended, changed: plants whose alarm begins or is
    over with this window, and those of the latter whose deviation lasts as a change, (n,).
    """

    r: Array
    e: Array
    passed: Array
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
        passed = ((values - self.limits) / self.excess).max(axis=1)  # above 0: a detector is beyond its threshold
        began, ended, changed = self._decide_alarms(passed > 0.0, np.asarray((firm > self.limits[:3]).any(axis=1)), n)
        again = self._escalated((values / self.limits).max(axis=1), began, n)
        if ended.any():  # what an incident and its recovery leave behind is no news
            self._forget(n[ended])
        self.count[n] += 1
        r = shown.r
        if any_aside:  # what is set aside is shown all the same
            whole = self.normal.residuals_of(z, before).r
            r = np.where(aside, whole if beyond is None else whole + beyond, r)
            e = np.where(stuck, self._far, self.normal.tails(r))
        return Shown(r, e, passed, began | again, ended | again, changed)

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

    def _decide_alarms(self, fine: Mask, firm: Mask, n: Index) -> tuple[Mask, Mask, Mask]:
        """Begin alarms and end them: the one place where an alarm is decided. Returned: began, ended, changed, (n,).

        fine, firm: plants of which a detector passes, and one that counts large deviations alone, (n,).
        """
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
            known, found, dtype = mine[name.lstrip("_")], state[name.lstrip("_")], getattr(self, name).dtype
            same = found.shape == known.shape and found.dtype == known.dtype
            least, most = {"f": (-1e60, 1e60), "b": (0, 1)}.get(dtype.kind, (0, 1 << 40))
            silent = np.isnan(found) if same and name in ("before", "value") else False
            if not same or not (((found >= least) & (found <= most)) | silent).all():
                raise ValueError("its state is damaged")
            setattr(self, name, found.astype(dtype))


@dataclass
class Run:
    """What the engine said of T windows: residuals and rarities, (T, K), the detectors beyond their thresholds, (T,).

    standing: sensors that were stuck, silent or out of range, (3, T, K). alarms: the windows with which each began and
    was over, None if it goes on, and whether it lasts as a change. usual: the windows without those of sensors in
    earlier incidents, from which levels are taken, (T, K).
    """

    values: Array
    r: Array
    e: Array
    passed: Array
    standing: Mask
    alarms: list[tuple[int, int | None, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.usual = self.values.copy()

    def until(self, stop: int) -> Run:
        """The same of the windows before `stop` alone."""
        alarms = [(a, None if b is None or b >= stop else b, c) for a, b, c in self.alarms if a < stop]
        return Run(
            self.values[:stop], self.r[:stop], self.e[:stop], self.passed[:stop], self.standing[:, :stop], alarms
        )


def run_engine(
    normal: Normal, values: Array, every: float, *, gaps: Array | None = None, missing: Index | None = None
) -> Run:
    """Run the engine over windows, (T, K), in robust units; missing: windows that are not there before each, (T,)."""
    missing = np.zeros(len(values), dtype=np.intp) if missing is None else missing
    return runs_of(Engine(normal, every, gaps=gaps), values[:, None], missing[:, None])[0]


def runs_of(engine: Engine, values: Array, missing: Index) -> list[Run]:
    """Run the engine of N plants over their windows, (T, N, K); missing: windows before each, (T, N)."""
    r, e, passed = np.zeros(values.shape), np.zeros(values.shape), np.zeros(values.shape[:2])
    standing = np.zeros((3, *values.shape), dtype=bool)
    runs = [Run(values[:, n], r[:, n], e[:, n], passed[:, n], standing[:, :, n]) for n in range(values.shape[1])]
    for t in range(len(values)):
        engine.gaps(missing[t], np.arange(len(runs)))
        shown = engine.step(values[t])
        r[t], e[t], passed[t] = shown.r, shown.e, shown.passed
        standing[:, t] = engine.stuck, engine.gone, engine.ranged
        for n in np.flatnonzero(shown.ended).tolist():
            runs[n].alarms[-1] = (runs[n].alarms[-1][0], t, bool(shown.changed[n]))
        for n in np.flatnonzero(shown.began).tolist():
            runs[n].alarms.append((t, None, False))
    return runs


# -- when an incident began and when it was over -----------------------------------------------------------
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
    stop = len(r) if over is None else min(over if latest is None else min(latest, over + LATER), len(r))
    low = max(0, begun - EARLIER)
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
    spread = max(float(normal.tails.edge[k]) / _EDGE, _LEAST_SPREAD)
    head, middle, tail = np.array([own, own + before, before]) / np.sqrt(own)
    sums, rare = np.concatenate([[0.0], np.cumsum(r)]), np.concatenate([[0.0], np.cumsum(e - USUAL)])
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
