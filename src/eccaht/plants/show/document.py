"""An answer as a document for programs, the same as `eccaht identify --json` prints."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from eccaht.base.clock import Clock
from eccaht.base.frames import frame_of
from eccaht.plants.answer import Answer, Difference, Incident, Suspect
from eccaht.plants.show.words import headline, why


def as_document(answer: Answer) -> dict[str, Any]:
    """Everything that the lines say and the rest of the numbers; None stands for what is not known.

    What stands at the top is that of the largest incident. Where there is none, `sensors` and `rankings` are those of
    the whole stretch.
    """
    largest, clock = answer.largest, answer.clock
    shown = incident_document(largest)
    if not answer.incidents:
        shown |= {"onset": None, "onset_interval": None, "end": None, "changed": False, "kinds": []}
    return {
        "settings": answer.settings,
        "headline": headline(answer),
        "verdict": answer.verdict,
        **shown,
        "confidence": _number(answer.confidence),
        "confident": bool(answer.confident),
        "sure": bool(answer.confident),
        "alpha": _number(answer.alpha),
        "evidence": _number(answer.evidence),
        "false_alarm_every": _number(answer.every),
        "doubts": list(answer.doubts),
        "cautions": list(answer.cautions),
        "drill": {"text": answer.drill} if answer.drill else None,
        "start": _time(answer.first, clock),
        "stop": _time(answer.last, clock),
        "windows": int(answer.n_windows),
        "incidents": [incident_document(incident) for incident in answer.incidents],
        "rankings": {
            name: [{"sensor": sensor, "score": _number(score)} for sensor, score in ranking]
            for name, ranking in largest.rankings.items()
        },
        "timezone": clock.zone,
        "notes": list(answer.notes),
        "files": [],
    }


def sensors_frame(answer: Answer) -> Any:
    """The sensors of the largest incident, a row each; times are UTC where the clock has a zone."""
    rows = as_document(answer)["sensors"]
    columns = {name: [row[name] for row in rows] for name in rows[0] if name not in ("predictors", "difference")}
    clock = answer.clock
    if clock.row_interval is None:
        columns["since"] = [suspect.began for suspect in answer.sensors]
    return frame_of(columns, zone=None if clock.zone is None else "UTC")


def incident_document(incident: Incident) -> dict[str, Any]:
    clock = incident.clock
    sensors = [_sensor(incident, suspect) for suspect in incident.sensors]
    interval = [_time(time, clock) for time in incident.began_interval]
    return {
        "onset": _time(incident.began, clock),
        "onset_interval": None if None in interval else interval,
        "end": _time(incident.ended, clock),
        "changed": bool(incident.changed),
        "named": [sensor for sensor in sensors if sensor["named"]],
        "kinds": list(incident.kinds),
        "runner_up": incident.runner_up,
        "confidence": _number(incident.confidence),
        "confident": bool(incident.confident),
        "sure": bool(incident.confident),
        "checks": [asdict(check) for check in incident.checks],
        "checked": [asdict(check) | {"time": _time(check.time, clock)} for check in incident.checked],
        "evidence": _number(incident.evidence),
        "sensors": sensors,
    }


def _sensor(incident: Incident, suspect: Suspect) -> dict[str, Any]:
    numbers = {
        "belief": suspect.belief,
        "evidence": suspect.evidence,
        "evidence_needed": suspect.needed,
        "size": suspect.size,
        "size_low": suspect.size_interval.low,
        "size_high": suspect.size_interval.high,
        "size_raw": suspect.size_raw,
        "size_raw_low": suspect.size_raw_interval.low,
        "size_raw_high": suspect.size_raw_interval.high,
        "z_alone": suspect.reason.z_alone,
        "z_given": suspect.reason.z_given,
        "read": suspect.reason.read,
        "expected": suspect.reason.expected,
    }
    return {
        "sensor": suspect.sensor,
        "named": bool(suspect.named),
        "kind": suspect.kind if suspect.named else None,
        "since": _time(suspect.began, incident.clock),
        **{name: _number(value) for name, value in numbers.items()},
        "predictors": [{"sensor": name, "weight": _number(weight)} for name, weight in suspect.reason.predictors],
        "difference": None if suspect.difference is None else _difference(suspect.difference),
        "why": why(incident, suspect) if suspect.named else None,
    }


def _difference(found: Difference) -> dict[str, Any]:
    return {
        "weights": [{"sensor": name, "weight": _number(weight)} for name, weight in found.weights],
        "usual": _number(found.usual),
        "read": _number(found.read),
        "deviation": _number(found.deviation),
        "size": _number(found.size),
        "scatter": _number(found.scatter),
    }


def _time(time: np.datetime64 | None, clock: Clock) -> str | None:
    return None if time is None or np.isnat(time) else clock.exact(time.astype("datetime64[us]"))


def _number(value: float | None) -> float | None:
    """The number, None for NaN and infinity, which JSON does not have."""
    return None if value is None or not math.isfinite(value) else float(value)
