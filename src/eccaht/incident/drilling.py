"""Drills: faults of known kind in stretches of quiet windows, each judged as an incident would be.

Drills come in pairs of the same kind. One of a pair serves to fit what makes the promise hold, the other one to count
whether it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy.special import expit

from eccaht.arrays import Array, Index, as_count
from eccaht.incident.faults import KINDS, VARIES, Fault, delivering, draw_fault, draw_number, inject, varying
from eccaht.incident.judge import Basis
from eccaht.model.normal import WIDTH
from eccaht.randomness import Seed, check_seed, rng_for

QUIET = "quiet"
LENGTHS = (20, 60, 200)  # windows of a stretch
_STRETCHES = 3  # of a length that must fit beside each other for the length to be drilled
_COURSE = ("stuck", "replay")  # kinds that show nothing in a sensor that stands still
_TRIES = 50  # stretches looked at for sensors that vary


class Judged(Protocol):
    """What a judge says of a stretch: the sensors that are wrong, and the log-odds that it is exactly these."""

    @property
    def named(self) -> tuple[int, ...]:
        """The sensors that are wrong, empty if nothing is."""

    @property
    def basis(self) -> Basis:
        """What it stands on: evidence for a sensor, or only that some are stuck or silent, or nothing."""

    @property
    def log_odds(self) -> float:
        """Of the named set, before drills say what they are worth; counts only where evidence names a sensor."""

    @property
    def alarm(self) -> bool:
        """Whether something is wrong at all."""


Judge = Callable[[Array, Array, int, int], Judged]  # windows, their moments, start, stop


@dataclass(frozen=True, eq=False)
class Drill:
    """One stretch that was judged.

    kind: "quiet" if nothing was injected. size: in robust units, 0 for kinds without. sensors: those truly faulty.
    start, length: the stretch. named, basis, log_odds, alarm: what the judge said. part: what the drill serves for.
    """

    kind: str
    size: float
    sensors: tuple[int, ...]
    start: int
    length: int
    named: tuple[int, ...]
    basis: Basis
    log_odds: float
    alarm: bool
    part: Literal["fit", "count"]

    @property
    def quiet(self) -> bool:
        """Whether nothing was injected."""
        return self.kind == QUIET

    @property
    def right(self) -> bool:
        """Whether exactly the faulty sensors were named; where there are none, none."""
        return set(self.named) == set(self.sensors)

    @property
    def found(self) -> int:
        """How many of the faulty sensors were named."""
        return len(set(self.named) & set(self.sensors))

    @property
    def falsely_named(self) -> int:
        """How many sensors were named that are not faulty."""
        return len(set(self.named) - set(self.sensors))

    def confidence(self, factor: float) -> float:
        """The probability of the named set if evidence is multiplied by `factor`."""
        return confidence(self.log_odds, factor)


def confidence(log_odds: float, factor: float) -> float:
    """The probability that log-odds stand for once multiplied by `factor`.

    >>> round(confidence(3.0, 1.0), 3), confidence(3.0, 0.0)
    (0.953, 0.5)
    """
    return float(expit(factor * log_odds))


def kinds_of(runs: int) -> list[str]:
    """The kinds of all drills, in pairs: `runs` faults, or one more, and half as many stretches that stay quiet.

    >>> kinds_of(4)
    ['step', 'step', 'drift', 'drift', 'quiet', 'quiet']
    """
    kinds: list[str] = []
    for pair in range((as_count(runs, "runs", least=1) + 1) // 2):
        kinds += [KINDS[pair % len(KINDS)]] * 2
        kinds += [QUIET] * 2 if pair % 2 else []
    return kinds


def run_drills(
    judge: Judge,
    values: Array,
    moments: Array,
    starts: Index | None = None,
    lengths: Sequence[int] = LENGTHS,
    *,
    runs: int = 200,
    seed: Seed = 0,
    progress: Callable[[int], object] | None = None,
) -> list[Drill]:
    """Judge stretches of quiet windows with and without faults.

    values, moments: windows, (T, K), and their seconds of the day, (T,), as the judge takes them; the model must not
    have been fitted to them. starts: windows at which a stretch may begin; None: at any. The first 60 windows only say
    what was normal before. lengths: of the stretches; those that do not fit three times are left out.
    runs: faults to inject. `progress(1)` is called after every drill.
    """
    kinds, seed = kinds_of(runs), check_seed(seed)
    ground, places = Ground.of(values), _places(len(values), starts, lengths)
    drills = []
    for number, kind in enumerate(kinds):
        rng = rng_for(seed, "drill", str(number))
        fault, start, stop, shown = _prepared(ground, places, kind, rng)
        judged = judge(shown, moments, start, stop)
        drills.append(
            Drill(
                kind,
                0.0 if fault is None else fault.size,
                () if fault is None else fault.sensors,
                start,
                stop - start,
                tuple(int(k) for k in judged.named),
                judged.basis,
                float(judged.log_odds),
                bool(judged.alarm),
                "fit" if number % 2 else "count",
            )
        )
        if progress is not None:
            progress(1)
    return drills


def _places(windows: int, starts: Index | None, lengths: Sequence[int]) -> dict[int, Index]:
    """Where stretches of each length that fits may begin."""
    if not lengths:
        raise ValueError("a drill needs the length of its stretches: give at least one")
    given = np.arange(windows) if starts is None else np.unique(starts)
    places: dict[int, Index] = {}
    for length in (as_count(each, "a length", least=2) for each in lengths):
        begins = given[(given >= WIDTH) & (given <= windows - length)]
        if len(begins) and windows - WIDTH >= _STRETCHES * length:
            places[length] = begins
    if not places:
        least = WIDTH + _STRETCHES * min(lengths)
        raise ValueError(f"drills need {least} quiet windows in a row, and there are {windows}: give more quiet data")
    return places


def _prepared(
    ground: Ground, places: dict[int, Index], kind: str, rng: np.random.Generator
) -> tuple[Fault | None, int, int, Array]:
    """A fault of this kind, or None, the stretch it is in, and the windows as they look then."""
    for _ in range(_TRIES):
        length = int(rng.choice(list(places)))
        start = int(rng.choice(places[length]))
        stop = start + length
        if kind == QUIET:
            return None, start, stop, ground.values
        if (found := ground.faulty(kind, start, stop, rng)) is not None:
            fault, shown = found
            return fault, start, stop, shown
    raise ValueError(f"no fault of kind {kind!r} can be drilled: the sensors hardly vary, give more quiet data")


@dataclass(frozen=True, eq=False)
class Ground:
    """The quiet windows to drill in, (T, K), and the sensors that may be faulty in them."""

    values: Array
    alive: Index

    @staticmethod
    def of(values: Array) -> Ground:
        """Of all sensors that vary."""
        if values.shape[1] < 2:
            raise ValueError("a drill needs at least 2 sensors: a single one has no others to be judged by")
        return Ground(values, varying(values))

    def faulty(self, kind: str, start: int, stop: int, rng: np.random.Generator) -> tuple[Fault, Array] | None:
        """A fault of this kind in [start, stop) and the windows as they look then; None if the draw shows nothing."""
        alive = self._candidates(kind, start, stop)
        if not alive.size:
            return None
        fault = draw_fault(rng, kind, alive, draw_number(rng, min(alive.size, self.values.shape[1] - 1)))
        shown = inject(self.values, start, stop, fault, rng, self._donor(start, stop - start, rng))
        return (fault, shown) if self._changed(shown, start, stop, fault) else None

    def _candidates(self, kind: str, start: int, stop: int) -> Index:
        """Sensors that may be faulty: if the fault only stops or moves their course, they need one in the stretch."""
        stretch = self.values[start:stop]
        return np.intersect1d(self.alive, varying(stretch) if kind in _COURSE else delivering(stretch))

    def _donor(self, start: int, length: int, rng: np.random.Generator) -> int:
        """The first window of another stretch, which does not overlap this one."""
        before, after = max(start - length + 1, 0), max(len(self.values) - start - 2 * length + 1, 0)
        place = int(rng.integers(before + after))
        return place if place < before else start + length + place - before

    def _changed(self, shown: Array, start: int, stop: int, fault: Fault) -> bool:
        """Whether each faulty sensor shows something else than it would: an exact repetition is no fault."""
        if fault.kind not in _COURSE:
            return True
        sensors = list(fault.sensors)
        difference = np.abs(shown[start:stop, sensors] - self.values[start:stop, sensors])
        return bool((np.where(np.isnan(difference), 0.0, difference).max(axis=0) >= VARIES).all())
