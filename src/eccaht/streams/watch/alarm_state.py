"""Alarms in the file of a watch: plain numbers, checked when they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from eccaht.base.archive import check_keys
from eccaht.base.stored import check_bounded
from eccaht.streams.watch.alarm import Alarm, Kind, Time
from eccaht.streams.watch.assumption import CAUTION

_TIMES = ("time", "onset", "first", "last")
_KEYS = {*_TIMES, "over", "kinds", "confidence", "cautions"}
_PARTS = ("decision", "sizes", "beliefs")
_FARTHEST = 2**60


def number_of(time: Time) -> int:
    """A time as a number: microseconds since 1970, or the number of a window."""
    return int(time.astype("datetime64[us]").astype(np.int64)) if isinstance(time, np.datetime64) else int(time)


def time_of(number: Any, dated: bool) -> Time:
    if type(number) is not int or abs(number) > _FARTHEST or not (dated or number >= 0):
        raise ValueError("a time is damaged")
    return np.datetime64(number, "us") if dated else number


def stored_alarm(which: str, alarm: Alarm | None) -> tuple[dict[str, Any] | None, dict[str, NDArray[Any]]]:
    """An alarm as values of JSON, and its arrays by name."""
    if alarm is None:
        return None, {}
    times = (alarm.time, alarm.onset, *alarm.onset_interval)
    header: dict[str, Any] = dict(zip(_TIMES, map(number_of, times), strict=True))
    header["over"] = None if alarm.over is None else number_of(alarm.over)
    header |= {"kinds": list(alarm.kinds), "confidence": alarm.confidence}
    if alarm.cautions:  # absent from files of alarms without any, as they always were
        header["cautions"] = list(alarm.cautions)
    return header, {f"{which}.{name}": getattr(alarm, name) for name in _PARTS}


def built_alarm(
    which: str, header: Any, arrays: dict[str, NDArray[Any]], names: Sequence[str], *, dated: bool
) -> Alarm | None:
    """The alarm that a file kept; names: of all streams; dated: whether its times are dates."""
    parts = {name.removeprefix(f"{which}."): array for name, array in arrays.items() if name.startswith(f"{which}.")}
    if header is None:
        check_keys(parts, set(), which)
        return None
    check_keys({"cautions": [], **header} if isinstance(header, dict) else header, _KEYS, which)
    check_keys(parts, set(_PARTS), which)
    time, onset, first, last = (time_of(header[name], dated) for name in _TIMES)
    decision, sizes, beliefs = (parts[name] for name in _PARTS)
    kinds, confidence, cautions = header["kinds"], header["confidence"], header.get("cautions", [])
    good = decision.dtype.kind == "i" and decision.ndim == 1 and decision.size > 0
    good = good and len(set(decision.tolist())) == decision.size and 0 <= decision.min() <= decision.max() < len(names)
    good = good and sizes.shape == decision.shape and beliefs.shape == (len(names),)
    good = (
        good and bool(((beliefs >= 0) & (beliefs <= 1)).all()) and header["first"] <= header["onset"] <= header["last"]
    )
    good = good and isinstance(kinds, list) and len(kinds) == decision.size and set(kinds) <= set(get_args(Kind))
    good = good and cautions in ([], [CAUTION])
    if not good or not (confidence is None or (isinstance(confidence, float) and 0.0 <= confidence <= 1.0)):
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
        over=None if header["over"] is None else time_of(header["over"], dated),
        cautions=tuple(cautions),
    )
