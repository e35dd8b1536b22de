"""The parts of an answer: each sensor in raw units, what the others predict for it, and the plain rankings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.data.windows import Windows
from eccaht.incident.answer import Course, Interval, Kind, Reason, Suspect
from eccaht.incident.judge import Judge, Judgement
from eccaht.incident.kinds import SPREADS, kind_of
from eccaht.incident.onset import Onset
from eccaht.incident.predictions import BAND, Predictions
from eccaht.incident.views import Evidence
from eccaht.model.model import Model
from eccaht.model.normal import local_level

SHOWN_BEFORE = 60  # windows of a picture before the stretch


@dataclass(frozen=True)
class Case:
    """A judged stretch [begin, end) with all that describes it."""

    model: Model
    windows: Windows
    judge: Judge
    judgement: Judgement
    onset: Onset
    begin: int
    end: int

    @cached_property
    def shown(self) -> slice:
        """The windows that a picture shows."""
        return slice(max(0, self.begin - SHOWN_BEFORE), self.end)

    @property
    def shown_starts(self) -> NDArray[np.datetime64]:
        """When they start."""
        return self.windows.starts[self.shown]

    @cached_property
    def around(self) -> Evidence:
        """The views of the windows shown, with the level frozen as it was before the stretch."""
        normal, evidence = self.judge.normal, self.judgement.evidence
        values = self.windows.values[self.shown]
        before = len(values) - evidence.length
        level = np.vstack([np.repeat(evidence.level[:1], before, axis=0), evidence.level])
        deviations = values - level
        return Evidence(
            normal=normal,
            deviations=deviations,
            innovations=normal.innovations(np.full(normal.size, np.nan), deviations),
            scores=normal.scores(deviations),
            level=level,
            recent=evidence.recent,
            given=evidence.given,
            inflation=evidence.inflation,
            correlation=self.judge.correlation,
        )

    @cached_property
    def since(self) -> slice:
        """The windows shown that lie after the onset."""
        return slice(self.onset.best - self.shown.start, self.end - self.shown.start)

    @cached_property
    def predictions(self) -> Predictions:
        """What the sensors that are not named say about all of them in the windows shown."""
        return Predictions.of(self.around, self.judgement.named)

    def raw(self, k: int, robust: Array) -> Array:
        """Readings in raw units."""
        return np.asarray(self.model.center[k] + self.model.scale[k] * robust)


def suspect(case: Case, k: int, belief: float) -> Suspect:
    """One sensor in the light of the incident."""
    judgement, names, scale = case.judgement, case.model.names, float(case.model.scale[k])
    named, predictions, since = k in judgement.named, case.predictions, case.since
    expected, low, high = (each[since] for each in predictions.deviations(k))
    deviations, level = case.around.deviations[since, k], case.around.level[since, k]
    residual = deviations - expected
    kind: Kind = judgement.standing.get(k) or kind_of(residual, deviations)
    spread = 0.5 * _mean(high - low) / BAND
    size, interval = _size(residual, kind if named else "step", spread, judgement.evidence.inflation[k])
    reason = Reason(
        z_alone=_mean(deviations) / case.judge.normal.usual_deviation[k],
        z_given=_mean((case.around.scores[since, k] - predictions.expected[since, k]) / predictions.spread[since, k]),
        predictors=tuple((names[j], weight) for j, weight in predictions.strongest(k)),
        read=float(case.raw(k, np.asarray(_mean(deviations + level)))),
        expected=float(case.raw(k, np.asarray(_mean(expected + level)))),
    )
    return Suspect(
        sensor=names[k],
        named=named,
        belief=belief,
        evidence=_finite(float(judgement.gains[k])),
        needed=_finite(float(judgement.bars[k])),
        kind=kind,
        size=size,
        size_raw=scale * size,
        size_raw_interval=Interval(scale * interval.low, scale * interval.high),
        reason=reason,
        since=case.windows.starts[case.onset.best] if named else None,
    )


def _mean(course: Array) -> float:
    present = course[~np.isnan(course)]
    return float(present.mean()) if present.size else float("nan")


def _size(residual: Array, kind: Kind, spread: float, inflation: float) -> tuple[float, Interval]:
    """The size of a fault and its 95 % interval: the mean, the end of a drift, the spread of noise or a replay.

    spread: of the residual in normal operation; few windows cannot show that they vary less. inflation: how many
    windows are worth one.
    """
    there = ~np.isnan(residual)
    present = residual[there]
    if not present.size:
        return float("nan"), Interval(float("nan"), float("nan"))
    worth = max(present.size / max(inflation, 1.0), 1.0)
    if kind in SPREADS:
        size = float(np.sqrt(np.mean(present**2)))
        error = BAND * size / np.sqrt(2.0 * worth)
        return size, Interval(max(size - error, 0.0), size + error)
    shape = np.arange(1, residual.size + 1)[there] / residual.size if kind == "drift" else np.ones(present.size)
    size = float(present @ shape / (shape @ shape))
    left = float(np.sqrt(np.mean((present - size * shape) ** 2)))
    error = BAND * max(left, spread) / np.sqrt(worth * np.mean(shape**2))
    return size, Interval(size - error, size + error)


def _finite(number: float) -> float:
    return number if np.isfinite(number) else float("nan")


def courses(case: Case, sensors: list[str]) -> tuple[Course, ...]:
    """Readings and what the others predict, of these sensors."""
    found = []
    for sensor in sensors:
        k = case.model.names.index(sensor)
        middle, low, high = case.predictions.deviations(k)
        level = case.around.level[:, k]
        found.append(
            Course(
                sensor=sensor,
                starts=case.shown_starts,
                read=case.raw(k, case.windows.values[case.shown, k]),
                expected=case.raw(k, middle + level),
                low=case.raw(k, low + level),
                high=case.raw(k, high + level),
            )
        )
    return tuple(found)


def evidence_course(case: Case) -> Array:
    """The evidence for the named set, cumulated since the onset, (T,) of the windows shown."""
    course = np.zeros(case.shown.stop - case.shown.start)
    if case.judgement.named:
        usual = case.judge.quiet.yardstick(case.judgement.evidence.length).usual_per_window
        found = _window_evidence(case.judgement, usual)
        skipped = case.onset.best - case.begin
        course[case.since] = np.cumsum(found[skipped:])
    return course


def _window_evidence(judgement: Judgement, usual: Array) -> Array:
    """What each window of the stretch says for the named sensors, (L,), less what sound ones are used to.

    usual: the evidence that a sound sensor reaches by its own past and by the others in a window.
    """
    evidence, named = judgement.evidence, [k for k in judgement.named if k not in judgement.standing]
    by_own = [k for k in named if judgement.views[k] == "own"]
    own = 0.5 * np.nansum(np.square(evidence.innovations[:, by_own]), axis=1)
    course = np.minimum(own, 50.0 * max(len(by_own), 1)) - usual[0] * len(by_own)
    others = [k for k in named if k not in by_own]
    if others:
        course = course + evidence.course(tuple(by_own), tuple(named)) - usual[1] * len(others)
    return np.asarray(course)


def rankings(case: Case) -> dict[str, tuple[tuple[str, float], ...]]:
    """All sensors by the largest deviation from the hour before, and by their share of the Mahalanobis distance."""
    normal, values = case.judge.normal, case.windows.values
    before = values[max(0, case.begin - normal.width) : case.begin]
    level = local_level(before, normal.profile[0])
    away = np.abs(values[case.begin : case.end] - level) / normal.usual_deviation
    evidence = case.judgement.evidence
    share = np.abs(evidence.complete * (evidence.complete @ normal.precision)).sum(axis=0)
    largest = np.where(np.isnan(away), 0.0, away).max(axis=0)
    return {"z_local": _ranked(case.model.names, largest), "mahalanobis": _ranked(case.model.names, share)}


def _ranked(names: tuple[str, ...], scores: Array) -> tuple[tuple[str, float], ...]:
    return tuple((names[k], float(scores[k])) for k in np.argsort(-scores, kind="stable").tolist())
