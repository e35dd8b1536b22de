"""What `identify` answers, as numbers, and how often drills on the history found such an answer right.

Words, pictures and pages are made of an `Answer` elsewhere. Its confidence is an estimate: a set is as clear as its
least certain sensor allows (`naming.clarity`), and in drills, sorted by that, the share of right sets says what it is
worth (`drill.fitted`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, as_count, as_number
from eccaht.base.files import check_keys
from eccaht.base.presentation.text import counted, percent
from eccaht.base.statistics import clopper_pearson
from eccaht.plants.incident.faults import KINDS, LARGEST, SIZED, SMALLEST
from eccaht.plants.incident.naming import DrilledConfidence, Found, clarity
from eccaht.plants.model.model import Model
from eccaht.streams import Kind

if TYPE_CHECKING:
    from eccaht.plants.incident.search import Search

Verdict = Literal["wrong", "nothing", "undecided"]
BANDS = ((SMALLEST, 2.0), (2.0, 5.0), (5.0, LARGEST))  # of sizes, in robust units
MOST = 10**9  # drills or windows that a file may hold
_PARTS = ("afterwards", "standing", "at_alarm")


class Interval(NamedTuple):
    """Both ends of an interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Reason:
    """Why a sensor is where it is: what it reads alone, and what the others say it should read.

    z_alone: its mean distance from its level before the onset, in spreads of the sensor in the history.
    z_given: its mean distance from what the sensors that are not named predict, in units of what that leaves open.
    predictors: the sensors whose readings say most about it, with their weights in spreads, largest first.
    read, expected: its mean reading since the onset and what the others predict for it, in raw units.
    """

    z_alone: float
    z_given: float
    predictors: tuple[tuple[str, float], ...]
    read: float
    expected: float


NO_INTERVAL = Interval(math.nan, math.nan)
UNKNOWN = Reason(math.nan, math.nan, (), math.nan, math.nan)


@dataclass(frozen=True)
class Suspect:
    """One sensor in the light of an incident.

    kind: "range" is beyond everything in the history by as much as its whole range; "moved" is a column that never
    changed in the history and does now; "replay" has nothing to do with what the others predict, as if it were of
    another time. belief: the probability that it is wrong. evidence: -log of the share of quiet stretches of that
    length that show as much of it, given the sensors named before it, in nats; needed: what it takes to be named.
    size, size_raw: its mean deviation since the onset from what the others predict (the end of a drift, the spread of
    noise or a replay), in robust and in raw units, each with a 95 % interval; NaN below its resolution.
    score, shift, shift_spread: of a search alone, where every named sensor that moves is of the kind "shifted": what
    the policy ranks by, and the shift that was assumed.
    """

    sensor: str
    named: bool
    belief: float
    evidence: float
    needed: float
    kind: Kind | Literal["shifted"]
    size: float
    size_raw: float
    size_raw_interval: Interval
    reason: Reason
    since: np.datetime64 | None = None
    size_interval: Interval = NO_INTERVAL
    score: float = math.nan
    shift: float = math.nan
    shift_spread: float = math.nan


@dataclass(frozen=True)
class Course:
    """The readings of one sensor beside the band that the others predict, all in raw units, (T,)."""

    sensor: str
    starts: NDArray[np.datetime64]
    read: Array  # NaN where there is none
    expected: Array
    low: Array  # the 95 % band around what is expected
    high: Array


@dataclass(frozen=True)
class Incident:
    """One incident of a recording.

    onset, onset_interval: its first window, with 95 % by the evidence; NaT in a search, which dates nothing. end: the
    first window after it, None if it goes on. changed: whether it ended because its deviation lasts as a change.
    sensors: all of them, the most suspect first, the named ones before the others. evidence: how rare the readings of
    the named sensors are, beyond what is usual, summed over its windows, in nats: by which incidents are compared.
    confidence: the probability that exactly the named sensors are wrong, as estimated in drills, None where no drill
    says. starts, evidence_course, courses: of the windows shown, from some before the onset to some after the end.
    """

    onset: np.datetime64
    onset_interval: tuple[np.datetime64, np.datetime64]
    end: np.datetime64 | None
    changed: bool
    sensors: tuple[Suspect, ...]
    evidence: float
    confidence: float | None
    sure: bool
    rankings: dict[str, tuple[tuple[str, float], ...]]
    starts: NDArray[np.datetime64]  # (T,)
    evidence_course: Array  # (T,), cumulated since the onset
    courses: tuple[Course, ...] = ()  # of the named sensors and the runner-up

    @property
    def named(self) -> tuple[str, ...]:
        """The sensors that are wrong, the most suspect first."""
        return tuple(suspect.sensor for suspect in self.sensors if suspect.named)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(suspect.kind for suspect in self.sensors if suspect.named)

    @property
    def runner_up(self) -> str | None:
        """The strongest sensor that was not named."""
        return next((suspect.sensor for suspect in self.sensors if not suspect.named), None)


