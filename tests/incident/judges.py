"""Stand-ins for the judge of incidents, and drills whose outcome is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eccaht.arrays import Array
from eccaht.incident.counts import Counts, count
from eccaht.incident.drilling import Drill
from eccaht.incident.judge import Basis
from eccaht.incident.promise import WITHOUT_EVIDENCE, ConfidenceTable, Promise


@dataclass(frozen=True, eq=False)
class Verdict:
    named: tuple[int, ...]
    log_odds: float
    alarm: bool

    @property
    def basis(self) -> Basis:
        return "evidence" if self.named else "nothing"


class Perfect:
    """Knows the quiet windows, so that it sees whatever was changed in them."""

    def __init__(self, quiet: Array, log_odds: float = 50.0) -> None:
        self.quiet, self.log_odds = quiet, log_odds

    def __call__(self, values: Array, moments: Array, start: int, stop: int) -> Verdict:
        assert values.shape == self.quiet.shape
        assert len(moments) == len(values)
        same = (values == self.quiet) | (np.isnan(values) & np.isnan(self.quiet))
        assert same[:start].all()
        assert same[stop:].all()
        named = tuple(int(k) for k in np.flatnonzero(~same.all(axis=0)))
        return Verdict(named, self.log_odds, bool(named))


class Guessing:
    """Names a sensor at random and is certain of it."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, values: Array, *_: Any) -> Verdict:
        return Verdict((int(self.rng.integers(values.shape[1])),), 500.0, True)


def plant(windows: int = 900, sensors: int = 6, seed: int = 0) -> Array:
    """Quiet windows of sensors that share something."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.standard_normal((windows, sensors)) + rng.standard_normal((windows, 1)))


def drill_of(right: bool, log_odds: float, part: Any = "fit", **others: Any) -> Drill:
    """A drill of a step in sensor 0, found or taken for one in sensor 1."""
    fields: dict[str, Any] = {"kind": "step", "size": 2.5, "sensors": (0,), "start": 60, "length": 20, "alarm": True}
    fields |= {"named": (0,) if right else (1,), "log_odds": log_odds, "part": part} | others
    return Drill(**{"basis": "evidence" if fields["named"] else "nothing"} | fields)


def telling(
    rng: np.random.Generator, drills: int, boast: float = 1.0, range_of: tuple[float, float] = (0.95, 1.0)
) -> list[Drill]:
    """Drills that are right with probability p, uniform, and told with the evidence for it, or `boast` times that."""
    chances = rng.uniform(*range_of, size=drills)
    right = rng.random(drills) < chances
    log_odds = boast * np.log(chances / (1.0 - chances))
    parts = ("count", "fit")
    return [drill_of(bool(right[k]), float(log_odds[k]), parts[k % 2]) for k in range(drills)]


def believing(factor: float = 1.0) -> Promise:
    """A promise that is sure of evidence that says so: 95 % where it says 95 % or more, and of nothing named."""
    return Promise(
        factor, ConfidenceTable(np.array([0.0, 0.95]), np.array([0.0, 0.95])), dict.fromkeys(WITHOUT_EVIDENCE, 0.95)
    )


def example_counts(factor: float = 0.3) -> Counts:
    """Counts of drills of all kinds and sizes, some of them missed."""
    rng, drills = np.random.default_rng(5), []
    for kind in ("step", "drift", "noise", "stuck", "replay", "silent", "quiet"):
        for _ in range(40):
            sized, quiet = kind in ("step", "drift", "noise"), kind == "quiet"
            size = float(rng.uniform(1.0, 10.0)) if sized else 0.0
            right = rng.random() < (0.3 + 0.07 * size if sized else 0.8)
            sensors = () if quiet else (0,)
            named = sensors if right else (3,)
            more: dict[str, Any] = {"kind": kind, "size": size, "sensors": sensors, "named": named}
            drills.append(drill_of(right, 20.0 if right else 8.0, "count", **more, alarm=bool(named)))
    return count(drills, believing(factor), 0.05)
