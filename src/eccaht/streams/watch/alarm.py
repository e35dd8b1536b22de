"""What a watch says: where it stands, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from eccaht.base.arrays import Array, Index

State = Literal["quiet", "suspicious", "alarm"]
Kind = Literal["step", "drift", "noise", "replay", "stuck", "silent", "range", "moved", "free"]
Time = np.datetime64 | int
SUSPICIOUS = 0.1  # evidence


@dataclass(frozen=True, eq=False)
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
