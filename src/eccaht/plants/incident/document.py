"""An answer as a document for programs, with the same keys for whole windows and for a search (`--sums`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eccaht.base.clock import PLAIN, Clock
from eccaht.base.frames import frame_of
from eccaht.plants.incident.answer import Answer, Incident, Suspect, disagreements
from eccaht.plants.incident.words import headline, why

# of a search, at the top too, where they were before there was one document; null for whole windows
FORMERLY_AT_THE_TOP = (
    *("model_verdict", "settled", "fits", "fit", "best_rival", "reason", "measurements", "windows_skipped"),
    *("windows_too_short", "largest_inflation", "decided", "same_set_since", "why"),
)


def as_document(answer: Answer, clock: Clock = PLAIN) -> dict[str, Any]:
    """Everything that the lines say and the rest of the numbers; None stands for what is not known.

    What stands at the top is that of the largest incident. Where there is none, `sensors` and `rankings` are those of
    the whole stretch. `search` is what only a search has.
    """
    largest = answer.largest
    reasons, search = None, None
    if answer.search is not None:
        from eccaht.plants.incident.search_words import search_document, search_reasons  # which loads all of a search

        reasons, search = search_reasons(answer.search, clock), search_document(answer.search, clock)
        runner_up = next(each for each in answer.sensors if each.sensor == search["runner_up"]["sensor"])
        search["runner_up"] |= _sensor(runner_up, None, clock)
    shown = _incident(largest, reasons, clock)
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
        "incidents": [_incident(incident, reasons, clock) for incident in answer.incidents],
        "rankings": {
            name: [{"sensor": sensor, "score": _number(score)} for sensor, score in ranking]
            for name, ranking in largest.rankings.items()
        },
        "disagreements": disagreements(largest),
        "search": search,
        **{key: None if search is None else search[key] for key in FORMERLY_AT_THE_TOP},
    }


def sensors_frame(answer: Answer, clock: Clock = PLAIN) -> Any:
    """The sensors of the largest incident, a row each; times are UTC where the clock has a zone."""
    rows = as_document(answer, clock)["sensors"]
    columns = {name: [row[name] for row in rows] for name in rows[0] if name != "predictors"}
    if clock.row_interval is None:
        columns["since"] = [suspect.began for suspect in answer.sensors]
    return frame_of(columns, zone=None if clock.zone is None else "UTC")


def _incident(incident: Incident, reasons: dict[str, str] | None, clock: Clock) -> dict[str, Any]:
    """reasons: why each sensor is named, if that is not for the incident to say."""
    if reasons is None:
        reasons = {suspect.sensor: why(incident, suspect, clock) for suspect in incident.sensors if suspect.named}
    sensors = [_sensor(suspect, reasons.get(suspect.sensor), clock) for suspect in incident.sensors]
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
        "sure": bool(incident.sure),
        "evidence": _number(incident.evidence),
        "sensors": sensors,
    }


def _sensor(suspect: Suspect, reason: str | None, clock: Clock) -> dict[str, Any]:
    numbers = {
        "belief": suspect.belief,
        "evidence": suspect.evidence,
        "evidence_needed": suspect.needed,
        "score": suspect.score,
        "shift": suspect.shift,
        "shift_spread": suspect.shift_spread,
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
        "since": _time(suspect.began, clock),
        **{name: _number(value) for name, value in numbers.items()},
        "predictors": [{"sensor": name, "weight": _number(weight)} for name, weight in suspect.reason.predictors],
        "why": reason,
    }


def _time(time: np.datetime64 | None, clock: Clock) -> str | None:
    return None if time is None or np.isnat(time) else clock.exact(time.astype("datetime64[us]"))


def _number(value: float | None) -> float | None:
    """The number, None for NaN and infinity, which JSON does not have."""
    return None if value is None or not math.isfinite(value) else float(value)
