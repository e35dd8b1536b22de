"""The parts of an answer: each sensor in raw units, what the others predict for it, and the plain rankings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.plants.answer import Course, Difference, Incident, Interval, Reason, Suspect
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.alarms import Run
from eccaht.plants.incident.naming import DatedIncident
from eccaht.plants.model.model import Model
from eccaht.plants.model.residuals import Normal
from eccaht.plants.tuning import TUNING
from eccaht.streams import Kind

BAND = 1.96  # of what is expected, in deviations: 95 %
_MATTERS = 0.05  # weight from which on a sensor says something about another
_LEAST_VARIANCE = 1e-12
SPREADS = ("noise", "replay")  # kinds whose size is a spread, which has no sign
SHOWN_BEFORE = 30  # windows that a picture shows before the onset and after the end
SHOWN = 600  # and at most from the onset on
SEEN = 0.999  # belief in a sensor that is seen to stand still, to be out of range or to have moved
_LEAST = 1e-300
_RESOLVED = 0.5  # of a sensor's resolution: smaller sizes are not given


@dataclass(frozen=True, eq=False)
class Courses:
    """An incident of a recording, and what its sensors do in it."""

    normal: Normal
    run: Run
    found: DatedIncident

    @property
    def stop(self) -> int:
        """The first window after the incident, or after the recording."""
        end = self.found.dates.end
        return len(self.run.values) if end is None else end

    @cached_property
    def shown(self) -> slice:
        """The windows that a picture shows."""
        onset = self.found.dates.onset
        last = min(self.stop + SHOWN_BEFORE, len(self.run.values), onset + SHOWN)
        return slice(max(0, onset - SHOWN_BEFORE), max(last, onset + 1))

    @cached_property
    def since(self) -> slice:
        onset, first = self.found.dates.onset, self.shown.start
        return slice(onset - first, max(min(self.stop, self.shown.stop), onset + 1) - first)

    @cached_property
    def predictions(self) -> Predictions:
        """What the sensors that are not named say about all of them in the windows shown."""
        return Predictions.of(self.normal, self.run.values[self.shown], self.found.naming.named)

    @cached_property
    def usual_residual(self) -> Array:
        """By how much sensors differed from what the others predict just before the onset, in spreads, (K,)."""
        before = self.predictions.residual[: self.since.start]
        known = (~np.isnan(before)).sum(axis=0) >= SHOWN_BEFORE // 3
        usual = np.zeros(self.normal.size)
        if known.any():
            usual[known] = np.nanmedian(before[:, known], axis=0)
        return usual

    def read(self, k: int) -> Array:
        """The readings of a sensor in the incident, in robust units."""
        return self.run.values[self.shown][self.since, k]

    def residual(self, k: int) -> Array:
        """The same beyond what the others predict."""
        return (self.predictions.residual[self.since, k] - self.usual_residual[k]) * float(self.normal.scale[k])

    def kind(self, k: int) -> Kind:
        wrong: Kind | None = self.found.wrong.get(k)  # type: ignore[assignment]
        return wrong or kind_of(self.residual(k), self.read(k))

    @property
    def kinds(self) -> dict[int, str]:
        """Those of the named sensors."""
        return {k: self.kind(k) for k in self.found.naming.named}


@dataclass(frozen=True, eq=False)
class Case(Courses):
    """The same with the model and the windows of the recording, that describe it in its own units."""

    model: Model
    windows: Windows

    @cached_property
    def level(self) -> Array:
        """The level before the onset, in robust units, (K,)."""
        assert self.normal.local is not None
        return self.normal.local.level(self.windows.values[: self.found.dates.onset])

    def raw(self, k: int, robust: Array) -> Array:
        return self.model.raw(robust, k)

    def resolution(self, k: int) -> float:
        """The step of a sensor's readings in raw units, in the history or now, 0 where it is not known."""
        name = self.model.names[k]
        places = [known.get(name) for known in (self.model.reading.get("decimals"), self.windows.decimals) if known]
        return max((10.0**-decimals for decimals in places if decimals is not None), default=0.0)