@dataclass(frozen=True)
class Answer:
    """Which sensors are wrong in a recording.

    verdict: "wrong", "nothing" or "undecided"; doubts: why it is undecided. incidents: in order of time. looked_at: the
    stretch as a whole, in which no sensor is named: what `largest` is where there is no incident. first, last: the
    stretch that was looked at; n_windows of it. evidence: the largest value of a detector beyond its threshold, in
    nats: above 0 there is an alarm. alpha: 1 less the confidence that makes an answer sure. every: windows to a false
    alarm. quiet: the share of drilled faults that were found where nothing is wrong, None where it is not known.
    cautions: what a user should know; compared: those of them that compare the data with the history.
    drill: one line that says what drills on the history found, "" without. search: what only a search by weighted sums
    has, None for whole windows; `evidence` and `every` are NaN there.
    """

    verdict: Verdict
    incidents: tuple[Incident, ...]
    looked_at: Incident
    first: np.datetime64
    last: np.datetime64
    n_windows: int
    evidence: float
    alpha: float
    every: float
    quiet: float | None = None
    doubts: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    drill: str = ""
    notes: tuple[str, ...] = ()
    search: Search | None = None

    @property
    def largest(self) -> Incident:
        """The incident with the most evidence; the whole stretch if there is none."""
        return max(self.incidents, key=lambda each: each.evidence, default=self.looked_at)

    @property
    def named(self) -> tuple[str, ...]:
        """The sensors of the largest incident that are wrong, the most suspect first; none if there is no incident."""
        return self.largest.named if self.incidents else ()

    @property
    def sensors(self) -> tuple[Suspect, ...]:
        """All sensors in the light of the largest incident."""
        return self.largest.sensors

    @property
    def onset(self) -> np.datetime64 | None:
        """When the largest incident began; None where there is none or where it is not dated."""
        return self.largest.onset if self.incidents and not np.isnat(self.largest.onset) else None

    @property
    def end(self) -> np.datetime64 | None:
        """When the largest incident was over, None if it goes on."""
        return self.largest.end if self.incidents else None

    @property
    def confidence(self) -> float | None:
        """That exactly the named sensors are wrong in the largest incident; `quiet` where nothing is."""
        return self.largest.confidence if self.incidents else self.quiet

    @property
    def sure(self) -> bool:
        """Is the confidence at least the one that was asked for?"""
        if self.incidents:
            return self.largest.sure
        return self.quiet is not None and self.quiet >= 1.0 - self.alpha


# -- what drills found ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quiet:
    """Windows without a fault: how many, alarms in them, windows in alarm. begun: those with which alarms began."""

    windows: int
    alarms: int
    in_alarm: int
    begun: tuple[int, ...] = ()


class Cell(NamedTuple):
    """Drills of one kind and band of sizes: counts, and the median delay in windows of those found.

    right, at_alarm: those whose set was exactly right, with hindsight and at the alarm. onset, end: those that were
    dated within NEAR_ONSET and NEAR_END windows. named: faulty sensors that were named, of `sensors`. sure, wrong:
    confident answers, of all incidents that were reported, and how many of them were not right.
    """

    kind: str
    low: float
    high: float
    drills: int
    found: int
    right: int
    at_alarm: int
    onset: int
    end: int
    sensors: int
    named: int
    sure: int
    wrong: int
    delay: float

    @property
    def share(self) -> float:
        return self.found / self.drills if self.drills else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return clopper_pearson(self.found, self.drills) if self.drills else (0.0, 1.0)


