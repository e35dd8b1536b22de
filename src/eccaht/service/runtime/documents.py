"""Plants, windows and events as values of JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from eccaht.base.clock import Clock
from eccaht.plants.watch.events import ActiveAlarm, iso
from eccaht.service.rows import SourceState
from eccaht.service.runtime.standing import PlantView
from eccaht.service.sources.settings import shown
from eccaht.service.store.schema import STATES


def stamp(clock: Clock, time: Any) -> str | None:
    """A time of a plant, or microseconds of it, for programs."""
    if time is None:
        return None
    return iso(clock, time if isinstance(time, np.datetime64) else np.datetime64(int(time), "us"))


def moment(time: int | datetime | None) -> str | None:
    """A time of the service, in microseconds, for programs."""
    if time is None:
        return None
    found = time if isinstance(time, datetime) else datetime.fromtimestamp(time / 1e6, UTC)
    return found.isoformat(timespec="milliseconds")


def finite(number: float | None) -> float | None:
    return None if number is None or not math.isfinite(number) else float(number)


def window_document(row: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """A stored window without its values."""
    return {
        "plant": row["plant"],
        "time": stamp(clock, row["start"]),
        "evidence": finite(row["evidence"]),
        "state": STATES[row["state"]],
    }


def source_document(state: SourceState) -> dict[str, Any]:
    return {**asdict(state), "since": moment(state.since), "last": moment(state.last)}


def action_document(row: dict[str, Any]) -> dict[str, Any]:
    """Something that was done; an earlier version may have stored secrets of sources with it."""
    document = row["document"]
    if isinstance(sources := document.get("options", {}).get("sources"), dict):
        hidden = {name: shown(source) for name, source in sources.items()}
        document = {**document, "options": {**document["options"], "sources": hidden}}
    return {**row, "at": moment(row["at"]), "document": document}


def overview(view: PlantView) -> dict[str, Any]:
    """A plant as a row among others."""
    clock, fault = view.model.clock, view.fault
    return {
        "name": view.name,
        "state": view.state,
        "evidence": finite(view.evidence),
        "acknowledged": view.acknowledged,
        "position": stamp(clock, view.position),
        "windows": view.windows,
        "named": list(fault.named) if fault is not None else [],
        "onset": stamp(clock, fault.onset) if fault is not None else None,
        "no_data": view.no_data,
        "still": {kind: list(names) for kind, names in view.still.items()},
        "shelved": {name: stamp(clock, until) for name, until in view.shelved.items()},
        "sources": {name: source_document(state) for name, state in view.sources.items()},
        "sensors": len(view.sensors),
    }


def fault_document(fault: ActiveAlarm, clock: Clock) -> dict[str, Any]:
    return {
        "raised": stamp(clock, fault.raised),
        "onset": stamp(clock, fault.onset),
        "onset_interval": [stamp(clock, fault.first), stamp(clock, fault.last)],
        "named": list(fault.named),
        "kinds": list(fault.kinds),
        "sizes": [finite(size) for size in fault.sizes],
        "beliefs": list(fault.beliefs),
        "confidence": fault.confidence,
    }


def plant_document(view: PlantView, model_name: str) -> dict[str, Any]:
    clock = view.model.clock
    return overview(view) | {
        "model_digest": view.model_digest,
        "model": model_name,
        "seconds": view.model.seconds,
        "timezone": clock.zone,
        "row_seconds": clock.row_interval,
        "sensors": list(view.sensors),
        "threshold_every": view.threshold_every,
        "promise": view.rate_line,
        "fault": None if view.fault is None else fault_document(view.fault, clock),
        "suspects": list(view.suspects),
        "late": view.late,
        "duplicate": view.duplicate,
        "ahead": view.ahead,
        "held": view.held,
        "options": view.options.model_dump(mode="json"),
    }
