"""Windows a second of a core, one window after the other and for many plants at once, beside river's detectors.

A window is one vector of 50 sensors. Charts take it as one array, or one of each of 1,000 plants in one call. river's
drift detectors look at one sensor each, so that a window is 50 updates; its half-space trees take a dict of
them. `PlantWatch` takes windows of a model whose level is fixed or local, of one plant or of 1,000 in turn. All are
timed in turns, so that a load on the machine hits all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np

from benchmarks.fleet_plants import SENSORS, copied, filled, model_of, scaled
from benchmarks.jobs import Row
from benchmarks.tables import Column, Table, thousands, times
from benchmarks.watch_rules import RULES, Make, Rule
from eccaht.arrays import Array
from eccaht.model.normal import Level
from eccaht.watch.fleet import Shared
from eccaht.watch.plant import PlantWatch
from eccaht.watch.watchers import WatchedPlant

PLANTS = 1000
TURNS, QUICK_TURNS = 5, 2
BASE = "T2"  # what the others are compared with
FILLED = 200  # windows after which every rule has all of the past that it looks at

LEVELS: tuple[Level, ...] = ("fixed", "local")

Take = Callable[[Array], object]  # takes some windows, (n, K)


def measure(quick: bool) -> list[Row]:
    """One row a detector and way; the ratio is the median over turns of windows a second over those of T2, alone."""
    takers = [*_models(), *_rules(), *_plants(), *(_river() if find_spec("river") else ())]
    rng = np.random.default_rng(0)
    rates: dict[tuple[str, str], list[float]] = {(name, way): [] for name, way, _, _ in takers}
    for _ in range(QUICK_TURNS if quick else TURNS):
        for name, way, take, count in takers:
            windows = rng.standard_normal((count, SENSORS))
            begun = process_time()  # not that of the clock on the wall: others may use the machine
            take(windows)
            rates[name, way].append(count / (process_time() - begun))
    base = np.array(rates[BASE, "alone"])
    return [
        {"detector": name, "way": way, "rate": float(np.median(rate)), "ratio": float(np.median(np.array(rate) / base))}
        for (name, way), rate in rates.items()
    ]


def table(rows: list[Row], notes: Sequence[str] = ()) -> Table:
    """The rows of `measure`."""
    columns = (
        Column("detector", "detector", right=False),
        Column("way", "way", right=False),
        Column("rate", "windows a second", thousands),
        Column("ratio", "over T2 alone", times),
    )
    said = [f"A window has {SENSORS} sensors; one core, by the time of the processor."]
    if not any(row["detector"].startswith("river") for row in rows):
        said.append("river is not installed: its detectors are left out.")
    return Table("watch-speed", "Windows a second", columns, rows, [*said, *notes])


def _models() -> Iterator[tuple[str, str, Take, int]]:
    for level in LEVELS:
        shared = Shared(model_of(level), "")
        session = filled(shared)
        for way, number, count in (("alone", 1, 100), (f"{PLANTS:,} plants in turn", PLANTS, PLANTS)):
            watches = []
            for plant in [session] if number == 1 else [copied(session, shared) for _ in range(number)]:
                assert isinstance(plant.watcher, WatchedPlant)
                watches.append(plant.watcher.watch)
            yield f"PlantWatch, {level} level", way, _in_turn(shared, watches), count


def _in_turn(shared: Shared, watches: list[PlantWatch]) -> Take:
    second = np.timedelta64(1, "s")

    def take(windows: Array) -> None:
        for k, x in enumerate(scaled(shared.model, windows)):
            watch = watches[k % len(watches)]
            assert watch.start is not None
            watch.update(x, watch.start + second)

    return take


def _rules() -> Iterator[tuple[str, str, Take, int]]:
    for name, make in RULES.items():
        rule = _filled(make, 1)
        yield name, "alone", lambda windows, rule=rule: [rule.update(x[None]) for x in windows], 100  # type: ignore[misc]


def _plants() -> Iterator[tuple[str, str, Take, int]]:
    for name, make in RULES.items():
        if name != "ocd":  # its memory, one square matrix a plant and size, is not meant for this
            rule = _filled(make, PLANTS)
            yield name, f"{PLANTS:,} plants", rule.update, PLANTS


def _filled(make: Make, replicas: int) -> Rule:
    rule, rng = make(np.eye(SENSORS)), np.random.default_rng(1)
    rule.start(replicas)
    for _ in range(FILLED):
        rule.update(rng.standard_normal((replicas, SENSORS)))
    return rule


def _river() -> Iterator[tuple[str, str, Take, int]]:
    drift, anomaly = import_module("river.drift"), import_module("river.anomaly")
    for kind in (drift.ADWIN, drift.PageHinkley):
        yield f"river {kind.__name__}", "alone", _one_each([kind() for _ in range(SENSORS)]), 100
    yield "river HalfSpaceTrees", "alone", _trees(anomaly.HalfSpaceTrees(seed=1)), 100


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
