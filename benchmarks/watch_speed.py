"""Windows a second on one core, one window after the other and for many plants at once, beside river's detectors.

A window is one vector of 50 sensors. Charts take it as one array, or one of each of 1,000 plants in one call. river's
drift detectors look at one sensor each, so that a window is 50 updates; its half-space trees take a dict of
them. All are timed in turns, so that a load on the machine hits all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.jobs import Row, seconds
from benchmarks.watch_rules import RULES, Make, Rule
from eccaht.arrays import Array

SENSORS, PLANTS = 50, 1000
TURNS, QUICK_TURNS = 5, 2
BASE = "T2"  # what the others are compared with
FILLED = 200  # windows after which every rule has all of the past that it looks at

Take = Callable[[Array], object]  # takes some windows, (n, K)


def measure(quick: bool) -> list[Row]:
    """One row a detector and way; the ratio is the median over turns of windows a second over those of T2, alone."""
    takers = [*_rules(), *_plants(), *(_river() if find_spec("river") else ())]
    rng = np.random.default_rng(0)
    rates: dict[tuple[str, str], list[float]] = {(name, way): [] for name, way, _, _ in takers}
    for _ in range(QUICK_TURNS if quick else TURNS):
        for name, way, take, count in takers:
            windows = rng.standard_normal((count, SENSORS))
            rates[name, way].append(count / seconds(lambda take=take, windows=windows: take(windows)))  # type: ignore[misc]
    base = np.array(rates[BASE, "alone"])
    return [
        {"detector": name, "way": way, "rate": float(np.median(rate)), "ratio": float(np.median(np.array(rate) / base))}
        for (name, way), rate in rates.items()
    ]


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
