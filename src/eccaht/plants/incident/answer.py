"""What `identify` answers, as numbers. Words, tables, pictures and pages are made of an `Answer` elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import PLAIN, Clock
from eccaht.base.presentation.text import deviations, joined, listed, ordinal, percent
from eccaht.plants.incident.advice import Again
from eccaht.plants.model.model import no_attribute
from eccaht.streams import Kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from eccaht.plants.incident.search import Search


Verdict = Literal["wrong", "nothing", "undecided"]
RANKINGS = {"z_local": "z-score against the windows before", "mahalanobis": "Mahalanobis contribution"}
USUAL = 3.0  # deviations: a mean that deviates less looks normal
_SAME = "the same sensors come first."
_MOST = 3  # sensors that a line names for one reason


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


@dataclass(frozen=True, repr=False)
class Suspect:
    """One sensor in the light of an incident.

    kind: "range" is beyond everything in the history by as much as its whole range; "moved" is a column that never
    changed in the history and does now; "replay" has nothing to do with what the others predict, as if it were of
    another time. belief: the probability that it is wrong. evidence: -log of the share of quiet stretches of that
    length that show as much of it, given the sensors named before it; needed: what it takes to be named.
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
    began: np.datetime64 | None = None
    size_interval: Interval = NO_INTERVAL
    score: float = math.nan
    shift: float = math.nan
    shift_spread: float = math.nan
    clock: Clock = PLAIN

    @property
    def since(self) -> np.datetime64 | int | None:
        """When it began to be wrong: a time, or the number of a row where rows have no times; None if it is not."""
        return self.clock.seen(self.began)

    def __repr__(self) -> str:
        what = f"{self.kind}, size {self.size_raw:.4g}" if self.named else "not named"
        return f"Suspect({self.sensor}: {what}, belief {self.belief:.3g}, evidence {self.evidence:.3g})"


@dataclass(frozen=True, repr=False)
class Course:
    """The readings of one sensor beside the band that the others predict, all in raw units, (T,)."""

    sensor: str
    starts: NDArray[np.datetime64]
    read: Array  # NaN where there is none
    expected: Array
    low: Array  # the 95 % band around what is expected
    high: Array

    def __repr__(self) -> str:
        return f"Course({self.sensor}, {len(self.starts)} windows from {self.starts[0]})"


@dataclass(frozen=True, repr=False)
class Incident:
    """One incident of a recording.

    began, began_interval: its first window, with 95 % by the evidence; NaT in a search, which dates nothing. ended:
    the first window after it, None if it goes on. These are times even where rows have none: users read `onset`,
    `onset_interval` and `end`, which are numbers of rows then. changed: whether it ended because its deviation
    lasts as a change. sensors: all of them, the most suspect first, the named ones before the others. evidence: how
    rare the readings of the named sensors are, beyond what is usual, summed over its windows: by which incidents
    are compared. confidence: the probability that exactly the named sensors are wrong, as estimated in drills, None
    where no drill says. starts, evidence_course, courses: of the windows shown, from some before the onset to some
    after the end.
    """

    began: np.datetime64
    began_interval: tuple[np.datetime64, np.datetime64]
    ended: np.datetime64 | None
    changed: bool
    sensors: tuple[Suspect, ...]
    evidence: float
    confidence: float | None
    sure: bool
    rankings: dict[str, tuple[tuple[str, float], ...]]
    starts: NDArray[np.datetime64]  # (T,)
    evidence_course: Array  # (T,), cumulated since the onset
    courses: tuple[Course, ...] = ()  # of the named sensors and the runner-up
    clock: Clock = PLAIN

    def __repr__(self) -> str:
        onset = self.clock.show(self.began)
        dates = f"since {onset}" if self.ended is None else f"{onset} to {self.clock.show(self.ended)}"
        return f"Incident({listed(self.named) or 'no sensor'}, {dates}{_confident(self.confidence)})"

    def by(self, clock: Clock) -> Incident:
        """The same incident, its times by a clock."""
        return replace(self, clock=clock, sensors=tuple(replace(each, clock=clock) for each in self.sensors))

    @property
    def onset(self) -> np.datetime64 | int:
        """When it began: a time, or the number of a row where rows have no times."""
        return self.clock.seen(self.began)

    @property
    def onset_interval(self) -> tuple[np.datetime64 | int, np.datetime64 | int]:
        """Between which times it began, with 95 %."""
        low, high = self.began_interval
        return self.clock.seen(low), self.clock.seen(high)

    @property
    def end(self) -> np.datetime64 | int | None:
        """When it was over, None if it goes on."""
        return self.clock.seen(self.ended)

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


def _confident(confidence: float | None) -> str:
    return "" if confidence is None else f", confidence {percent(confidence)}"


