"""Incidents whose truth is known: labelled ones, steps and replays put into quiet rows, and stretches left quiet.

All but the labelled ones lie in the last third of the training rows, after a fit on the first two thirds. Sensors that
never vary in the training rows are left out of every truth: no method can rank them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.base.presentation.text import counted
from eccaht.base.randomness import rng_for
from eccaht.plants.data.cleaning import robust_scale
from eccaht.plants.data.source import Arrays
from eccaht.research.datasets.labelled import Entity, Segment, metric_names, read_entity
from eccaht.research.datasets.water import simulate

Tier = Literal["labelled", "injected", "replayed", "quiet"]
TIERS: tuple[Tier, ...] = ("labelled", "injected", "replayed", "quiet")
NUMBERS = (1, 3)  # sensors of an injected or replayed incident
SIZES = (1.0, 10.0)  # of a step, in interquartile ranges
LONGEST = 200  # rows of a labelled segment that are looked at
CHANGED = 60  # rows of an injected or replayed incident
QUIET, MOST_QUIET = 20, 100  # rows of a quiet stretch; stretches of an entity
FIRST = 100  # rows of the last third that only serve as the time before
_VARIES, _ALIVE = 1e-9, 0.05  # standard deviation in the training rows; in the last third, as a share of it


@dataclass(frozen=True)
class CaseReadings:
    """Rows of all sensors, (T, K), with times or, without, counted; `window` is the length of one row."""

    rows: Array
    names: tuple[str, ...]
    times: NDArray[np.datetime64] | None = None
    window: str | float = "1row"

    def first(self, stop: int) -> CaseReadings:
        return replace(self, rows=self.rows[:stop], times=None if self.times is None else self.times[:stop])

    def after(self, start: int) -> CaseReadings:
        return replace(self, rows=self.rows[start:], times=None if self.times is None else self.times[start:])

    def source(self) -> Arrays:
        return Arrays(np.asfortranarray(self.rows), self.times, self.names, label="the rows")


@dataclass(frozen=True)
class CaseWorld:
    """A simulated water network: days of one-minute readings, another one with each seed."""

    collection: str = "water"
    name: str = "net3"
    days: float = 14.0
    seed: int = 0

    @property
    def label(self) -> str:
        return f"{self.collection}/{self.name}"


@dataclass(frozen=True)
class Subject:
    """Normal operation, and a test with labelled segments if there is one."""

    train: CaseReadings
    test: CaseReadings | None = None
    segments: tuple[Segment, ...] = ()

    @property
    def known(self) -> Index:
        """The sensors that vary in the training rows."""
        return np.flatnonzero(self.train.rows.std(axis=0) > _VARIES)

    @property
    def held(self) -> int:
        """Where the last third begins."""
        return len(self.train.rows) * 2 // 3


@dataclass(frozen=True)
class LabelledCase:
    """An incident: the readings up to its end, where it starts, and the sensors that are wrong from there on."""

    tier: Tier
    number: int
    readings: CaseReadings
    start: int
    truth: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.readings.rows) - self.start


def load(entity: Entity | CaseWorld) -> Subject:
    """Read the files of an entity, or simulate the water network."""
    if isinstance(entity, CaseWorld):
        recording = simulate(days=entity.days, seed=entity.seed)
        return Subject(CaseReadings(recording.rows().values, recording.names, recording.times, 60.0))
    train, test = read_entity(entity)
    names = metric_names(train.shape[1])
    return Subject(CaseReadings(train, names), CaseReadings(test, names), entity.segments)


def labelled_cases(subject: Subject) -> tuple[list[LabelledCase], list[str]]:
    """The labelled segments, and what is left out of them and why."""
    cases, left_out, unknown = [], [], 0
    known = set(subject.known.tolist())
    for k, segment in enumerate(subject.segments):
        truth = tuple(metric for metric in segment.metrics if metric in known)
        if not truth or len(truth) == len(known):
            why = "every sensor is labelled" if truth else "its sensors are constant in the training rows"
            left_out.append(f"segment of rows {segment.start} to {segment.stop - 1}: {why}")
            continue
        assert subject.test is not None
        unknown += len(segment.metrics) - len(truth)
        stop = min(segment.stop, segment.start + LONGEST)
        cases.append(LabelledCase("labelled", k, subject.test.first(stop), segment.start, truth))
    if unknown:
        left_out.append(f"{counted(unknown, 'label')} of other segments: the sensor is constant in the training rows")
    return cases, left_out


def check_length(subject: Subject) -> None:
    """Refuse training rows whose last third is too short for a single incident."""
    least = 3 * (FIRST + CHANGED + 1)
    if len(subject.train.rows) < least:
        raise ValueError(f"{len(subject.train.rows)} training rows are too few: give at least {least}")


def alive(subject: Subject) -> Index:
    """The sensors that vary both before the last third and in it: those an incident may befall."""
    rows, held = subject.train.rows, subject.held
    least = _ALIVE * rows.std(axis=0)
    moving = (rows[:held].std(axis=0) > _VARIES) & (rows[held:].std(axis=0) > np.maximum(least, _VARIES))
    return np.flatnonzero(moving)


def changed_cases(subject: Subject, tier: Tier, runs: int, seed: int, label: str) -> Iterator[LabelledCase]:
    """Injected or replayed incidents of one and three sensors in turn; draw k does not depend on how many there are."""
    quiet, sensors = subject.train.after(subject.held), alive(subject)
    scale = _scales(subject, sensors) if tier == "injected" else np.empty(0)
    for k in range(runs):
        n = NUMBERS[k % len(NUMBERS)]
        if n >= sensors.size:
            continue
        rng = rng_for((seed, k), "incidents", tier, label)
        start, other = rng.integers(FIRST, len(quiet.rows) - CHANGED), rng.integers(0, len(quiet.rows) - CHANGED)
        which = rng.choice(sensors.size, n, replace=False)
        truth, rows = sensors[which], quiet.rows[: start + CHANGED].copy()
        if tier == "injected":
            rows[start:, truth] += _steps(rng, n) * scale[which]
        else:
            rows[start:, truth] = quiet.rows[other : other + CHANGED][:, truth]
        readings = replace(quiet.first(len(rows)), rows=rows)
        yield LabelledCase(tier, k, readings, int(start), tuple(sorted(truth.tolist())))


def _scales(subject: Subject, sensors: Index) -> Array:
    """The robust units of some sensors before the last third."""
    return np.array([robust_scale(subject.train.rows[: subject.held, k])[1] for k in sensors])


def _steps(rng: np.random.Generator, n: int) -> Array:
    """Sizes that span orders of magnitude, of either sign."""
    low, high = np.log(SIZES)
    return np.exp(rng.uniform(low, high, n)) * rng.choice([-1.0, 1.0], n)


def quiet_cases(subject: Subject) -> Iterator[LabelledCase]:
    """Stretches of the last third in which nothing was changed, evenly spread, without overlap."""
    readings = subject.train.after(subject.held)
    for k, start in enumerate(spread(FIRST, len(readings.rows), QUIET, MOST_QUIET)):
        yield LabelledCase("quiet", k, readings.first(start + QUIET), start, ())


def spread(first: int, last: int, length: int, most: int) -> Sequence[int]:
    """Starts of up to `most` stretches between two rows, evenly spread, without overlap.

    >>> spread(0, 10, 3, 5), spread(0, 100, 3, 4)
    ([0, 3, 6], [0, 33, 63, 96])
    """
    fitting = max(0, (last - first) // length)
    if fitting <= most:
        return [first + k * length for k in range(fitting)]
    places = np.linspace(0, fitting - 1, most).round().astype(int)
    return [int(first + k * length) for k in places]
