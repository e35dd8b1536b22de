"""What an investigation of a recording answers, as numbers; words, pictures and pages are made of it elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.streams.watch.alarm import Kind

Verdict = Literal["wrong", "nothing", "undecided"]


@dataclass(frozen=True)
class Interval:
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


@dataclass(frozen=True)
class Suspect:
    """One sensor in the light of an incident.

    kind: "range" is beyond everything in the history by as much as its whole range; "moved" is a column that never
    changed in the history and does now; "replay" has nothing to do with what the others predict, as if it were of
    another time. belief: the probability that it is wrong. evidence: -log of the share of quiet stretches of that
    length that show as much of it, given the sensors named before it, in nats; needed: what it takes to be named.
    size, size_raw: its mean deviation since the onset from what the others predict (the end of a drift, the spread of
    noise or a replay), in robust and in raw units, with a 95 % interval of the latter; NaN below its resolution.
    """

    sensor: str
    named: bool
    belief: float
    evidence: float
    needed: float
    kind: Kind
    size: float
    size_raw: float
    size_raw_interval: Interval
    reason: Reason
    since: np.datetime64 | None = None


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

    onset, onset_interval: its first window, with 95 % by the evidence. end: the first window after it, None if it goes
    on. changed: whether it ended because its deviation lasts as a change. sensors: all of them, the most suspect
    first, the named ones before the others. evidence: how rare the readings of the named sensors are, beyond what is
    usual, summed over its windows, in nats: by which incidents are compared.
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
    drill: one line that says what drills on the history found, "" without.
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
    notes: tuple[str, ...] = field(default=())

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
        """When the largest incident began."""
        return self.largest.onset if self.incidents else None

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
        return self.confidence is not None and self.confidence >= 1.0 - self.alpha
