"""Windows a second of a core, one window after the other and for many plants at once, beside river's detectors.

A window is one vector of 50 sensors. Charts and the engine take it as one array, or one of each of 1,000 plants in one
call. `PlantWatch` is the engine with all that a watch does besides; plants take turns. river's drift detectors look at
one sensor each, so that a window is 50 updates; its half-space trees take a dict of them. All are timed in turns, so
that a load on the machine hits all of them. Bytes are those of what a plant keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fleet_plants import EVERY, SENSORS, copied, filled, model_of, scaled
from benchmarks.jobs import Row
from benchmarks.tables import Column, Table, thousands, three_digits, times
from benchmarks.watch_rules import RULES, Make, Rule
from eccaht.base.arrays import Array
from eccaht.plants.incident.alarms import Engine
from eccaht.plants.model.model import Model
from eccaht.plants.watch.plant import PlantWatch

PLANTS = 1000
ALONE = 1000  # windows of one plant in a turn
TURNS, QUICK_TURNS = 5, 2
BASE = "T2"  # what the others are compared with
FILLED = 200  # windows after which every rule has all of the past that it looks at
RIVER_FILLED = 500  # half-space trees score nothing before 250 windows

Take = Callable[[Array], object]  # takes some windows, (n, K)


class Taker(NamedTuple):
    """A detector, the way in which it takes windows, how many in a turn, and the bytes that it keeps of a plant."""

    detector: str
    way: str
    take: Take
    windows: int
    kept: int | None = None


def measure(quick: bool) -> list[Row]:
    """One row a detector and way; the ratio is the median over turns of windows a second over those of T2, alone."""
    takers = [*_engine(), *_watches(), *_rules(), *_plants(), *(_river() if find_spec("river") else ())]
    rng = np.random.default_rng(0)
    rates: list[list[float]] = [[] for _ in takers]
    for _ in range(QUICK_TURNS if quick else TURNS):
        for taker, rate in zip(takers, rates, strict=True):
            windows = rng.standard_normal((taker.windows, SENSORS))
            begun = process_time()  # not that of the clock on the wall: others may use the machine
            taker.take(windows)
            rate.append(taker.windows / (process_time() - begun))
    base = next(
        np.array(rate) for each, rate in zip(takers, rates, strict=True) if (each.detector, each.way) == (BASE, "alone")
    )
    return [
        {"detector": each.detector, "way": each.way, "kept": each.kept}
        | {"rate": float(np.median(rate)), "ratio": float(np.median(np.array(rate) / base))}
        for each, rate in zip(takers, rates, strict=True)
    ]


def table(rows: list[Row], notes: Sequence[str] = ()) -> Table:
    """The rows of `measure`."""
    columns = (
        Column("detector", "detector", right=False),
        Column("way", "way", right=False),
        Column("rate", "windows a second", thousands),
        Column("ratio", "over T2 alone", times),
        Column("kept", "kB a plant", lambda value: "" if value is None else three_digits(value / 1e3)),
    )
    notes_first = [f"A window has {SENSORS} sensors; one core, by the time of the processor."]
    if not any(row["detector"].startswith("river") for row in rows):
        notes_first.append("river is not installed: its detectors are left out.")
    return Table("watch-speed", "Windows a second", columns, rows, [*notes_first, *notes])


def _engine() -> Iterator[Taker]:
    """The engine by itself."""
    model = model_of()
    assert model.normal is not None
    rng = np.random.default_rng(1)
    for way, number, count in (("alone", 1, ALONE), (f"{PLANTS:,} plants at once", PLANTS, PLANTS)):
        engine = Engine(model.normal, EVERY, plants=number)
        for _ in range(FILLED if number == 1 else FILLED // 10):
            engine.step(scaled(model, rng.standard_normal((number, SENSORS))))
        yield Taker("Engine", way, _steps(model, engine, number), count, _bytes(engine) // number)


def _steps(model: Model, engine: Engine, number: int) -> Take:
    def take(windows: Array) -> None:
        for group in scaled(model, windows).reshape(-1, number, SENSORS):
            engine.step(group)

    return take


def _watches() -> Iterator[Taker]:
    """The engine with dates, names, alarms and standstill of a watch."""
    session = filled(model_of())
    for way, number, count in (("alone", 1, ALONE), (f"{PLANTS:,} plants in turn", PLANTS, PLANTS)):
        watches = [plant.watch for plant in ([session] if number == 1 else [copied(session) for _ in range(number)])]
        kept = _bytes(watches[0].engine) + _bytes(watches[0]._recent)
        yield Taker("PlantWatch", way, _in_turn(watches), count, kept)


def _bytes(part: object) -> int:
    """Of the arrays that an object has in memory."""
    return sum(array.nbytes for array in vars(part).values() if isinstance(array, np.ndarray))


def _in_turn(watches: list[PlantWatch]) -> Take:
    second = np.timedelta64(1, "s")

    def take(windows: Array) -> None:
        for k, x in enumerate(scaled(watches[0].model, windows)):
            watch = watches[k % len(watches)]
            assert watch.start is not None
            watch.take(x, watch.start + second)

    return take


def _rules() -> Iterator[Taker]:
    for name, make in RULES.items():
        rule = _filled(make, 1)
        yield Taker(name, "alone", lambda windows, rule=rule: [rule.update(x[None]) for x in windows], 100)  # type: ignore[misc]


def _plants() -> Iterator[Taker]:
    for name, make in RULES.items():
        if name not in ("ocd", "eccaht"):  # the memory of one and the loops of the other are not meant for this
            rule = _filled(make, PLANTS)
            yield Taker(name, f"{PLANTS:,} plants at once", rule.update, PLANTS)


def _filled(make: Make, replicas: int) -> Rule:
    rule, rng = make(np.eye(SENSORS)), np.random.default_rng(1)
    rule.start(replicas)
    for _ in range(FILLED):
        rule.update(rng.standard_normal((replicas, SENSORS)))
    return rule


def _river() -> Iterator[Taker]:
    drift, anomaly = import_module("river.drift"), import_module("river.anomaly")
    takers = {kind.__name__: _one_each([kind() for _ in range(SENSORS)]) for kind in (drift.ADWIN, drift.PageHinkley)}
    takers["HalfSpaceTrees"] = _trees(anomaly.HalfSpaceTrees(seed=1))
    rng = np.random.default_rng(1)
    for name, take in takers.items():
        take(rng.standard_normal((RIVER_FILLED, SENSORS)))
        yield Taker(f"river {name}", "alone", take, 100)


def _one_each(detectors: list[Any]) -> Take:
    def take(windows: Array) -> None:
        for x in windows:
            for detector, value in zip(detectors, x.tolist(), strict=True):
                detector.update(value)

    return take


def _trees(forest: Any) -> Take:
    def take(windows: Array) -> None:
        for x in windows:
            sensors = dict(enumerate(x.tolist()))
            forest.score_one(sensors)
            forest.learn_one(sensors)

    return take