@dataclass(frozen=True, repr=False)
class Answer:
    """Which sensors are wrong in a recording.

    verdict: "wrong", "nothing" or "undecided"; doubts: why it is undecided. incidents: in order of time; an undecided
    answer has them where most sensors read what the history never had. looked_at: the
    stretch as a whole, in which no sensor is named: what `largest` is where there is no incident. first, last: the
    stretch that was looked at; n_windows of it. evidence: the largest value of a detector beyond its threshold:
    above 0 there is an alarm. alpha: 1 less the confidence that makes an answer sure. every: windows to a false
    alarm. quiet: the share of drilled faults that were found where nothing is wrong, None where it is not known.
    cautions: what a user should know; compared: those of them that compare the data with the history.
    drill: one line that says what drills on the history found, "" without. search: what only a search by weighted sums
    has, None for whole windows; `evidence` and `every` are NaN there. clock: what its times mean, which are UTC where
    it has a zone. settings: what was asked, as values of JSON; about: the same for people, a line each;
    again: how to ask again with other options.

    A notebook shows it as its page.
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
    clock: Clock = PLAIN
    settings: dict[str, Any] = field(default_factory=dict)
    about: tuple[str, ...] = ()
    again: Again = field(default_factory=Again)

    def __repr__(self) -> str:
        since = "" if self.onset is None else f" since {self.clock.show(self.largest.began)}"
        named = f": {listed(self.named)}{since}" if self.named else ""
        many = f", the largest of {len(self.incidents)} incidents" if len(self.incidents) > 1 else ""
        return f"Answer({self.verdict}{named}{_confident(self.confidence)}{many})"

    def _repr_html_(self) -> str:
        from eccaht.base.presentation.document import framed

        return framed(self.html())

    def to_dict(self) -> dict[str, Any]:
        """The document that `eccaht identify --json` prints."""
        from eccaht.plants.incident.document import as_document

        beside = {"timezone": self.clock.zone, "notes": list(self.notes), "files": []}
        return {"settings": self.settings, **as_document(self, self.clock), **beside}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, "an answer")

    @property
    def text(self) -> str:
        """The lines that `eccaht identify` prints."""
        from eccaht.plants.incident.words import lines

        return "\n".join(lines(self, self.clock))

    def to_frame(self) -> Any:
        """One row a sensor of the largest incident, the most suspect first; pandas if it is installed, else polars.

        The columns are those of `sensors` in `to_dict`, without the predictors.
        """
        from eccaht.plants.incident.document import sensors_frame

        return sensors_frame(self, self.clock)

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw the readings and the evidence; path: also save it there, as .png, .pdf or .svg."""
        from eccaht.base.presentation.style import for_notebooks
        from eccaht.plants.incident.picture import draw

        return for_notebooks(draw(self, clock=self.clock), path)

    def html(self, path: str | PathLike[str] | None = None) -> str:
        """The page with everything on it; path: also write it there."""
        from eccaht.base.files import replacing
        from eccaht.plants.incident.page import write

        text = write(self, clock=self.clock, about=self.about)
        if path is not None:
            with replacing(Path(path)) as file:
                file.write(text.encode("utf-8", errors="backslashreplace"))
        return text

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
    def onset(self) -> np.datetime64 | int | None:
        """When the largest incident began; None where there is none or where it is not dated."""
        return self.largest.onset if self.incidents and not np.isnat(self.largest.began) else None

    @property
    def end(self) -> np.datetime64 | int | None:
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


def disagreements(incident: Incident) -> list[str]:
    """The sensors that each plain ranking would have named instead, and why; one line where all agree."""
    found = [(RANKINGS[name], _disagreement(incident, name)) for name in RANKINGS if incident.rankings.get(name)]
    if len(found) > 1 and all(text == _SAME for _, text in found):
        return [f"By {' and by '.join(ranking for ranking, _ in found)} {_SAME}"]
    return [f"By {ranking} {text}" for ranking, text in found]


def _disagreement(incident: Incident, name: str) -> str:
    place = places(incident)[name]
    named = [sensor for sensor in incident.named if sensor in place]  # what was constant in the history has no place
    first = [sensor for sensor, _ in incident.rankings[name]][: max(len(named), 1)]
    if not named:
        return f"{first[0]} comes first; some sensor always does."
    missed, taken = [k for k in named if k not in first], [k for k in first if k not in named]
    if not missed and not taken:
        return _SAME
    suspects = {suspect.sensor: suspect for suspect in incident.sensors}
    misses = _grouped((k, place[k], *_missed(suspects[k], name)) for k in missed)
    takes = _grouped((k, place[k], *_taken(suspects[k])) for k in taken if k in suspects)
    return f"one would miss {misses}" + (f"; and name {takes}." if takes else ".")


def _missed(suspect: Suspect, ranking: str) -> tuple[str, str]:
    """A number beside a sensor that a ranking misses, and why it does."""
    if not math.isfinite(suspect.reason.z_alone):
        return "", "without readings"
    if ranking == "mahalanobis":
        return "", "deviation shared out among correlated sensors"
    alone = f"{deviations(suspect.reason.z_alone)} alone"
    return alone, "looking normal alone" if abs(suspect.reason.z_alone) < USUAL else "behind larger single deviations"


def _taken(suspect: Suspect) -> tuple[str, str]:
    """A number beside a sensor that a ranking wrongly takes, and why it is not named."""
    if abs(suspect.reason.z_given) < USUAL:
        return f"{deviations(suspect.reason.z_given)} given the others", "doing what the others predict"
    return f"evidence {suspect.evidence:.1f}", "adding too little evidence"


def _grouped(found: Iterable[tuple[str, int, str, str]]) -> str:
    """Sensors with their places and numbers, those with the same reason together."""
    groups: dict[str, list[str]] = {}
    for sensor, place, number, reason in found:
        beside = ", ".join(filter(None, (ordinal(place), number)))
        groups.setdefault(reason, []).append(f"{sensor} ({beside})")
    for reason, sensors in groups.items():
        if len(sensors) > _MOST:
            groups[reason] = [*sensors[:_MOST], f"{len(sensors) - _MOST} more"]
    return "; ".join(f"{joined(sensors)}, {reason}" for reason, sensors in groups.items())


def places(incident: Incident) -> dict[str, dict[str, int]]:
    return {
        name: {sensor: place for place, (sensor, _) in enumerate(ranking, 1)}
        for name, ranking in incident.rankings.items()
    }
