"""What `identify` answers, as numbers.

`eccaht.plants.show`, above, makes words, tables, pictures and pages of it, and is loaded when an answer is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import PLAIN, Clock
from eccaht.base.extras import need
from eccaht.base.files import replacing
from eccaht.base.lazy import no_attribute
from eccaht.base.presentation.text import listed, percent
from eccaht.streams import Kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_HINTS = {
    **dict.fromkeys(("anomalies", "culprits", "names"), "write named"),
    **dict.fromkeys(("start", "began_at", "time"), "write onset"),
    **dict.fromkeys(("df", "table", "to_pandas", "to_csv", "to_excel"), "write to_frame()"),
    **dict.fromkeys(("to_json", "json"), "write to_dict()"),
    **dict.fromkeys(("show", "save", "figure"), "write plot('incident.png'), or html('incident.html')"),
    **dict.fromkeys(("score", "probability"), "write confidence, or evidence"),
    **dict.fromkeys(("summary", "report"), "write text"),
    **dict.fromkeys(("predict", "expected", "residuals"), "write model.predict(data)"),
}
Verdict = Literal["wrong", "nothing", "undecided"]


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


@dataclass(frozen=True, repr=False)
class Difference:
    """The difference of sensors that shows a fault: a designed difference, in which the noise that they share cancels.

    It is what a sensor reads less what the sensors that are not named predict for it, P^-1 e_k restricted to them: the
    design with contrast e_k and no budget, from the precision P that judged the sensor.

    weights: of the readings in their own units, that of the sensor itself, 1, first, then those that say most about it.
    usual: what it is worth in normal operation, just before the onset; read: its mean since the onset; deviation: one
    standard deviation of it. size: (read - usual) / deviation. scatter: the root mean square of the same by windows.
    """

    weights: tuple[tuple[str, float], ...]
    usual: float
    read: float
    deviation: float
    size: float
    scatter: float

    def __repr__(self) -> str:
        return f"Difference({self.weights[0][0]} and {len(self.weights) - 1} others, size {self.size:.3g})"


NO_INTERVAL = Interval(math.nan, math.nan)


@dataclass(frozen=True, repr=False)
class Suspect:
    """One sensor in the light of an incident.

    kind: "range" is beyond everything in the history by as much as its whole range; "moved" is a column that never
    changed in the history and does now; "replay" has nothing to do with what the others predict, as if it were of
    another time. belief: the probability that it is wrong. evidence: -log of the share of quiet stretches of that
    length that show as much of it, given the sensors named before it; needed: what it takes to be named.
    difference: of its readings and those of others, which shows the fault; None unless it is named and reads.
    size, size_raw: its mean deviation since the onset from what the others predict (the end of a drift, the spread of
    noise or a replay), in robust and in raw units, each with a 95 % interval; NaN below its resolution.
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
    began: np.datetime64 | None = None
    size_interval: Interval = NO_INTERVAL
    difference: Difference | None = None
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


@dataclass(frozen=True)
class Check:
    """A sensor to read by hand, which would help to settle which sensors are wrong.

    read, expected: what it reads in the last window of the incident, and what the others predict for it.
    decides: the probability that with this check, and those before it, the answer is confident.
    """

    sensor: str
    read: float
    expected: float
    decides: float


@dataclass(frozen=True)
class Checked:
    """A sensor that was read by hand: in which window, the value, what the sensor read, and whether it is wrong."""

    sensor: str
    time: np.datetime64
    value: float
    read: float
    wrong: bool


Judge = Callable[[str, float, float, Any], "Incident"]  # of a sensor, a value, its noise and a time


