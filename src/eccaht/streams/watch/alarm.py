"""What a watch says of a fault, whatever is watched: the `Alarm`, and how a file of a watch keeps it.

Where alarms are decided: `steps.py` beside this for a problem, `plants/incident/alarms.py` for a plant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index, check_bounded
from eccaht.base.clock import from_microseconds, microseconds
from eccaht.base.files import check_keys, part_of

State = Literal["quiet", "suspicious", "alarm"]
Kind = Literal["step", "drift", "noise", "replay", "stuck", "silent", "range", "moved", "free"]
Time = np.datetime64 | int
SUSPICIOUS = 0.1  # evidence
CAUTION = (
    "the readings vary more than the problem says: false alarms are more frequent than false_alarm_every; "
    "give the problem degrees_of_freedom= (heavy tails) or estimated_from= (windows of the estimate)"
)
_TIMES = ("time", "onset", "first", "last")
_KEYS = {*_TIMES, "over", "kinds", "confidence", "cautions"}
_ARRAYS = ("decision", "sizes", "beliefs")


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

    def __repr__(self) -> str:
        each = ", ".join(f"{name} ({kind})" for name, kind in zip(self.names, self.kinds, strict=True))
        confidence = "" if self.confidence is None else f", confidence {self.confidence:.2f}"
        over = "" if self.over is None else f", over at {self.over}"
        return f"Alarm({each} since {self.onset}, raised at {self.time}{confidence}{over})"


def number_of(time: Time) -> int:
    """A time as a number: microseconds since 1970, or the number of a window."""
    return microseconds(time) if isinstance(time, np.datetime64) else int(time)


def stored_alarms(alarm: Alarm | None, past: Alarm | None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The alarm of a watch and the last one that is over, as values of JSON and arrays."""
    header: dict[str, Any] = {"alarm": None, "past": None}
    arrays: dict[str, NDArray[Any]] = {}
    for which, one in (("alarm", alarm), ("past", past)):
        if one is not None:
            times = (one.time, one.onset, *one.onset_interval)
            header[which] = dict(zip(_TIMES, map(number_of, times), strict=True)) | {
                "over": None if one.over is None else number_of(one.over),
                "kinds": list(one.kinds),
                "confidence": one.confidence,
            }
            if one.cautions:  # absent from files of alarms without any, as they always were
                header[which]["cautions"] = list(one.cautions)
            arrays |= {f"{which}.{name}": getattr(one, name) for name in _ARRAYS}
    return header, arrays


def built_alarms(
    header: dict[str, Any], arrays: dict[str, NDArray[Any]], names: Sequence[str], *, dated: bool
) -> tuple[Alarm | None, Alarm | None]:
    """Both again from an untrusted file; names: of all streams; dated: whether times are dates."""
    alarm, past = (
        _built(which, header[which], part_of(arrays, which), names, dated=dated) for which in ("alarm", "past")
    )
    if past is not None and past.over is None:
        raise ValueError("its alarms are damaged")
    return alarm, past


def _built(
    which: str, header: Any, arrays: dict[str, NDArray[Any]], names: Sequence[str], *, dated: bool
) -> Alarm | None:
    check_keys(arrays, set() if header is None else set(_ARRAYS), which)
    if header is None:
        return None
    check_keys({"cautions": [], **header} if isinstance(header, dict) else header, _KEYS, which)
    time, onset, first, last = (_time(header[name], dated) for name in _TIMES)
    decision, sizes, beliefs = (arrays[name] for name in _ARRAYS)
    kinds, confidence, cautions = header["kinds"], header["confidence"], header.get("cautions", [])
    good = (
        (decision.dtype.kind == "i" and decision.ndim == 1 and decision.size > 0)
        and len(set(decision.tolist())) == decision.size
        and 0 <= decision.min() <= decision.max() < len(names)
        and (sizes.shape == decision.shape and beliefs.shape == (len(names),))
        and bool(((beliefs >= 0) & (beliefs <= 1)).all())
        and header["first"] <= header["onset"] <= header["last"]
        and (isinstance(kinds, list) and len(kinds) == decision.size and set(kinds) <= set(get_args(Kind)))
        and (confidence is None or (isinstance(confidence, float) and 0.0 <= confidence <= 1.0))
        and cautions in ([], [CAUTION])
    )
    if not good:
        raise ValueError(f"its {which} is damaged")
    check_bounded(sizes[~np.isnan(sizes)], "sizes")
    return Alarm(
        time=time,
        onset=onset,
        onset_interval=(first, last),
        decision=decision.astype(np.intp),
        names=tuple(names[k] for k in decision.tolist()),
        sizes=sizes,
        kinds=tuple(kinds),
        beliefs=beliefs,
        confidence=confidence,
        over=None if header["over"] is None else _time(header["over"], dated),
        cautions=tuple(cautions),
    )


def _time(number: Any, dated: bool) -> Time:
    time = from_microseconds(number)
    if not dated and number < 0:
        raise ValueError("a time is damaged")
    return time if dated else int(number)
