"""An answer as a document for programs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eccaht.data.clock import PLAIN, Clock
from eccaht.incident.answer import Answer, Suspect
from eccaht.incident.why import disagreements, why
from eccaht.incident.words import headline


def as_document(answer: Answer, clock: Clock = PLAIN) -> dict[str, Any]:
    """Everything that the lines say and the rest of the numbers; None stands for what is not known."""
    sensors = [_sensor(answer, suspect, clock) for suspect in answer.sensors]
    return {
        "headline": headline(answer, clock),
        "named": [sensor for sensor in sensors if sensor["named"]],
        "onset": _time(answer.onset, clock),
        "onset_searched": bool(answer.searched),
        "onset_interval": None if answer.onset_interval is None else [_time(t, clock) for t in answer.onset_interval],
        "confidence": _number(answer.confidence),
        "sure": bool(answer.sure),
        "posterior": _number(answer.posterior),
        "alpha": _number(answer.alpha),
        "evidence": _number(answer.evidence),
        "threshold": _number(answer.threshold),
        "runner_up": answer.runner_up,
        "cautions": list(answer.cautions),
        "drill": {"text": answer.drill} if answer.drill else None,
        "start": _time(answer.first, clock),
        "stop": _time(answer.last, clock),
        "windows": int(answer.n_windows),
        "sensors": sensors,
        "rankings": {
            name: [{"sensor": sensor, "score": _number(score)} for sensor, score in ranking]
            for name, ranking in answer.rankings.items()
        },
        "disagreements": disagreements(answer),
    }


def _sensor(answer: Answer, suspect: Suspect, clock: Clock) -> dict[str, Any]:
    reason, interval = suspect.reason, suspect.size_raw_interval
    numbers = {
        "belief": suspect.belief,
        "evidence": suspect.evidence,
        "evidence_needed": suspect.needed,
        "size": suspect.size,
        "size_raw": suspect.size_raw,
        "size_raw_low": interval.low,
        "size_raw_high": interval.high,
        "z_alone": reason.z_alone,
        "z_given": reason.z_given,
        "read": reason.read,
        "expected": reason.expected,
    }
    told: dict[str, Any] = {"sensor": suspect.sensor, "named": bool(suspect.named)}
    told |= {"kind": suspect.kind if suspect.named else None, "since": _time(suspect.since, clock)}
    told |= {name: _number(value) for name, value in numbers.items()}
    told["predictors"] = [{"sensor": sensor, "weight": _number(weight)} for sensor, weight in reason.predictors]
    return told | {"why": why(answer, suspect, clock) if suspect.named else None}


def _time(time: np.datetime64 | None, clock: Clock) -> str | None:
    return None if time is None or np.isnat(time) else clock.exact(time.astype("datetime64[us]"))


def _number(value: float | None) -> float | None:
    """The number, None for NaN and infinity, which JSON does not have."""
    return None if value is None or not math.isfinite(value) else float(value)
