"""An answer as a document for programs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eccaht.base.clock import PLAIN, Clock
from eccaht.plants.incident.answer import Answer, Incident, Suspect
from eccaht.plants.incident.why import disagreements, why
from eccaht.plants.incident.words import headline


def as_document(answer: Answer, clock: Clock = PLAIN) -> dict[str, Any]:
    """Everything that the lines say and the rest of the numbers; None stands for what is not known.

    What stands at the top is that of the largest incident. Where there is none, `sensors` and `rankings` are those of
    the whole stretch.
    """
    largest = answer.largest
    shown = _incident(largest, clock)
    if not answer.incidents:
        shown |= {"onset": None, "onset_interval": None, "end": None, "changed": False, "kinds": []}
    return {
        "headline": headline(answer, clock),
        "verdict": answer.verdict,
        **shown,
        "confidence": _number(answer.confidence),
        "sure": bool(answer.sure),
        "alpha": _number(answer.alpha),
        "evidence": _number(answer.evidence),
        "false_alarm_every": _number(answer.every),
        "doubts": list(answer.doubts),
        "cautions": list(answer.cautions),
        "drill": {"text": answer.drill} if answer.drill else None,
        "start": _time(answer.first, clock),
        "stop": _time(answer.last, clock),
        "windows": int(answer.n_windows),
        "incidents": [_incident(incident, clock) for incident in answer.incidents],
        "rankings": {
            name: [{"sensor": sensor, "score": _number(score)} for sensor, score in ranking]
            for name, ranking in largest.rankings.items()
        },
        "disagreements": disagreements(largest),
    }


def _incident(incident: Incident, clock: Clock) -> dict[str, Any]:
    sensors = [_sensor(incident, suspect, clock) for suspect in incident.sensors]
    return {
        "onset": _time(incident.onset, clock),
        "onset_interval": [_time(time, clock) for time in incident.onset_interval],
        "end": _time(incident.end, clock),
        "changed": bool(incident.changed),
        "named": [sensor for sensor in sensors if sensor["named"]],
        "kinds": list(incident.kinds),
        "runner_up": incident.runner_up,
        "confidence": _number(incident.confidence),
        "sure": bool(incident.sure),
        "evidence": _number(incident.evidence),
        "sensors": sensors,
    }


def _sensor(incident: Incident, suspect: Suspect, clock: Clock) -> dict[str, Any]:
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
    found: dict[str, Any] = {"sensor": suspect.sensor, "named": bool(suspect.named)}
    found |= {"kind": suspect.kind if suspect.named else None, "since": _time(suspect.since, clock)}
    found |= {name: _number(value) for name, value in numbers.items()}
    found["predictors"] = [{"sensor": sensor, "weight": _number(weight)} for sensor, weight in reason.predictors]
    return found | {"why": why(incident, suspect, clock) if suspect.named else None}


def _time(time: np.datetime64 | None, clock: Clock) -> str | None:
    return None if time is None or np.isnat(time) else clock.exact(time.astype("datetime64[us]"))


def _number(value: float | None) -> float | None:
    """The number, None for NaN and infinity, which JSON does not have."""
    return None if value is None or not math.isfinite(value) else float(value)
