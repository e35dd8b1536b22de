"""How many false alarms are bearable, as people write it, and what is promised of them."""

from __future__ import annotations

import re

from eccaht.data.durations import parse_duration
from eccaht.model.model import Model
from eccaht.presentation.text import counted
from eccaht.watch.plant import PlantWatch

BY_TIME, BY_COUNT = "1/30d", "1/5000w"  # what is promised unless asked otherwise
_RATE = re.compile(r"\s*([1-9]\d{0,5})\s*/\s*(.+?)\s*")
_WINDOWS = re.compile(r"([1-9]\d{0,11})\s*w")


def promised(text: str | None, model: Model, what: str = "--false-alarms") -> float:
    """The mean time to a false alarm, in windows of the model; what: messages call the text so.

    >>> [_RATE.fullmatch(text) is not None for text in ("1/30d", "2/1000w", "30d")]
    [True, True, False]
    """
    clock = model.clock
    text = text or (BY_COUNT if clock.counted else BY_TIME)
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{what} {text!r} is no rate: write 1/30d for one a month, 1/5000w for windows")
    windows = _WINDOWS.fullmatch(match[2])
    if windows is None and clock.counted:
        raise ValueError(f"{what} {text!r}: rows of this model have no times, write 1/5000w for windows")
    seconds = None if windows is not None else parse_duration(match[2], what)
    every = (float(windows[1]) if windows is not None else seconds / model.seconds) / int(match[1])  # type: ignore[operator]
    if every < 1.0:
        raise ValueError(f"{what} {text!r} is more than one in each window of {clock.length(model.seconds)}")
    return every


def said_promise(watch: PlantWatch) -> str:
    """What is promised of false alarms, and what that rests on."""
    windows = counted(watch.rule.passes.windows, "window")
    basis = {
        "counted": f"counted on {windows} of the history",
        "extrapolated": f"extrapolated from {windows} of the history, in which nothing as rare could be counted",
        "simulated": "simulated from the model, not counted on its history: calibrate again to count it",
    }
    return f"at most one false alarm in {watch.false_alarm_every:.6g} windows in the mean, {basis[watch.basis]}"