def incident_of(case: Case, confidence: float | None, confident: bool, **checks: Any) -> Incident:
    """The parts of an incident; checks: `checks`, `checked` and `judge` of it."""
    found, starts = case.found, case.windows.starts
    suspects = tuple(_suspect(case, k) for k in found.naming.order)
    others = [k for k in found.naming.order if k not in found.naming.named]
    runner_up = sorted(others, key=lambda k: -float(found.naming.beliefs[k]))[:1]
    dates = found.dates
    return Incident(
        began=starts[dates.onset],
        began_interval=(starts[dates.first], starts[dates.last]),
        ended=None if dates.end is None or dates.end >= len(starts) else starts[dates.end],
        changed=found.changed,
        sensors=suspects,
        evidence=found.evidence,
        weight=found.weight,
        confidence=confidence,
        confident=confident,
        rankings=_rankings(case),
        starts=starts[case.shown],
        evidence_course=case.run.passed[case.shown],
        courses=tuple(_course(case, k) for k in (*found.naming.named, *runner_up)),
        clock=case.windows.clock,
        **checks,
    )


def _suspect(case: Case, k: int) -> Suspect:
    naming, model, scale = case.found.naming, case.model, float(case.model.scale[k])
    named, since, unit = k in naming.named, case.since, float(case.normal.scale[k])
    values, residual, kind = case.read(k), case.residual(k), case.kind(k)
    spread = float(np.mean(case.predictions.spread[since, k])) * unit
    size, interval = _size(residual, kind if named else "step", spread)
    if abs(size) * scale < _RESOLVED * case.resolution(k):
        size, interval = float("nan"), Interval(float("nan"), float("nan"))
    expected = case.predictions.band(k)[0][since]
    reason = Reason(
        z_alone=_mean(values - case.level[k]) / unit,
        z_given=_mean(residual) / max(spread, _LEAST),
        predictors=tuple((model.names[j], weight) for j, weight in case.predictions.strongest(k)),
        read=float(case.raw(k, np.asarray(_mean(values)))),
        expected=float(case.raw(k, np.asarray(_mean(expected)))),
    )
    return Suspect(
        sensor=model.names[k],
        named=named,
        belief=SEEN if k in case.found.wrong else float(naming.beliefs[k]),
        evidence=float(naming.rarity[k]) if k not in case.found.wrong else float("nan"),
        needed=naming.needed,
        kind=kind,
        size=size,
        size_raw=scale * size,
        size_raw_interval=Interval(scale * interval.low, scale * interval.high),
        reason=reason,
        began=case.windows.starts[case.found.dates.onset] if named else None,
        size_interval=interval,
        difference=_difference(case, k, residual, spread) if named and math.isfinite(reason.z_given) else None,
        clock=case.windows.clock,
    )


def _difference(case: Case, k: int, residual: Array, spread: float) -> Difference:
    """The difference whose mean deviation is `z_given`; residual: of the incident's windows, in robust units."""
    model, normal, scale = case.model, case.normal, float(case.model.scale[k])
    weights = -case.predictions.weights(k)
    weights[k] = 1.0
    spreads = normal.scale * model.scale  # of the readings, in their own units
    raw = weights * spreads[k] / spreads
    usual = raw @ model.raw(normal.centre) + case.usual_residual[k] * spreads[k]
    deviation, present = max(spread, _LEAST), residual[~np.isnan(residual)]
    others = np.argsort(-np.abs(weights), kind="stable")
    order = [k, *(j for j in others.tolist() if j != k and raw[j] != 0.0)]
    return Difference(
        weights=tuple((model.names[j], float(raw[j])) for j in order),
        usual=float(usual),
        read=float(usual + scale * present.mean()),
        deviation=scale * deviation,
        size=float(present.mean() / deviation),
        scatter=float(np.sqrt(np.mean(present**2)) / deviation),
    )


def _mean(course: Array) -> float:
    present = course[~np.isnan(course)]
    return float(present.mean()) if present.size else float("nan")


