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
from eccaht.incident.kinds import kind_of
from eccaht.incident.onset import Onset, window_evidence
from eccaht.incident.predictions import BAND, Prediction
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

    def prediction(self, k: int) -> Prediction:
        """What the sensors that are not named say about one."""
        named = self.judgement.named if self.judge.correlation else tuple(range(self.judge.normal.size))
        return Prediction.of(self.judge.normal, k, named)

    def expected(self, prediction: Prediction) -> tuple[Array, Array, Array]:
        """What the others predict for a sensor in the windows shown, and its band: deviations in robust units."""
        scores = prediction.scores(self.around.complete)
        return prediction.deviations(self.judge.normal, scores)

    def raw(self, k: int, robust: Array) -> Array:
        """Readings in raw units."""
        return np.asarray(self.model.center[k] + self.model.scale[k] * robust)


def suspect(case: Case, k: int, belief: float) -> Suspect:
    """One sensor in the light of the incident."""
    judgement, model = case.judgement, case.model
    named = k in judgement.named
    prediction = case.prediction(k)
    expected = case.expected(prediction)[0][case.since]
    deviations = case.around.deviations[case.since, k]
    residual = deviations - expected
    kind: Kind = judgement.standing.get(k) or kind_of(residual)
    size, error = _size(residual, kind, judgement.evidence.inflation[k])
    usual = float(np.interp(1.0, case.judge.normal.knot_scores, case.judge.normal.knots[:, k]))
    level = case.around.level[case.since, k]
    gap = float(np.nanmean(case.around.scores[case.since, k] - prediction.scores(case.around.complete)[case.since]))
    names = model.names
    reason = Reason(
        z_alone=_finite(float(_mean(deviations)) / max(usual, 1e-12)),
        z_given=_finite(gap / prediction.spread),
        predictors=tuple((names[j], float(prediction.weights[j])) for j in prediction.strongest()),
        read=float(case.raw(k, np.asarray(_mean(deviations + level)))),
        expected=float(case.raw(k, np.asarray(_mean(expected + level)))),
    )
    scale = float(model.scale[k])
    return Suspect(
        sensor=names[k],
        named=named,
        belief=belief,
        evidence=_finite(float(judgement.gains[k])),
        kind=kind,
        size=size,
        size_raw=scale * size,
        size_raw_interval=Interval(scale * (size - error), scale * (size + error)),
        reason=reason,
        since=case.windows.starts[case.onset.best] if named else None,
    )


def _mean(course: Array) -> float:
    present = course[~np.isnan(course)]
    return float(present.mean()) if present.size else float("nan")


def _size(residual: Array, kind: Kind, inflation: float) -> tuple[float, float]:
    """The size of a fault, and half of its 95 % interval: the mean, the end of a drift, the spread of noise."""
    present = residual[~np.isnan(residual)]
    if not present.size:
        return float("nan"), float("nan")
    worth = max(present.size / max(inflation, 1.0), 1.0)
    if kind == "noise":
        spread = float(np.sqrt(np.mean(present**2)))
        return spread, BAND * spread / np.sqrt(2.0 * worth)
    error = BAND * float(present.std()) / np.sqrt(worth)
    if kind == "drift":
        time = np.arange(1.0, present.size + 1.0)
        end = float(present @ time) / float(time @ time) * present.size
        return end, np.sqrt(3.0) * error
    return float(present.mean()), error


def _finite(number: float) -> float:
    return number if np.isfinite(number) else float("nan")


def courses(case: Case, sensors: list[str]) -> tuple[Course, ...]:
    """Readings and what the others predict, of these sensors."""
    found = []
    for sensor in sensors:
        k = case.model.names.index(sensor)
        middle, low, high = case.expected(case.prediction(k))
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
        found = window_evidence(case.judgement, usual)
        skipped = case.onset.best - case.begin
        course[case.since] = np.cumsum(found[skipped:])
    return course


def rankings(case: Case) -> dict[str, tuple[tuple[str, float], ...]]:
    """All sensors by the largest deviation from the hour before, and by their share of the Mahalanobis distance."""
    normal, values = case.judge.normal, case.windows.values
    before = values[max(0, case.begin - normal.width) : case.begin]
    level = local_level(before, normal.profile[0])
    usual = np.array([np.interp(1.0, normal.knot_scores, normal.knots[:, k]) for k in range(normal.size)])
    away = np.abs(values[case.begin : case.end] - level) / np.maximum(usual, 1e-12)
    evidence = case.judgement.evidence
    share = np.abs(evidence.complete * (evidence.complete @ normal.precision)).sum(axis=0)
    largest = np.where(np.isnan(away), 0.0, away).max(axis=0)
    return {"z_local": _ranked(case.model.names, largest), "mahalanobis": _ranked(case.model.names, share)}


def _ranked(names: tuple[str, ...], scores: Array) -> tuple[tuple[str, float], ...]:
    return tuple((names[k], float(scores[k])) for k in np.argsort(-scores, kind="stable").tolist())
