"""A simulated plant whose sensors fail now and then, for `eccaht serve --demo`."""

import asyncio
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import time

import numpy as np

from eccaht.base.arrays import Array
from eccaht.base.codec import state_of
from eccaht.base.presentation.text import listed
from eccaht.base.randomness import rng_for
from eccaht.plants import Arrays, Model, calibrate, drill_history, false_alarm_every
from eccaht.plants.example import DEVIATION, SHARED, TAGS, USUAL, disturbed
from eccaht.plants.intake import Rows
from eccaht.plants.model import calibrate_with_windows
from eccaht.service.rows import Busy, SourceState
from eccaht.service.runtime.engine import Runtime
from eccaht.service.settings import PlantOptions

PLANT, MODEL, SOURCE = "demo", "demo.model", "simulation"
FALSE_ALARMS = "1/1d"
_UNITS = {"FT": "m³/h", "PT": "bar", "DP": "bar", "LT": "%", "TT": "°C", "TB": "NTU", "AT": "mg/L"}
NAMES = tuple(f"{tag} [{_UNITS[tag[:2]]}]" for tag in TAGS)
DRILLS = Path(__file__).with_name("demo_drills.json")  # which take longer than anyone waits for a demo
_HISTORY = 3600  # rows of normal operation, one a second
PAST = 600  # rows that are there at once, so that the page has something to show
_QUIET, _LASTS = (40, 80), (50, 80)  # seconds between faults, and of a fault
_FIRST = 30  # seconds until the first one
_BLOCK = 600  # rows that are simulated at once
_LOG = logging.getLogger("eccaht.service")


@dataclass(frozen=True)
class _DemoFault:
    """What goes wrong: sensors, by their place, how, by how many of their deviations, and in which seconds."""

    sensors: tuple[int, ...]
    kind: str
    size: float
    first: int
    last: int

    def told(self, second: int) -> str:
        """What is broken now, for people who compare it with the answer."""
        names = listed([TAGS[k] for k in self.sensors])
        if second < self.first:
            return f"no sensor is wrong; {names} next, in {self.first - second} s"
        verb = "has" if len(self.sensors) == 1 else "have"
        return f"{names} {verb} been wrong for {second - self.first} s ({self.kind})"

    def apply(self, readings: Array, second: int) -> None:
        if not self.first <= second < self.last:
            return
        chosen = list(self.sensors)
        if self.kind == "stuck":
            readings[chosen] = self.size
        elif self.kind == "drift":
            readings[chosen] += self.size * 2.0 * (second - self.first + 1) / (self.last - self.first)
        else:
            readings[chosen] += self.size


def faults(seed: int) -> Iterator[_DemoFault]:
    """One fault after the other, for ever; the first two are steps of two sensors."""
    rng, start, count = rng_for(seed, "demo", "faults"), _FIRST, 0
    while True:
        kind = "step" if count < 2 else str(rng.choice(["step", "drift", "stuck"]))
        sensors = rng.choice(len(TAGS), 2 if count < 2 else int(rng.integers(1, 4)), replace=False)
        size = float(rng.choice([-1.0, 1.0]) * rng.uniform(2.5, 3.5))
        end = start + int(rng.integers(*_LASTS))
        yield _DemoFault(tuple(sensors.tolist()), kind, size, start, end)
        start, count = end + int(rng.integers(*_QUIET)), count + 1


def loadings(seed: int) -> Array:
    """What the sensors share with their section."""
    return np.sqrt(rng_for(seed, "demo", "plant").uniform(*SHARED, size=len(TAGS)))


def _history(seed: int) -> Arrays:
    """An hour of normal operation."""
    rows = disturbed(rng_for(seed, "demo", "history"), loadings(seed), _HISTORY)
    times = np.datetime64("2026-01-01", "us") + np.arange(_HISTORY) * np.timedelta64(1, "s")
    return Arrays(USUAL + DEVIATION * rows, times, NAMES, zone="UTC")


def calibrated(seed: int) -> Model:
    """The model of an hour of normal operation, with the drills that were run once for seed 0."""
    return replace(calibrate(_history(seed), window="1s"), drilled=json.loads(DRILLS.read_text(encoding="utf-8")))


def write_drills() -> None:
    """Drill the model of seed 0 and keep what was counted: `python -c "from eccaht.service import demo;
    demo.write_drills()"`."""
    model, windows = calibrate_with_windows(_history(0), window="1s")
    counted = drill_history(model, windows, every=false_alarm_every(FALSE_ALARMS, model, "false_alarms"))
    DRILLS.write_text(json.dumps(state_of(counted), indent=1) + "\n", encoding="utf-8")


def readings(seed: int) -> Iterator[tuple[Array, str]]:
    """The readings of each second, in raw units, and what is broken then, from `PAST` seconds before the start on."""
    block, coming = 0, faults(seed)
    fault, second = next(coming), -PAST
    while True:
        rows = disturbed(rng_for(seed, "demo", "now", str(block)), loadings(seed), _BLOCK)
        for row in rows:
            if second >= fault.last:
                fault = next(coming)
            fault.apply(row, second)
            yield USUAL + DEVIATION * row, fault.told(second)
            second += 1
        block += 1


async def run(engine: Runtime, seed: int = 0) -> None:
    """Make the plant if it is not there and feed it for ever, a row a second."""
    begun = datetime.now(UTC)
    if PLANT not in engine.views():
        model = await asyncio.to_thread(calibrated, seed)
        digest, _ = await engine.add_model(model.to_bytes(), MODEL, "demo")
        await engine.put_plant(PLANT, digest, PlantOptions(false_alarms=FALSE_ALARMS), "demo")
    rows, start = readings(int(time()) if engine.view(PLANT).windows else seed), int(time())
    past = [next(rows)[0] for _ in range(PAST)]
    for k in range(0, PAST, 100):
        await _submit(engine, start - PAST + k, past[k : k + 100])
    count, second = 0, start
    for row, truth in rows:
        await asyncio.sleep(max(second - time(), 0.0))
        await _submit(engine, second, [row])
        count, second = count + 1, second + 1
        state = SourceState("running", begun, truth, PAST + count, datetime.now(UTC))
        engine.source_state(PLANT, SOURCE, state)


async def _submit(engine: Runtime, second: int, rows: list[Array]) -> None:
    times = (np.array([second * 1_000_000]) + np.arange(len(rows)) * 1_000_000).astype("datetime64[us]")
    while True:
        try:
            await engine.submit(PLANT, Rows(times, NAMES, np.array(rows)), source=SOURCE)
            return
        except Busy as error:
            await asyncio.sleep(error.after)
