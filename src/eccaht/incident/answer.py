"""What an investigation of an incident answers, as numbers; words, pictures and pages are made of it elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array

Kind = Literal["step", "drift", "noise", "replay", "stuck", "silent", "moved", "free"]


@dataclass(frozen=True)
class Interval:
    """Both ends of an interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Reason:
    """Why a sensor is where it is: what it reads alone, and what the others say it should read.

    z_alone: its mean deviation from its level before the onset, in usual deviations of one window in the history.
    z_given: its mean deviation from what the sensors that are not named predict, in usual deviations of one window
    from that.
    predictors: the sensors whose readings say most about it, with their weights in robust units, largest first.
    read, expected: its mean reading since the onset and what the others predict for it, in raw units.
    """

    z_alone: float
    z_given: float
    predictors: tuple[tuple[str, float], ...]
    read: float
    expected: float


@dataclass(frozen=True)
class Suspect:
    """One sensor in the light of the incident.

    kind: "moved" is a column that never changed in the history and does now; no evidence weighs it. "replay" has
    nothing to do with what the others predict, as if it were of another time. belief: the probability that it is
    wrong. evidence: log-likelihood that the named set loses without it, or wins with it; needed: what it takes to
    be named, as sound sensors seldom reach it. size, size_raw: its mean deviation since the onset from what the
    others predict (if it is named, the end of a drift, the spread of noise or a replay), in robust and in raw
    units, with a 95 % interval of the latter. since: the window from which on it deviates.
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
class Answer:
    """Which sensors are wrong.

    sensors: all of them, the most suspect first, the named ones before the others.
    onset, onset_interval: None if nothing is wrong; the interval holds the onset with 95 % by the evidence.
    first, last: the stretch that was looked at; n_windows of it.
    evidence: how unusual the stretch is, as -log of the share of quiet stretches that are as unusual.
    threshold: evidence beyond which something is said to be wrong.
    confidence: the counted probability that exactly the named sensors are wrong (or that nothing is), those of kind
    "moved" taken for granted; None where no drill has counted it, and a caution then says why. sure: is it at least
    the promised one? searched: whether the stretch that was judged had to be found, which drills were told.
    posterior: the same within the model, before drills corrected it.
    runner_up: the strongest sensor that was not named.
    rankings: all sensors with their score, best first, by "z_local" (the largest deviation from the hour before) and
    "mahalanobis" (contribution to the Mahalanobis distance).
    cautions: what a user should know. drill: one line that says what drills on the history counted, "" without.
    """

    sensors: tuple[Suspect, ...]
    onset: np.datetime64 | None
    onset_interval: tuple[np.datetime64, np.datetime64] | None
    first: np.datetime64
    last: np.datetime64
    n_windows: int
    evidence: float
    threshold: float
    confidence: float | None
    sure: bool
    posterior: float
    alpha: float
    runner_up: str | None
    rankings: dict[str, tuple[tuple[str, float], ...]]
    starts: NDArray[np.datetime64]  # of the windows shown, some of them before the stretch, (T,)
    evidence_course: Array  # (T,), cumulated evidence of the named set; 0 before the onset
    courses: tuple[Course, ...] = ()  # of the named sensors and the runner-up
    cautions: tuple[str, ...] = ()
    drill: str = ""
    notes: tuple[str, ...] = field(default=())
    searched: bool = False

    @property
    def named(self) -> tuple[str, ...]:
        """The sensors that are wrong, the most suspect first."""
        return tuple(suspect.sensor for suspect in self.sensors if suspect.named)