@dataclass(frozen=True)
class Counts:
    """All drills of a history. quiet: its windows without a fault. every: windows to a false alarm, as asked for."""

    cells: tuple[Cell, ...]
    quiet: Quiet
    every: float
    alpha: float

    def total(self, name: str) -> int:
        """The sum of a count over all cells."""
        return sum(int(getattr(cell, name)) for cell in self.cells)

    @property
    def drills(self) -> int:
        return self.total("drills")

    @property
    def found_share(self) -> float | None:
        """Of all faults that were found, None without drills."""
        return self.total("found") / self.drills if self.drills else None

    @property
    def sure(self) -> tuple[int, int]:
        """Confident answers, and how many of them were wrong."""
        return self.total("sure"), self.total("wrong")

    @property
    def holds(self) -> bool:
        """Whether confident answers were wrong no more often than alpha says, but for chance."""
        sure, wrong = self.sure
        return not sure or clopper_pearson(wrong, sure)[0] <= self.alpha

    @property
    def false_alarms(self) -> tuple[int, float]:
        """Alarms in the history, and how many were asked for at most."""
        return self.quiet.alarms, self.quiet.windows / self.every

    def of_kind(self, kind: str) -> tuple[Cell, ...]:
        """The cells of a kind, small sizes first."""
        return tuple(cell for cell in self.cells if cell.kind == kind)

    @property
    def share_in_alarm(self) -> float:
        return self.quiet.in_alarm / self.quiet.windows if self.quiet.windows else 0.0

    def line(self, seconds: float | None) -> str:
        """One line for people; seconds: length of a window, None where rows have no times."""
        sure, wrong = self.sure
        alarms, asked = self.false_alarms
        hours = "" if seconds is None else f"{self.quiet.windows * seconds / 3600.0:.3g} hours"
        said = f"{wrong} of {sure} confident answers wrong" if sure else "no answer confident"
        return (
            f"On your own history: {self.drills} faults drilled, {self.total('found')} found, {self.total('right')} "
            f"sets right, {said}; {counted(alarms, 'false alarm')} in {hours or counted(self.quiet.windows, 'window')} "
            f"without a fault ({asked:.2g} expected), {percent(self.share_in_alarm)} of the time in alarm"
        )

    def header(self) -> dict[str, Any]:
        quiet = [self.quiet.windows, self.quiet.alarms, self.quiet.in_alarm]
        return {"cells": [list(cell) for cell in self.cells], "quiet": quiet, "every": self.every, "alpha": self.alpha}

    @staticmethod
    def build(header: Any) -> Counts:
        """From what `header` gave; whatever is not counts is refused."""
        check_keys(header, {"cells", "quiet", "every", "alpha"}, "counts of drills")
        cells, quiet = header["cells"], header["quiet"]
        if not isinstance(cells, list) or not isinstance(quiet, list) or len(quiet) != 3:
            raise ValueError("its counts of drills are damaged")
        windows, alarms, on = (as_count(number, "a count of quiet windows", least=0) for number in quiet)
        every, alpha = (as_number(header[name], f"{name} in the counts of drills") for name in ("every", "alpha"))
        built = tuple(map(_built, cells))
        good = max(alarms, on) <= windows <= MOST and 1.0 <= every <= 1e15 and 0.0 < alpha < 1.0
        if not good or len({cell[:2] for cell in built}) != len(built):
            raise ValueError("its counts of drills are damaged")
        return Counts(built, Quiet(windows, alarms, on), every, alpha)


def _built(numbers: Any) -> Cell:
    if not isinstance(numbers, list) or len(numbers) != len(Cell._fields):
        raise ValueError("its counts of drills are damaged")
    kind, low, high, *counts, delay = numbers
    sizes = [as_number(size, "a size in the counts of drills") for size in (low, high)]
    whole = [as_count(count, "a count of drills", least=0) for count in counts]
    cell = Cell._make([kind, *sizes, *whole, as_number(delay, "a delay in the counts of drills")])
    known = kind in KINDS and ((low, high) in BANDS if kind in SIZED else not any(sizes))
    good = cell.found <= cell.drills <= MOST and max(cell.right, cell.at_alarm, cell.onset, cell.end) <= cell.found
    good = good and cell.wrong <= cell.sure <= MOST and cell.named <= cell.sensors <= MOST
    if not known or not good or not 0.0 <= cell.delay <= MOST:
        raise ValueError("its counts of drills are damaged")
    return cell


@dataclass(frozen=True)
class Drilled:
    """What drills counted, and how often sets are right by their clarity.

    afterwards: with hindsight; standing: of these, sets with sensors that are stuck, silent or out of range, which are
    wrong by themselves; at_alarm: as a watch names them. None where there were too few drills.
    """

    counts: Counts
    afterwards: DrilledConfidence | None
    standing: DrilledConfidence | None
    at_alarm: DrilledConfidence | None

    def confidence(self, found: Found, stop: int | None = None) -> float | None:
        """How often such an answer was exactly right in drills; None where no drill says.

        stop: the first window after the recording, for incidents that go on.
        """
        part = self.standing if found.wrong else self.afterwards
        return None if part is None else part.counted(clarity(found, found.dates.last + 1 if stop is None else stop))

    def header(self) -> dict[str, Any]:
        parts = {name: getattr(self, name) for name in _PARTS}
        return {"counts": self.counts.header()} | {
            name: None if part is None else part.header() for name, part in parts.items()
        }


def kept(model: Model) -> Drilled | None:
    """What drills of a model counted, None if there were none; checked, since the file may come from anywhere."""
    if model.drilled is None:
        return None
    header = model.drilled
    check_keys(header, {"counts", *_PARTS}, "drills")
    parts = {name: DrilledConfidence.build(header[name]) for name in _PARTS}
    return Drilled(Counts.build(header["counts"]), **parts)