def _size(residual: Array, kind: Kind, spread: float) -> tuple[float, Interval]:
    """The size of a fault and its 95 % interval: the mean, the end of a drift, the spread of noise or a replay.

    spread: of the residual in normal operation; few windows cannot show that they vary less.
    """
    there = ~np.isnan(residual)
    present = residual[there]
    if not present.size:
        return float("nan"), Interval(float("nan"), float("nan"))
    if kind in SPREADS:
        size = float(np.sqrt(np.mean(present**2)))
        error = BAND * size / np.sqrt(2.0 * present.size)
        return size, Interval(float(max(size - error, 0.0)), float(size + error))
    shape = np.arange(1, residual.size + 1)[there] / residual.size if kind == "drift" else np.ones(present.size)
    size = float(present @ shape / (shape @ shape))
    left = present - size * shape
    memory = float(np.clip(left[1:] @ left[:-1] / max(float(left @ left), _LEAST), 0.0, 0.95)) if left.size > 1 else 0.0
    worth = max(present.size * (1.0 - memory) / (1.0 + memory), 1.0)  # windows with memory are worth fewer
    error = BAND * max(float(np.sqrt(np.mean(left**2))), spread) / np.sqrt(worth * float(np.mean(shape**2)))
    return size, Interval(float(size - error), float(size + error))


def _course(case: Case, k: int) -> Course:
    """Readings of a sensor and what the others predict for it."""
    middle, low, high = case.predictions.band(k)
    return Course(
        sensor=case.model.names[k],
        starts=case.windows.starts[case.shown],
        read=case.raw(k, case.windows.values[case.shown, k]),
        expected=case.raw(k, middle),
        low=case.raw(k, low),
        high=case.raw(k, high),
    )


def _rankings(case: Case) -> dict[str, tuple[tuple[str, float], ...]]:
    """All sensors by the largest deviation from the windows before, and by their share of the Mahalanobis distance."""
    values = case.windows.values[case.shown][case.since]
    away = np.abs(values - case.level) / case.normal.scale
    z = np.nan_to_num((values - case.normal.centre) / case.normal.scale)
    share = np.abs(z * (z @ case.normal.others)).sum(axis=0)
    largest = np.where(np.isnan(away), 0.0, away).max(axis=0)
    return {"z_local": _ranked(case.model.names, largest), "mahalanobis": _ranked(case.model.names, share)}


def _ranked(names: tuple[str, ...], scores: Array) -> tuple[tuple[str, float], ...]:
    return tuple((names[k], float(scores[k])) for k in np.argsort(-scores, kind="stable").tolist())


def gaps_before(windows: Windows) -> NDArray[np.intp]:
    """How many windows are missing before each, (T,)."""
    steps = np.diff(windows.starts) / np.timedelta64(1, "us") * 1e-6 / windows.seconds
    return np.concatenate([[0], np.maximum(np.round(steps) - 1, 0)]).astype(np.intp)


def kind_of(course: Array, read: Array | None = None) -> Kind:
    """The kind of a course, (L,): a step, a drift, noise, a replay, or a course of its own.

    read: the readings themselves, (L,), which are the course and what the others predict p. Where something was added
    to what the sensor should read, they vary more than the course, by p; where they have nothing to do with p, less.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> noise = 0.1 * rng.standard_normal(40)
    >>> kind_of(3.0 + noise), kind_of(np.linspace(0, 4, 40) + noise), kind_of(30 * noise)
    ('step', 'drift', 'noise')
    >>> predicted, other = rng.standard_normal((2, 40))
    >>> kind_of(other - predicted, other), kind_of(other, other + predicted)
    ('replay', 'noise')
    """
    present = ~np.isnan(course)
    course = course[present]
    power = float(course @ course)
    if len(course) < TUNING.least_course_windows or power <= 0.0:
        return "step"
    time = np.arange(1.0, len(course) + 1.0)
    step = len(course) * course.mean() ** 2 / power
    drift = float(course @ time) ** 2 / (float(time @ time) * power)
    if drift > TUNING.explained_share and drift > step + TUNING.drift_margin:
        return "drift"
    if step > TUNING.explained_share:
        return "step"
    centred = course - course.mean()
    power = max(float(centred @ centred), 1e-300)
    if read is not None and len(course) * float(np.var(read[present])) < TUNING.replay_share * power:
        return "replay"
    white = float(centred[1:] @ centred[:-1]) / power
    return "noise" if white < TUNING.noise_memory else "free"


