"""Incidents whose truth is known, and the methods that name their sensors.

Incidents are labelled ones, steps and replays put into quiet rows, and stretches left quiet. All but the labelled ones
lie in the last third of the training rows, after a fit on the first two thirds. Sensors that never vary in the training
rows are left out of every truth: no method can rank them.

A method learns from a history of normal operation and then judges cases, given where the incident starts and nothing
else. A rival only ranks; to name sensors it gets the threshold that its largest score passes in 5 % of the history's
own stretches, about as long as the incident.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.base.presentation.text import counted, unknown
from eccaht.base.randomness import rng_for
from eccaht.plants import calibrate_with_windows, drill_history, investigate_incident
from eccaht.plants.data.cleaning import robust_scale
from eccaht.plants.incident.drill import keeping
from eccaht.research.datasets.labelled import CaseReadings, Segment
from eccaht.research.experiments.rivals import BEFORE, RIVALS, Score, lacking

Tier = Literal["labelled", "injected", "replayed", "quiet"]
CHANGED_TIERS: tuple[Tier, ...] = ("injected", "replayed")  # whose readings were changed here
NUMBERS = (1, 3)  # sensors of an injected or replayed incident
SIZES = (1.0, 10.0)  # of a step, in interquartile ranges
LONGEST = 200  # rows of a labelled segment that are looked at
CHANGED = 60  # rows of an injected or replayed incident
QUIET, MOST_QUIET = 20, 100  # rows of a quiet stretch; stretches of an entity
FIRST = 100  # rows of the last third that only serve as the time before
_VARIES, _ALIVE = 1e-9, 0.05  # standard deviation in the training rows; in the last third, as a share of it
ALPHA = 0.05  # alarms in quiet stretches, and confident answers that are wrong
OURS = "eccaht"
METHODS = (OURS, *RIVALS)
_LENGTHS = (QUIET, CHANGED, LONGEST)  # of the stretches that thresholds are taken from
_STRETCHES = 60
_RECENT = 200  # rows before an incident that are handed over with it: more than three medians of levels take


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
    """The readings up to the end of an incident, where it starts, and the sensors wrong from there on."""

    tier: Tier
    number: int
    readings: CaseReadings
    start: int
    truth: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.readings.rows) - self.start


def labelled_cases(subject: Subject) -> tuple[list[LabelledCase], list[str]]:
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
    before = subject.train.rows[: subject.held]
    scale = np.array([robust_scale(before[:, k])[1] for k in sensors] if tier == "injected" else [])
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


@dataclass(frozen=True)
class Judgement:
    """All known sensors, the most suspect first, and those that are named.

    confidence, confident: of the answer that exactly those are wrong; None where the method gives none.
    """

    order: tuple[int, ...]
    named: frozenset[int]
    confidence: float | None = None
    confident: bool | None = None


Judge = Callable[[LabelledCase], Judgement]


def check_methods(names: Sequence[str] | None) -> tuple[tuple[str, ...], list[str]]:
    """The methods that run, and notes on those that do not because a package is not installed.

    A method that was asked for by name must run.
    """
    for name in names or ():
        if name not in METHODS:
            raise unknown(name, METHODS, "method")
        if (package := lacking(name)) is not None:
            raise ValueError(f"the method {name} needs {package}: pip install {package}")
    if names is not None and (not names or len(set(names)) < len(names)):
        raise ValueError("name each method once, and at least one")
    chosen = names or METHODS
    absent = {name: package for name in chosen if (package := lacking(name)) is not None}
    notes = [f"{name} is left out: it needs {package}, which is not installed" for name, package in absent.items()]
    return tuple(name for name in chosen if name not in absent), notes


def learn(names: Sequence[str], history: CaseReadings, known: Index, seed: int | None) -> dict[str, Judge]:
    """Let the methods learn from a history.

    known: the sensors that they rank. seed: of the drills that say how confident an answer is; None: of none.
    """
    rows = history.rows[:, known]
    judges = {OURS: our_judge(history, known, seed)} if OURS in names else {}
    return judges | {name: _rival(RIVALS[name](rows), rows, known) for name in names if name in RIVALS}


def our_judge(history: CaseReadings, known: Index, seed: int | None) -> Judge:
    """Ours with default options, and drills on the history if they have a seed.

    An incident is given, and its sensors are named. In a quiet stretch nothing is given: sensors are named if an
    incident that begins in it is found.
    """
    model, windows = calibrate_with_windows(history.source(), window=history.window)
    if seed is not None:
        model = keeping(model, drill_history(model, windows, seed=seed))

    def judge(case: LabelledCase) -> Judgement:
        first = max(0, case.start - _RECENT)
        recording = model.prepare(case.readings.after(first).source())
        start, quiet = case.start - first, case.tier == "quiet"
        answer = investigate_incident(model, recording, start, locate=quiet)
        begun = [each for each in answer.incidents if not quiet or each.began >= recording.starts[start]]
        largest = max(begun, key=lambda each: each.weight, default=answer.looked_at)
        shown = largest if begun else answer
        ranked, named = [suspect.sensor for suspect in largest.sensors], largest.named if begun else ()
        return judgement_of(history.names, known, ranked, named, shown.confidence, shown.confident)

    return judge


def judgement_of(
    sensors: Sequence[str],
    known: Index,
    ranked: Sequence[str],
    named: Sequence[str],
    confidence: float | None,
    confident: bool,
) -> Judgement:
    """An answer in places of sensors; known ones that the model has dropped are the least suspect."""
    place = {name: k for k, name in enumerate(sensors)}
    rankable = set(known.tolist())
    order = [place[name] for name in ranked if place[name] in rankable]
    order += sorted(rankable.difference(order))
    return Judgement(tuple(order), frozenset(place[name] for name in named) & rankable, confidence, bool(confident))


def _rival(score: Score, history: Array, known: Index) -> Judge:
    level = cache(lambda length: alarm_level(score, history, length))

    def judge(case: LabelledCase) -> Judgement:
        readings = case.readings.rows[:, known]
        scores = score(readings[max(0, case.start - BEFORE) : case.start], readings[case.start :])
        order = known[np.argsort(-scores, kind="stable")]
        length = next(each for each in _LENGTHS if each >= case.length)
        return Judgement(tuple(order.tolist()), frozenset(known[scores > level(length)].tolist()))

    return judge


def alarm_level(score: Score, history: Array, length: int) -> float:
    """What the largest score of a stretch passes in 5 % of the stretches of the history."""
    starts = spread(BEFORE, len(history), length, _STRETCHES)
    largest = [score(history[start - BEFORE : start], history[start : start + length]).max() for start in starts]
    return float(np.quantile(largest, 1.0 - ALPHA))
