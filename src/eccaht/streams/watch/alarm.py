"""What a watch says of a fault, whatever is watched: the `Alarm`, and how a file of a watch keeps it.

Where alarms are decided: `steps.py` beside this for a problem, `plants/incident/alarms.py` for a plant.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.base.clock import microseconds
from eccaht.base.codec import Field, Moment, Sizes

State = Literal["quiet", "suspicious", "alarm"]
Kind = Literal["step", "drift", "noise", "replay", "stuck", "silent", "range", "moved", "free"]
Time = np.datetime64 | int
_MOST_EVIDENCE = 700.0  # nats
SUSPICIOUS = -math.log(10.0)  # nats below the threshold of an alarm
CAUTION = (
    "the readings vary more than the problem says: false alarms are more frequent than false_alarm_every; "
    "give the problem degrees_of_freedom= (heavy tails) or estimated_from= (windows of the estimate)"
)


@dataclass(frozen=True, eq=False, repr=False)
class Alarm:
    """What a watch says at an alarm, and of it as it goes on.

    Times are those that came with the windows, or their numbers, from 0, where none came. time: of the window that
    raised it. onset: the most likely first window of the fault; onset_interval: the first and the last one of an
    interval of 90 %, of 95 % with a model. decision: what is wrong, (n,), names what it is called. kinds: how, for
    each: "step", "drift", "noise", "replay", "stuck", "silent" or "free", a course of its own. sizes: how far each
    moved, in units of the readings, (n,), NaN where that means nothing. beliefs: the probability that each of all
    streams belongs to the set, given the others, (K,). confidence: of the whole set, None where it was not
    counted. over: the window in which it was called over, None while it goes on. cautions: with a problem, ways in
    which the windows contradict what the false-alarm rate assumes.
    """

    FIELDS = (
        Field("time", (), Moment),
        Field("onset", (), Moment),
        Field("onset_interval", (2,), Moment),
        Field("decision", ("named",), int, high="K-1"),
        Field("names", ("named",), str),
        Field("sizes", ("named",), nan=True),
        Field("kinds", ("named",), str, among=get_args(Kind)),
        Field("beliefs", ("K",), low=0.0, high=1.0),
        Field("confidence", low=0.0, high=1.0, optional=True),
        Field("over", (), Moment, optional=True),
        Field("cautions", ("cautions",), str, among=(CAUTION,)),
    )
    time: Time
    onset: Time
    onset_interval: tuple[Time, Time]
    decision: Index
    names: tuple[str, ...]
    sizes: Array
    kinds: tuple[str, ...]
    beliefs: Array
    confidence: float | None = None
    over: Time | None = None
    cautions: tuple[str, ...] = ()

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        first, last = map(number_of, self.onset_interval)
        alike = {type(time) for time in (self.time, self.onset, *self.onset_interval)}
        if len(set(self.decision.tolist())) != max(len(self.decision), 1) or len(alike) > 1:
            raise ValueError("its alarm is damaged: it is not of some sensors at one time")
        if not first <= number_of(self.onset) <= last:
            raise ValueError("its alarm is damaged: the onset is not in its interval")

    def check_of(self, names: Sequence[str], *, dated: bool, over: bool) -> None:
        """Refuse an alarm of other streams, with times where there are none, or over where it goes on."""
        good = self.names == tuple(names[k] for k in self.decision) and over == (self.over is not None)
        if not good or dated != isinstance(self.time, np.datetime64):
            raise ValueError("its alarm is damaged: it belongs to another watch")

    def __repr__(self) -> str:
        each = ", ".join(f"{name} ({kind})" for name, kind in zip(self.names, self.kinds, strict=True))
        confidence = "" if self.confidence is None else f", confidence {self.confidence:.2f}"
        over = "" if self.over is None else f", over at {self.over}"
        return f"Alarm({each} since {self.onset}, raised at {self.time}{confidence}{over})"


def number_of(time: Time) -> int:
    """A time as a number: microseconds since 1970, or the number of a window."""
    return microseconds(time) if isinstance(time, np.datetime64) else int(time)


def bounded_evidence(nats: float) -> float:
    """Evidence that a file and a document can hold, also where there was no window yet.

    >>> bounded_evidence(-math.inf), bounded_evidence(3.5)
    (-700.0, 3.5)
    """
    return min(max(nats, -_MOST_EVIDENCE), _MOST_EVIDENCE)
