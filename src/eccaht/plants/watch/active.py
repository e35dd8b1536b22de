"""Watch a plant of which only a few sensors are read in each window, and choose which.

A window follows from the one before by the model's own Gaussian: with P the precision of (z_t, z_t-1) and Q its block
of now, z_t = F z_t-1 + noise, F = -Q^-1 P_now,before, of covariance Q^-1. A Kalman filter with exact readings of some
sensors says what the others should read now: what is not read is unknown, not silent. With A the sensors that are read
and e what they read beyond that prediction, of covariance S:

- sudden: (e' S_AA^-1 e - n) / sqrt(2 n), Hotelling's T2 of the n readings given all earlier ones;
- lasting: the same of the readings themselves, given nothing: what lasts is soon predicted.

An alarm is on while the mean of one of them over some windows is beyond its limit; what lasts without anything sudden
is a change, which ends its alarm. Limits are counted on the history, replayed under the same rule, each fifth of it
judged by a fit to the others: `ReadingPlan`.

What is read next: each sensor has a weight that grows with what its readings showed beyond the others' (`suspicion`)
and with the time since it was read; sensors are taken one by one, the one first that adds most to the weighted sum of
the precisions of all that are read, for its cost. So neighbours of a suspect are read with it, which cancel its noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index, as_number
from eccaht.base.clock import parse_duration
from eccaht.base.codec import Field, Part, settle
from eccaht.base.presentation.text import did_you_mean
from eccaht.plants.model.detectors import clusters, highest, level
from eccaht.plants.model.fitting import held_out
from eccaht.plants.model.model import Model
from eccaht.plants.model.residuals import Normal, symmetric
from eccaht.plants.tuning import TUNING

MEANS = (TUNING.short_windows, TUNING.long_windows)  # windows of the means of what is sudden, and of what lasts
_LEAST_EXCESS = 0.05  # of a level: statistics are in deviations
_RIDGE = 1e-9  # of what is read twice in one window
_LEAST_VARIANCE = 1e-6  # of a sensor given the others that are read
_ALMOST_ONE = 0.995  # spectral radius of F, at most: a plant that is never read returns to normal
_BELIEVED = 2.0  # deviations, root mean square: readings beyond move what is predicted no further
_FORGOTTEN = 0.9  # of suspicion, from window to window
_LARGEST_SQUARE = 16.0  # of a residual: one wild reading must not rule what is read
_AGE = 0.3  # nats of weight for each window since a sensor was read
_HEAVIEST = 20.0  # nats of weight: beyond, the others would be rounded away
_ROUNDS = 4  # rounds of all sensors after which one that was not read comes first, for at most half of the budget
_SAME = 1e-9  # by how much equal readings differ
_NEVER = 1e9  # windows
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ReadingPlan:
    """How much may be read in a window, and what of it is an alarm.

    readings: the budget of a window. costs: of each sensor, (K,). within: windows within which each must be read,
    (K,). in_turn: read one sensor after the other, whatever they show. windows: of the history. usual, excess: of both
    statistics the level of its highest clusters, and how much beyond is e times as rare, (2,). heights: of clusters of
    the larger one, as (value - usual) / excess, decreasing, (M,).
    """

    readings: float
    costs: Array
    within: Array
    usual: Array
    excess: Array
    heights: Array
    windows: float
    in_turn: bool = False

    FIELDS = (
        Field("readings", low=1e-9, high=1e9),
        Field("costs", ("K",), low=1e-9, high=1e9),
        Field("within", ("K",), low=1.0, high=_NEVER),
        Field("usual", (len(MEANS),), low=-1e12, high=1e12),
        Field("excess", (len(MEANS),), low=_LEAST_EXCESS, high=1e12),
        Field("heights", ("M",), low=-1e12, high=1e12),
        Field("windows", low=1.0, high=1e12),
        Field("in_turn", (), bool),
    )

    def __post_init__(self) -> None:
        settle(self)
        if not self.heights.size or (np.diff(self.heights) > 0).any():
            raise ValueError("its heights are damaged: they must decrease")

    @cached_property
    def round(self) -> float:
        """Windows that it takes to read all sensors once."""
        return max(float(self.costs.sum()) / self.readings, 1.0)

    @cached_property
    def patience(self) -> float:
        """Windows after which a sensor that was not read comes first."""
        return 0.0 if self.in_turn else _ROUNDS * float(np.ceil(self.round))

    def limits(self, every: float) -> tuple[Array, Array]:
        """The limits for one false alarm in `every` windows, and how much beyond is e times as rare, (2,)."""
        _, excess = highest(self.heights, _LEAST_EXCESS)
        return self.usual + level(self.heights, self.windows / every) * self.excess, excess * self.excess


def planned(
    model: Model,
    budget: ReadingPlan,
    progress: Callable[[int], object] = lambda done: None,  # noqa: ARG005
) -> ReadingPlan:
    """The plan with what was counted on the history; progress: is called with the windows that are done."""
    if model.history is None or model.normal is None:
        raise ValueError("the model does not say what is normal: calibrate on a history of at least 40 windows")
    return counted(budget, *model.quiet, progress)


def counted(
    budget: ReadingPlan,
    values: Array,
    missing: Index,
    progress: Callable[[int], object] = lambda done: None,  # noqa: ARG005
) -> ReadingPlan:
    """The plan with what was counted on quiet windows, (T, K)."""
    shown = replayed(held_out(values, missing[1:] == 0), values, missing, budget, progress)
    apart = [max(TUNING.cluster_gap_windows, mean) for mean in MEANS]
    columns = [clusters(column, each) for column, each in zip(shown.T, apart, strict=True)]
    usual, excess = np.array([highest(heights, _LEAST_EXCESS) for heights in columns]).T
    heights = clusters(((shown - usual) / excess).max(axis=1), max(apart))
    return replace(budget, usual=usual, excess=excess, heights=heights, windows=float(len(values)))


def budget_of(
    model: Model,
    readings: float,
    costs: Mapping[str, float] | None = None,
    at_least_every: Mapping[str, str] | None = None,
) -> ReadingPlan:
    """The plan before anything was counted, checked."""
    K = len(model.names)
    budget = as_number(readings, "readings")
    cost, within = np.ones(K), np.full(K, _NEVER)
    for what, given in (("costs", costs), ("at_least_every", at_least_every)):
        for name in given or {}:
            if name not in model.names:
                raise ValueError(f"{what}: the model has no sensor {name!r}{did_you_mean(name, model.names)}")
    for name, value in (costs or {}).items():
        cost[model.names.index(name)] = as_number(value, f"the cost of {name}")
    if not (cost > 0.0).all():
        raise ValueError("costs must be positive: a sensor that costs nothing can be given to every update")
    for name, text in (at_least_every or {}).items():
        within[model.names.index(name)] = _windows(model, text, name)
    if budget < cost.min():
        raise ValueError(f"{budget:g} readings a window pay for no sensor: the cheapest costs {cost.min():g}")
    budget, needed = min(budget, float(cost.sum())), float((cost / within).sum())
    if needed > budget:
        raise ValueError(
            f"at_least_every takes {needed:.3g} readings a window, and there are {budget:g}: read less often, or more"
        )
    return ReadingPlan(budget, cost, within, np.zeros(len(MEANS)), np.ones(len(MEANS)), np.zeros(1), 1.0)


def _windows(model: Model, text: str, name: str) -> float:
    """A length of time as whole windows."""
    what = f"at_least_every of {name}"
    if model.timed_seconds is None:
        raise ValueError(f"{what}: rows of this model have no times, so that no sensor can be read by the hour")
    windows = parse_duration(text, what) // model.seconds
    if windows < 1.0:
        raise ValueError(f"{what} is {text!r}, less than a window of {model.clock.length(model.seconds)}")
    return float(min(windows, _NEVER))


def replayed(
    judges: Iterable[tuple[slice, Normal]],
    values: Array,
    missing: Index,
    plan: ReadingPlan,
    progress: Callable[[int], object] = lambda done: None,  # noqa: ARG005
) -> Array:
    """The statistics of windows, (T, 2), of which only those readings are seen that the plan asks for.

    judges: normal operation for each part. The watch goes on from part to part: after a start little is suspected.
    """
    engine, found = None, np.empty((len(values), len(MEANS)))
    for part, normal in judges:
        engine = engine or ActiveEngine(normal, 1.0, plan)
        engine.judge_by(normal)
        for t in range(part.start, part.stop):
            engine.gap(int(missing[t]))
            engine.step(masked(values[t], engine.ask())[None])
            found[t] = engine.statistics
        progress(part.stop - part.start)
    return found


def masked(row: Array, read: Index) -> Array:
    """A window of which only some sensors are read."""
    shown = np.full(len(row), np.nan)
    shown[read] = row[read]
    return shown


@dataclass
class Latch:
    """An alarm outlives its last passing window by a few, and ends as a change once what lasts has been steady.

    steady_for: windows of the alarm since something was sudden. normal_for: windows since one passed. settled: a change
    lasts, until windows are normal for as long as the longest mean.
    """

    on: bool = False
    settled: bool = False
    passed_ago: int = 1 << 30
    normal_for: int = 1 << 30
    steady_for: int = 0

    FIELDS = (
        *(Field(name, (), bool) for name in ("on", "settled")),
        *(Field(name, (), int) for name in ("passed_ago", "normal_for", "steady_for")),
    )

    def step(self, sudden: bool, lasts: bool) -> tuple[bool, bool, bool]:
        """Take a window; return whether the alarm begins, whether it is over, and whether as a change."""
        was = self.on
        self.normal_for = 0 if sudden or lasts else self.normal_for + 1
        self.settled &= self.normal_for < TUNING.long_windows
        self.passed_ago = 0 if sudden or (lasts and not self.settled) else self.passed_ago + 1
        self.steady_for = 0 if sudden or not was else self.steady_for + 1
        self.on = self.passed_ago < TUNING.alarm_hold_windows
        changed = lasts and self.steady_for >= TUNING.change_windows
        if changed:
            self.on, self.settled, self.passed_ago = False, True, TUNING.alarm_hold_windows
        return self.on and not was, was and not self.on, changed


def alarms_of(statistics: Array, limits: Array) -> list[int]:
    """The windows with which alarms begin, from the statistics of all, (T, 2)."""
    latch = Latch()
    return [t for t, passes in enumerate((statistics > limits).tolist()) if latch.step(*passes)[0]]


class Dynamics(NamedTuple):
    """z_t = F z_t-1 + noise of covariance Q; P is the covariance of a window of which nothing is known."""

    F: Array
    Q: Array
    P: Array

    @staticmethod
    def of(normal: Normal) -> Dynamics:
        K = normal.size
        Q = symmetric(np.linalg.inv(normal.now))
        F = -Q @ normal.precision[:K, K:]
        radius = float(np.abs(np.linalg.eigvals(F)).max())
        return Dynamics(F * min(1.0, _ALMOST_ONE / max(radius, 1e-300)), Q, symmetric(np.linalg.inv(normal.others)))


class ActiveResult(NamedTuple):
    """What the engine makes of a window: as `WindowResult`, of one plant."""

    passed: Array
    began: Mask
    ended: Mask
    changed: Mask


class ActiveEngine:
    """Watch one plant by the readings that come, and say which to take next: the active form of `Engine`.

    every: windows to a false alarm in the mean. `ask` gives sensors, `step` takes a window, NaN where nothing was read.
    """

    FIELDS = (
        *(Field(name, ("K",), low=-1e60, high=1e60) for name in ("_mean", "_age", "_suspicion", "still")),
        *(Field(name, ("K",), low=0.0, high=1e60) for name in ("repeats", "silent", "_out")),
        Field("_covariance", ("K", "K"), low=-1e60, high=1e60),
        Field("_value", ("K",), low=-1e60, high=1e60, nan=True),
        Field("_last", (max(MEANS), len(MEANS)), low=-1e60, high=1e60),
        Part("latch"),
        Field("_available", ("K",), bool),
        Field("_saved", low=0.0, high=1e18),
        Field("asked", ("asked",), int, low=0, high="K-1", optional=True),
    )

    def __init__(self, normal: Normal, every: float, plan: ReadingPlan) -> None:
        self.plan = plan
        self.limits, self.excess = plan.limits(every)
        self.judge_by(normal)
        K, width = normal.size, normal.high - normal.low
        self._low, self._high = normal.low - width, normal.high + width
        self.still = np.maximum(TUNING.standstill_factor * normal.repeats, TUNING.least_standstill_windows)
        self._available = np.ones(K, dtype=bool)  # not shelved
        self._restart()
        due = plan.within < _NEVER
        self._age = np.where(due, np.floor(plan.within * np.arange(K) / K), 0.0)  # not all are due at once
        self._suspicion = np.zeros(K)
        self._value, self.repeats, self.silent, self._out = np.full(K, np.nan), np.zeros(K), np.zeros(K), np.zeros(K)
        self.latch = Latch()
        self._saved = 0.0  # of the budget, for sensors that come first
        self.asked: Index | None = None  # in the window that comes

    def judge_by(self, normal: Normal) -> None:
        """From now on this is normal operation."""
        self.normal, self._dynamics = normal, Dynamics.of(normal)

    def _restart(self) -> None:
        """Nothing is known of the next window, and nothing was seen."""
        self._mean, self._covariance = np.zeros(self.normal.size), np.array(self._dynamics.P)
        self._forget()

    def _forget(self) -> None:
        """The statistics so far no longer count."""
        self._last = np.zeros((max(MEANS), len(MEANS)))  # the newest first

    def ask(self) -> Index:
        """The sensors to read in the next window, those first that say most; the same until it has come."""
        if self.asked is None:
            self.asked = self._chosen()
        return self.asked

    def why(self, k: int) -> str:
        """Why sensor k is read next."""
        if self._suspicion[k] > max(1.0, _AGE * self._age[k]):
            return "suspect"
        return f"not read for {self._age[k]:.0f} windows" if self._age[k] else "helps to judge the others"

    def _chosen(self) -> Index:
        plan = self.plan
        if plan.round == 1.0:
            return np.flatnonzero(self._available)
        chosen = np.flatnonzero(self._available & (self._age + 1.0 >= plan.within)).tolist()  # must be read now
        left = plan.readings - float(plan.costs[chosen].sum())
        oldest = np.argsort(-self._age, kind="stable").tolist()
        waiting = [k for k in oldest if self._available[k] and self._age[k] >= plan.patience and k not in chosen]
        if waiting and left > 0.0:
            kept = 0.0 if plan.in_turn else left / 2.0
            self._saved, left = self._saved + left - kept, kept
            while waiting and plan.costs[waiting[0]] <= self._saved:
                self._saved -= plan.costs[waiting[0]]
                chosen.append(waiting.pop(0))
        if not waiting:  # what was not needed is spent now, but for what an expensive one left
            left, self._saved = min(left + self._saved, plan.readings), 0.0
        return np.array(self._most_telling(chosen, left), dtype=np.intp)

    def _most_telling(self, chosen: list[int], left: float) -> list[int]:
        """Add sensors to those that are chosen already, as long as the budget that is left pays for one.

        w_k is the weight of sensor k. To read k with the set A adds w_k / v + sum over j in A of w_j G_jk^2 / v to the
        weighted sum of precisions, v the variance of k given A and G = C_AA^-1 C_A.
        """
        costs, C = self.plan.costs, self._covariance
        u = np.minimum(self._suspicion + _AGE * self._age, _HEAVIEST)
        w = np.exp(u - u.max())
        free, G, order = self._available.copy(), np.empty((0, len(w))), list[int]()
        known, variance = np.zeros(len(w)), C.diagonal()  # the sum over j in A of w_j G_jk^2; variances given A
        forced = list(chosen)
        while True:
            v = np.maximum(variance, _LEAST_VARIANCE)
            if forced:
                k = forced.pop(0)
            else:
                gain = np.where(free & (costs <= left + _RIDGE), (w + known) / (v * costs), -1.0)
                k = int(gain.argmax())
                if gain[k] < 0.0:
                    return order
                left -= float(costs[k])
            column = (C[k] - C[k, order] @ G) / v[k]
            order.append(k)
            free[k] = False
            G = np.vstack([G - np.outer(G[:, k], column), column])
            variance = variance - v[k] * column**2
            known = w[order] @ G**2

    def step(self, x: Array) -> ActiveResult:
        """Take a window, (1, K), in robust units, NaN: not read."""
        row = x[0]
        stuck = self._stand(row)
        z = self.normal.scaled(np.where(stuck, np.nan, row))
        read = np.flatnonzero(~np.isnan(z))
        if read.size:
            alone = float(z[read] @ np.linalg.solve(self._dynamics.P[read][:, read], z[read]))
            self._last[1:] = self._last[:-1]
            self._last[0] = self._take(z, read[self._out[read] < TUNING.range_windows]), _excess(alone, len(read))
        self._age += 1.0
        self._age[~np.isnan(row)] = 0.0
        if self.asked is not None:
            self._age[self.asked] = 0.0  # one that does not answer is not asked all the time
        self.asked = None
        self._predict()
        passed = (self.statistics - self.limits) / self.excess
        decided = self.latch.step(*(passed > 0.0).tolist())
        return ActiveResult(np.array([passed.max()]), *(np.array([each]) for each in decided))

    def _take(self, z: Array, read: Index) -> float:
        """Condition on the readings, compare each with what the others and all earlier ones say, and return the T2."""
        n, C = len(read), self._covariance
        inverse = np.linalg.inv(C[read][:, read] + _RIDGE * np.eye(n))
        e = z[read] - self._mean[read]
        b = inverse @ e
        squares = b**2 / inverse.diagonal()  # of residuals, in deviations
        distance = float(e @ b)
        gain = C[:, read]
        believed = min(1.0, _BELIEVED * np.sqrt(n / max(distance, 1e-300)))
        self._mean = self._mean + believed * (gain @ b)
        self._covariance = symmetric(C - gain @ inverse @ gain.T)
        self._suspicion *= _FORGOTTEN
        seen = self._suspicion[read] + np.minimum(squares, _LARGEST_SQUARE) / 2.0 - 1.0
        self._suspicion[read] = np.maximum(seen, 0.0)
        return _excess(distance, n)

    def _predict(self) -> None:
        F, Q, _ = self._dynamics
        self._mean = F @ self._mean
        self._covariance = symmetric(F @ self._covariance @ F.T + Q)

    @property
    def statistics(self) -> Array:
        """The means of what is sudden and of what lasts over the last windows in which something was read, (2,).

        What lies before the first counts as 0.
        """
        return np.array([self._last[:mean, d].sum() / mean for d, mean in enumerate(MEANS)])

    def gap(self, missing: int) -> None:
        """Windows are missing before the next one."""
        if missing > TUNING.short_gap_windows:
            self._restart()
        else:
            for _ in range(missing):
                self._predict()
        self._age += missing
        self.asked = None if missing else self.asked

    def leave_out(self, places: list[int]) -> None:
        """These sensors are not read until further notice, and what they showed no longer counts."""
        self._available[:] = True
        self._available[places] = False
        self._suspicion[places] = 0.0
        self._value[places] = np.nan
        for lasted in (self.repeats, self.silent, self._out):
            lasted[places] = 0.0
        if self.asked is not None and np.isin(self.asked, places).any():
            self.asked = None

    def _stand(self, x: Array) -> Mask:
        """Count for how many readings sensors stand; those that are stuck, which bear no evidence, (K,)."""
        read = ~np.isnan(x)
        same = np.abs(x - self._value) <= _SAME * (1.0 + np.abs(x))
        self.repeats = np.where(read, np.where(same, self.repeats + 1.0, 1.0), self.repeats)
        self._value = np.where(read, x, self._value)
        if self.asked is not None and read.any():  # else the whole plant is silent
            self.silent[self.asked] += 1.0
        self.silent[read] = 0.0
        self._out = np.where(read, np.where((x < self._low) | (x > self._high), self._out + 1.0, 0.0), self._out)
        return np.asarray(self.repeats > np.floor(self.still))

    @property
    def standing(self) -> Mask:
        """The sensors that are stuck, silent though asked, or out of range, (3, 1, K)."""
        return np.stack(
            [
                self.repeats > np.floor(self.still),
                self.silent >= TUNING.least_silence_windows,
                self._out >= TUNING.range_windows,
            ]
        )[:, None]

    @property
    def stood_for(self) -> Array:
        """The readings for which each sensor repeats a value, is silent or is out of range, (3, 1, K)."""
        return np.stack([self.repeats, self.silent, self._out])[:, None]

    @property
    def settled(self) -> Mask:
        """Whether a change lasts, (1,)."""
        return np.array([self.latch.settled])


def _excess(square: float, n: int) -> float:
    """How far a sum of n squares lies beyond its mean, in deviations."""
    return (square - n) / float(np.sqrt(2.0 * max(n, 1)))