@dataclass(frozen=True, eq=False)
class Predictions:
    """What the sensors that are not named predict for every sensor, in the same window, in spreads.

    A sensor is predicted by all that are present and are neither named nor itself: readings of named sensors take no
    part, not even in place of what is missing.
    z: the windows, (T, K), NaN where a sensor is silent. expected: (T, K). spread: of what remains open, (T, K).
    """

    normal: Normal
    named: tuple[int, ...]
    z: Array
    expected: Array
    spread: Array

    @staticmethod
    def of(normal: Normal, values: Array, named: tuple[int, ...]) -> Predictions:
        """Of all sensors, in windows of robust units, (T, K)."""
        z, Q = (values - normal.centre) / normal.scale, normal.others
        absent = np.isnan(z)
        absent[:, list(named)] = True
        known = np.where(absent, 0.0, np.clip(z, -30.0, 30.0))
        expected, variance = np.zeros_like(known), np.ones_like(known)
        patterns, which = np.unique(absent, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == number)
            gone, left = np.flatnonzero(pattern), np.flatnonzero(~pattern)
            inner = np.linalg.inv(Q[np.ix_(gone, gone)])
            expected[np.ix_(rows, gone)] = -known[rows] @ Q[:, gone] @ inner
            variance[np.ix_(rows, gone)] = inner.diagonal()
            if left.size:
                others = eliminated(Q, gone)[np.ix_(left, left)]
                present = known[np.ix_(rows, left)]
                variance[np.ix_(rows, left)] = 1.0 / others.diagonal()
                expected[np.ix_(rows, left)] = present - present @ others / others.diagonal()
        return Predictions(normal, named, z, expected, np.sqrt(np.maximum(variance, _LEAST_VARIANCE)))

    @property
    def residual(self) -> Array:
        """What the sensors read beyond what is expected, in spreads, (T, K)."""
        return self.z - self.expected

    def band(self, sensor: int) -> tuple[Array, Array, Array]:
        """What is expected of a sensor in robust units, and the ends of its 95 % band, (T,) each."""
        middle, away = self.expected[:, sensor], BAND * self.spread[:, sensor]
        centre, scale = self.normal.centre[sensor], self.normal.scale[sensor]
        expected, low, high = (centre + scale * each for each in (middle, middle - away, middle + away))
        return expected, low, high

    @cached_property
    def _others(self) -> Array:
        """The precision of the sensors that are not named among themselves."""
        return eliminated(self.normal.others, np.array(self.named, dtype=np.intp))

    def weights(self, sensor: int) -> Array:
        """The weights of all sensors in what is expected of one where nothing is missing, (K,)."""
        Q = self.normal.others
        if sensor in self.named:
            A = list(self.named)
            weights = -np.linalg.solve(Q[np.ix_(A, A)], Q[A])[A.index(sensor)]
            weights[A] = 0.0
            return np.asarray(weights)
        weights = -self._others[sensor] / self._others[sensor, sensor]
        weights[sensor] = 0.0
        return np.asarray(weights)

    def strongest(self, sensor: int, most: int = 3) -> list[tuple[int, float]]:
        """The sensors that say most about one, with their weights."""
        weights = self.weights(sensor)
        order = np.argsort(-np.abs(weights), kind="stable")[:most]
        return [(int(k), float(weights[k])) for k in order if abs(weights[k]) > _MATTERS]


def eliminated(precision: Array, gone: Index) -> Array:
    if not gone.size:
        return precision
    left = precision - precision[:, gone] @ np.linalg.solve(precision[np.ix_(gone, gone)], precision[gone])
    left[gone], left[:, gone] = 0.0, 0.0
    return np.asarray(left)
