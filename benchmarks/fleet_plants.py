"""Simulated plants of 50 sensors with a model each, or one for all, and what watching a window of each takes."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.jobs import Row
from eccaht.base.arrays import Array
from eccaht.plants.data.windows import Sample
from eccaht.plants.model.calibration import calibrate_with_windows
from eccaht.plants.model.model import Model
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.session import Session
from eccaht.plants.watch.state import built_plant, plant_state

SENSORS, HISTORY = 50, 2000
EVERY = 43_200.0  # windows to a false alarm: 30 days of minutes
FILLED = 300  # windows after which a watch keeps all that it will ever keep
IN_ALARM, MOVED, SHIFT = 0.01, 3, 8.0  # share of the plants, their wrong sensors, by how many standard deviations


@cache
def model_of() -> Model:
    """A model of independent N(0, 1) sensors."""
    history = np.random.default_rng(0).standard_normal((HISTORY, SENSORS))
    return calibrate_with_windows(history, window="1rows")[0]


def scaled(model: Model, rows: Array) -> Array:
    """Readings in robust units."""
    return np.asarray((rows - model.center) / model.scale)


def begun(model: Model) -> Session:
    """A plant that is watched from now on."""
    return Session(PlantWatch(model, false_alarm_every=EVERY))


def filled(model: Model) -> Session:
    """A plant that has been watched for hours."""
    session, rng = begun(model), np.random.default_rng(1)
    for t, x in enumerate(scaled(model, rng.standard_normal((FILLED, SENSORS)))):
        session.take(_window(t, x))
    return session


def copied(session: Session) -> Session:
    """Another plant in the same state; what plants share is not copied."""
    watch = session.watch
    parts = (session.model, watch.normal, watch.confidence, watch.engine.limits, watch.engine.excess)
    return copy.deepcopy(session, {id(part): part for part in parts})


def fleet(plants: int, stored: dict[str, Any], own_models: bool) -> list[Row]:
    """Watch three windows of each plant, a share of them with a fault, and say how long that took and what is kept.

    stored: the model, which was made elsewhere, so that the memory of that is not counted.
    """
    model = Model.build(stored)
    state = filled(model)
    before, start = resident(), time.perf_counter()
    sessions = []
    for _ in range(plants):
        sessions.append(filled_like(state, _copy_of(model)) if own_models else copied(state))
    started = time.perf_counter() - start
    rng, rows = np.random.default_rng(2), list[Row]()
    for turn in range(3):
        rows.append(_round(sessions, rng, FILLED + turn) | {"turn": turn})
    alarms = sum(session.watch.alarm is not None for session in sessions)
    kept = {"plants": plants, "models": plants if own_models else 1, "started": started}
    kept |= {"resident": resident(), "each": (resident() - before) / plants, "alarms": alarms}
    return [row | kept for row in rows]


def filled_like(state: Session, own: Model) -> Session:
    """A plant of another model in the same state."""
    fresh = Session(built_plant(own, copy.deepcopy(plant_state(state.watch))))
    fresh.position, fresh.windows = state.position, state.windows
    return fresh


def _copy_of(model: Model) -> Model:
    """The model as another file of its kind would give it."""
    return Model.build(copy.deepcopy(model.stored()))


def _round(sessions: Sequence[Session], rng: np.random.Generator, t: int) -> Row:
    """One window of each plant."""
    model = sessions[0].model
    wrong = round(IN_ALARM * len(sessions))
    begun, worked, events = time.perf_counter(), time.process_time(), 0
    making = 0.0
    for k, session in enumerate(sessions):
        before = time.process_time()
        readings = rng.standard_normal(SENSORS)
        if k < wrong:
            readings[:MOVED] += SHIFT
        sample = _window(t, scaled(model, readings))
        making += time.process_time() - before
        events += len(session.take(sample))
    taken, busy = time.perf_counter() - begun, time.process_time() - worked - making
    return {"wall": taken - making, "busy": busy, "rate": len(sessions) / busy, "events": events}


def _window(t: int, x: Array) -> Sample:
    return Sample(np.datetime64("2024-05-01", "us") + np.timedelta64(t, "s"), x)  # the model counts rows as seconds


def resident() -> float:
    """Bytes of memory that this process has, 0 where the system does not say."""
    status = Path("/proc/self/statm")
    return float(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.exists() else 0.0
