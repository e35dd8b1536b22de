"""`Model.identify`: from data as users have them to an answer that knows how they were read."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import as_positive, check_alpha
from eccaht.base.clock import between, check_limits
from eccaht.base.presentation.text import shown_progress
from eccaht.plants.answer import Answer
from eccaht.plants.data.source import Arrays
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.investigate import Number, investigate_incident
from eccaht.plants.model.model import Model, Notation
from eccaht.plants.watch.session import false_alarm_every

_READ = 0.4  # share of the time that reading takes, about


def identify(
    model: Model,
    data: Any,
    *,
    start: Any,
    stop: Any,
    anomalies: Number,
    least: float | None,
    alpha: float,
    false_alarms: str | None,
    missing: Literal["refuse", "allow"],
    notation: Notation,
    names: Sequence[str] | None,
    times: ArrayLike | None,
    progress: bool,
) -> Answer:
    """What `Model.identify` returns; the options are described there."""
    options: dict[str, Any] = {"alpha": check_alpha(alpha)}
    if false_alarms is not None:
        options["every"] = false_alarm_every(false_alarms, model, "false_alarms")
    options |= {} if least is None else {"least": as_positive(least, "least")}
    options |= {} if anomalies is None else {"number": anomalies}
    given = data_of(model, data, names, times)
    with shown_progress("reading the data", 1.0, shown=progress) as bar:
        windows, first = _read(model, given, start, stop, missing, notation)
        sensors = len(windows.names)
        _check_number(anomalies, sensors)
        bar.stage(f"looking for incidents of {sensors} sensors", _READ)
        answer = investigate_incident(model, windows, start=first, moved=windows.moved(start), **options)
    limits = {name: None if time is None else str(time) for name, time in (("start", start), ("stop", stop))}
    settings: dict[str, Any] = {**limits, "missing": missing}
    number = list(anomalies) if isinstance(anomalies, tuple) else anomalies
    settings |= {"anomalies": number, "least": least, "alpha": alpha, "sensors": sensors}
    about = [*_files(data), f"Windows of {windows.clock.length(windows.seconds)}"]
    notes = tuple(dict.fromkeys([*windows.notes, *answer.notes]))
    return replace(answer, settings=settings, about=tuple(about), notes=notes)


def data_of(model: Model, data: Any, names: Sequence[str] | None, times: ArrayLike | None) -> Any:
    """The data; an array has the columns of the history, all or those that are sensors."""
    if names is None and getattr(data, "ndim", 0) == 2 and isinstance(data, np.ndarray):
        columns = [column.name for column in model.columns if column.reason != "time"]
        names = {len(columns): columns, len(model.names): list(model.names)}.get(data.shape[1])
        if names is None:
            raise ValueError(
                f"the array has {data.shape[1]} columns and the model {len(model.names)} sensors: give the names"
            )
    return as_data(data, names, times)


def as_data(data: Any, names: Sequence[str] | None, times: ArrayLike | None) -> Any:
    """Data as they are read; an array with its names and times."""
    if isinstance(data, np.ndarray):
        return Arrays(data, times, names)
    if names is not None or times is not None:
        raise ValueError("names and times are for arrays: files and frames have their own")
    return data


def _read(
    model: Model, data: Any, start: Any, stop: Any, missing: Literal["refuse", "allow"], notation: Notation
) -> tuple[Windows, int | None]:
    """Windows of the sensors that the data have, and the first one to look at.

    The windows before `start` are read too: they say what was normal just before.
    """
    check_limits(start, stop)
    source = notation.recorded(model, data)
    windows = model.prepare(source, stop=stop, missing=missing, bad="skip", notation=notation)
    notes = list(windows.notes)
    if absent := [name for name in model.names if source.lacks(name)]:
        notes.append(f"not looked at, because the data do not have them: {', '.join(absent)}")
        windows = windows.of([name for name in model.names if name not in absent])
    if unknown := source.unknown([column.name for column in model.columns]):
        notes.append(f"ignored, because the model does not know them: {', '.join(unknown)}")
    if (zone := windows.clock.zone) is not None and model.clock.zone is None:
        shown = f"times are shown in {zone}; in Python, onset and end are UTC"
        notes.append(f"the data have a time zone and the history has none: {shown}")
    since, _ = between(windows.clock, start, stop)
    first = 0 if since is None else int(np.searchsorted(windows.starts, since))
    if first >= len(windows.starts):
        raise ValueError(f"the data have no row between {start or 'the beginning'} and {stop or 'the end'}")
    return replace(windows, notes=tuple(notes)), None if since is None else first


def _check_number(number: Number, sensors: int) -> None:
    if number is None:
        return
    counts = number if isinstance(number, tuple) else (number, number)
    if len(counts) != 2 or not all(type(count) is int for count in counts) or not 0 <= counts[0] <= counts[1]:
        raise ValueError(
            f"anomalies is a number of sensors such as 2, or the least and the most such as (1, 4), not {number!r:.60}"
        )
    if sensors <= (most := counts[1]):
        raise ValueError(f"a number of {most} anomalies needs more than the {sensors} sensors that are there")


def _files(data: Any) -> list[str]:
    """For people: the names of the files."""
    several = [data] if isinstance(data, str | PathLike) else data if isinstance(data, list | tuple) else []
    return [f"Data: {', '.join(Path(path).name for path in several)}"] if several else []
