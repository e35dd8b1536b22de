"""False-alarm rates as people write them, and what a history can carry."""

from __future__ import annotations

import re

import numpy as np

from eccaht.base.durations import parse_duration
from eccaht.base.presentation.text import counted
from eccaht.plants.incident.investigate import usual_rate
from eccaht.plants.model.model import Model
from eccaht.plants.watch.plant import PlantWatch

_RATE = re.compile(r"\s*([1-9]\d{0,5})\s*/\s*(.+?)\s*")
_WINDOWS = re.compile(r"([1-9]\d{0,11})\s*w")


def false_alarm_every(text: str | None, model: Model, what: str = "--false-alarms") -> float:
    """The mean time to a false alarm, in windows of the model; what: messages call the text so.

    Without a text it is what the history can carry: three times its length, and at most 30 days.

    >>> [_RATE.fullmatch(text) is not None for text in ("1/30d", "2/1000w", "30d")]
    [True, True, False]
    """
    clock = model.clock
    if text is None:
        return usual_rate(model.n_windows, None if clock.counted else model.seconds)
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


def rate_line(watch: PlantWatch) -> str:
    """The false-alarm rate of a watch, what it rests on, and what it costs where the history cannot carry it."""
    every, clock, seconds = watch.false_alarm_every, watch.model.clock, watch.model.seconds
    length = counted(round(every), "window") if clock.counted else _days(every * seconds)
    rate = f"at most one false alarm in {length} in the mean"
    windows = counted(int(watch.normal.peaks.windows), "window")
    usual = usual_rate(watch.model.n_windows, None if clock.counted else seconds)
    if every <= 1.01 * usual:
        return f"{rate}, estimated on {windows} of the history"
    return (
        f"{rate}, extrapolated from {windows} of the history, which can carry one in "
        f"{counted(round(usual), 'window') if clock.counted else _days(usual * seconds)}; a step of "
        f"{smallest_step(watch):.2g} spreads beyond what the others predict would still be found in its first window"
    )


def smallest_step(watch: PlantWatch) -> float:
    """The step, in spreads of the sensor, that raises an alarm in its first window, for the median sensor."""
    normal = watch.normal
    limit = float(watch.engine.limits[0])
    beyond = np.maximum(limit - normal.tails.base, 0.0) / normal.tails.shape
    return float(np.median(normal.tails.edge * np.exp(beyond) * normal.unit))


def _days(seconds: float) -> str:
    """A length of time in the unit that people would take."""
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} seconds"
