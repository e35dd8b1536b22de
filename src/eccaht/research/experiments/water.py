"""The water network: history, attacks of known truth, calibration, and how soon the attacked sensors are named.

Each attack lasts two hours, at least two hours lie between attacks, and their times of day differ. Attack k lifts
1, 2 or 3 random sensors in turn by `shift` robust units; the policies know how many and by how much. The
interval of a number is over attacks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eccaht.base.arrays import as_count, as_positive
from eccaht.base.clock import show_time
from eccaht.base.randomness import rng_for
from eccaht.plants import Model, Windows, calibrate
from eccaht.research.datasets.water import DAY, WaterRecording, simulate
from eccaht.research.experiments.comparison import Records
from eccaht.research.experiments.localisation import RecordedSearch, check_reach, localise, recorded_search
from eccaht.research.experiments.tables import save_json

# the methods that are compared unless others are named
POLICIES = (
    *("joint", "joint-diagonal", "ecc-aht", "diagonal", "ttts-challenger", "simple-difference"),
    *("base-arm-combgape", "random-sparse", "round-robin"),
)
NUMBERS = (1, 2, 3)  # sensors of an attack
LENGTH, EVERY = 2 * 3600, 4 * 3600 + 1800  # seconds: half an hour later each time, so that all hours of the day occur


@dataclass(frozen=True)
class WaterSettings:
    days: float = 14.0
    step: float = 60.0
    window: float = 60.0
    attacks: int = 30
    shift: float = 1.0
    budget: float = 5.0
    seed: int = 0

    def __post_init__(self) -> None:
        as_count(self.attacks, "attacks", least=1)
        as_positive(self.shift, "shift")
        check_reach(self.shift, self.budget)
        if as_positive(self.days, "days") < 1:
            raise ValueError(f"{self.days:g} days of history do not cover a day: give at least 1")
        if self.window < self.step or self.window > LENGTH / 4:
            raise ValueError(
                f"a window of {self.window:g} s must be between the step of {self.step:g} s and half an hour"
            )


@dataclass(frozen=True)
class _WaterAttack:
    number: int
    start: np.datetime64
    end: np.datetime64
    sensors: tuple[str, ...]
    shift: float  # robust units
    bias: tuple[float, ...]  # the same in the units of each sensor

    def as_dict(self) -> dict[str, Any]:
        entry = {"number": self.number, "start": show_time(self.start), "end": show_time(self.end)}
        return {**entry, "sensors": self.sensors, "n": len(self.sensors), "shift": self.shift, "bias": self.bias}


@dataclass(frozen=True)
class WaterOutcome:
    """All of it: the model, the attacks, and by the number of attacked sensors the records of the searches."""

    model: Model
    attacks: list[_WaterAttack]
    records: dict[str, Records]
    memory: dict[str, float]
    files: list[Path]


def run(
    directory: Path,
    names: Sequence[str],
    settings: WaterSettings,
    *,
    jobs: int = 1,
    stage: Callable[[str], object] = lambda _: None,
    progress: Callable[[int], object] = lambda _: None,
) -> WaterOutcome:
    step, total = settings.step, settings.days + (settings.attacks * EVERY + LENGTH) / DAY
    recording = simulate(days=total, step=step, seed=settings.seed, progress=stage)
    split = round(settings.days * DAY / step)
    stage("calibration")
    history = recording.part(0, split)
    model = calibrate(history.rows(), window=settings.window, estimator="ledoit-wolf")
    attacks = draw_attacks(model, recording.times[split], settings)
    attacked = attack(recording.part(split, len(recording.times)), attacks)
    files = [
        history.save(directory / "history.csv"),
        attacked.save(directory / "attacks.csv"),
        save_json([each.as_dict() for each in attacks], directory / "truth.json"),
        directory / "model.npz",
    ]
    model.save(files[-1])
    stage("searches")
    searches = group_searches(model, model.prepare(attacked.rows()), attacks, settings)
    records = localise(searches, names, seed=settings.seed, jobs=jobs, progress=progress)
    return WaterOutcome(model, attacks, records, memory(model, model.prepare(history.rows())), files)


def draw_attacks(model: Model, first: np.datetime64, settings: WaterSettings) -> list[_WaterAttack]:
    drawn = []
    for k in range(settings.attacks):
        rng = rng_for((settings.seed, k), "water", "attack")
        n = NUMBERS[k % len(NUMBERS)]
        which = np.sort(rng.choice(len(model.names), n, replace=False))
        start = first + np.timedelta64(LENGTH // 2 + k * EVERY, "s")
        sensors = tuple(model.names[i] for i in which)
        bias = tuple((settings.shift * model.scale[which]).tolist())
        drawn.append(_WaterAttack(k + 1, start, start + np.timedelta64(LENGTH, "s"), sensors, settings.shift, bias))
    return drawn


def attack(recording: WaterRecording, attacks: Sequence[_WaterAttack]) -> WaterRecording:
    values = recording.values.copy()
    for each in attacks:
        rows = (recording.times >= each.start) & (recording.times < each.end)
        for name, bias in zip(each.sensors, each.bias, strict=True):
            values[rows, recording.names.index(name)] += bias
    return WaterRecording(recording.times, values, recording.names)


def group_searches(
    model: Model, windows: Windows, attacks: Sequence[_WaterAttack], settings: WaterSettings
) -> dict[str, list[RecordedSearch]]:
    groups: dict[str, list[RecordedSearch]] = {}
    for each in sorted(attacks, key=lambda each: len(each.sensors)):
        last = each.end - np.timedelta64(round(settings.window * 1e6), "us")
        rows = windows.between(each.start, last + np.timedelta64(1, "us")).values
        truth = model.places(each.sensors)
        label = f"{truth.size} sensor{'s' * (truth.size > 1)}"
        groups.setdefault(label, []).append(recorded_search(model, rows, truth, settings.shift, settings.budget))
    return groups


def memory(model: Model, windows: Windows) -> dict[str, float]:
    """Median correlation of successive windows: of the sensors, and of what is left once the others are known.

    The second is that of the coordinates of S^-1 (x - mean), the residuals of predicting each sensor from the others.
    """
    residuals = model.covariance.solve((windows.values - model.mean).T).T
    sensors = windows.values - windows.values.mean(axis=0)
    parts = {"sensors": sensors, "residuals": residuals - residuals.mean(axis=0)}
    return {name: float(np.median((z[1:] * z[:-1]).sum(axis=0) / (z**2).sum(axis=0))) for name, z in parts.items()}