@dataclass(frozen=True, repr=False)
class Incident:
    """One incident of a recording.

    began, began_interval: its first window, with 95 % by the evidence. ended: the first window after it, None if it
    goes on. These are times even where rows have none: users read `onset`, `onset_interval` and `end`, which are
    numbers of rows then. changed: whether it goes on as a change that lasts.
    sensors: all of them, the named ones first, then the others by evidence.
    evidence: the largest value of a detector in its windows, in nats above the threshold of an alarm.
    weight: how rare the readings of the named sensors are, beyond what is usual, summed over its windows: by which
    incidents are compared.
    confidence: the probability that exactly the named sensors are wrong, as estimated in drills, None where no drill
    says. confident: whether it is at least the one that was asked for.
    checks: that would settle it, the most telling one first, where it is not confident; checked: those that were made.
    starts, evidence_course, courses: of the windows shown, from some before the onset to some after the end.
    """

    began: np.datetime64
    began_interval: tuple[np.datetime64, np.datetime64]
    ended: np.datetime64 | None
    changed: bool
    sensors: tuple[Suspect, ...]
    evidence: float
    weight: float
    confidence: float | None
    confident: bool
    rankings: dict[str, tuple[tuple[str, float], ...]]
    starts: NDArray[np.datetime64]  # (T,)
    evidence_course: Array  # (T,), nats above the threshold
    courses: tuple[Course, ...] = ()  # of the named sensors and the runner-up
    checks: tuple[Check, ...] = ()
    checked: tuple[Checked, ...] = ()
    clock: Clock = PLAIN
    judge: Judge | None = field(default=None, compare=False)  # the incident with a check

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, "an incident", name, _HINTS)

    def __repr__(self) -> str:
        onset = self.clock.show(self.began)
        dates = f"since {onset}" if self.ended is None else f"{onset} to {self.clock.show(self.ended)}"
        return f"Incident({listed(self.named) or 'no sensor'}, {dates}{_confident(self.confidence)})"

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
    def others(self) -> tuple[Suspect, ...]:
        """The sensors that are not named, by belief."""
        return tuple(sorted((each for each in self.sensors if not each.named), key=lambda each: -each.belief))

    def lasts(self, time: np.datetime64) -> bool:
        """Whether it may have begun at this time and is not over."""
        return bool(self.began_interval[0] <= time and (self.ended is None or time < self.ended))

    @property
    def runner_up(self) -> str | None:
        """The sensor with the largest belief among those that are not named."""
        return self.others[0].sensor if self.others else None

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw its readings and its evidence; path: also save it there, as .png, .pdf or .svg."""
        need("matplotlib")
        from eccaht.base.presentation.style import for_notebooks
        from eccaht.plants.show.picture import draw_incident
        from eccaht.plants.show.words import verdict_of

        return for_notebooks(draw_incident(self, verdict_of(self)), path)


def _confident(confidence: float | None) -> str:
    return "" if confidence is None else f", confidence {percent(confidence)}"


@dataclass(frozen=True, repr=False)
class Answer:
    """Which sensors are wrong in a recording.

    verdict: "wrong", "nothing" or "undecided"; doubts: why it is undecided. incidents: in order of time; an undecided
    answer has them where most sensors read what the history never had. looked_at: the
    stretch as a whole, in which no sensor is named: what `largest` is where there is no incident. first, last: the
    stretch that was looked at; n_windows of it. evidence: the largest value of a detector, in nats above its
    threshold: above 0 there is an alarm. alpha: 1 less the confidence of a confident answer. every: windows to a false
    alarm. quiet: the share of drilled faults that were found where nothing is wrong, None where it is not known.
    cautions: what a user should know; compared: those of them that compare the data with the history.
    drill: one line that says what drills on the history found, "" without. clock: what its times mean, which are UTC
    where it has a zone. settings: what was asked, as values of JSON; about: the same for people, a line each.

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
    clock: Clock = PLAIN
    settings: dict[str, Any] = field(default_factory=dict)
    about: tuple[str, ...] = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, "an answer", name, _HINTS)

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
        from eccaht.plants.show.document import as_document

        return as_document(self)

    @property
    def text(self) -> str:
        """The lines that `eccaht identify` prints."""
        from eccaht.plants.show.words import lines

        return "\n".join(lines(self))

    def to_frame(self) -> Any:
        """One row a sensor of the largest incident, the most suspect first; pandas if it is installed, else polars.

        The columns are those of `sensors` in `to_dict`, without the predictors.
        """
        from eccaht.plants.show.document import sensors_frame

        return sensors_frame(self)

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw the readings and the evidence; path: also save it there, as .png, .pdf or .svg."""
        need("matplotlib")
        from eccaht.base.presentation.style import for_notebooks
        from eccaht.plants.show.picture import draw

        return for_notebooks(draw(self), path)

    def html(self, path: str | PathLike[str] | None = None) -> str:
        """The page with everything on it; path: also write it there."""
        need("matplotlib")
        from eccaht.plants.show.page import write

        page = write(self)
        if path is not None:
            with replacing(Path(path)) as file:
                file.write(page.encode("utf-8", errors="backslashreplace"))
        return page

    def with_check(self, sensor: str, value: float, *, noise: float, time: Any = None) -> Answer:
        """The answer given a reading by hand, or any other that can be trusted, of what a sensor measures.

        noise: one standard deviation of it. time: when, in the windows of an incident; the last one of the largest
        incident if not given. The sensor is wrong if it read otherwise by more than three times the noise, else it is
        sound. Given that, the other sensors are judged anew.

        >>> answer.with_check("PT-402", 7.1, noise=0.05).named  # doctest: +SKIP
        ('PT-402', 'AT-301')
        """
        moment = None if time is None else self.clock.parse(time)
        found = [each for each in self.incidents if moment is None or each.lasts(moment)]
        if not found:
            raise ValueError("a check settles an incident: there is none" + ("" if time is None else f" at {time}"))
        chosen = max(found, key=lambda each: each.weight)
        if chosen.judge is None:
            raise ValueError("a check settles which sensors evidence names: of this incident none says which are wrong")
        judged = chosen.judge(sensor, value, noise, moment)
        return replace(self, incidents=tuple(judged if each is chosen else each for each in self.incidents))

    @property
    def largest(self) -> Incident:
        """The incident with the largest weight; the whole stretch if there is none."""
        return max(self.incidents, key=lambda each: each.weight, default=self.looked_at)

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
        """When the largest incident began; None where there is none."""
        return self.largest.onset if self.incidents else None

    @property
    def end(self) -> np.datetime64 | int | None:
        """When the largest incident was over, None if it goes on."""
        return self.largest.end if self.incidents else None

    @property
    def confidence(self) -> float | None:
        """That exactly the named sensors are wrong in the largest incident; `quiet` where nothing is."""
        return self.largest.confidence if self.incidents else self.quiet

    @property
    def confident(self) -> bool:
        """Is the confidence at least the one that was asked for?"""
        if self.incidents:
            return self.largest.confident
        return self.quiet is not None and self.quiet >= 1.0 - self.alpha
