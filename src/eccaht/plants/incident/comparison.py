"""New data compared with the history before any answer: resolution, interval, range, columns, gaps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eccaht.base.arrays import Array
from eccaht.base.presentation.text import listed
from eccaht.plants.data.resolution import coarser
from eccaht.plants.data.windows import Windows
from eccaht.plants.model.model import Model
from eccaht.plants.model.normal import Normal

_FASTER, _SLOWER = 0.67, 1.5  # of the history's interval between rows
_OUTSIDE = 0.5  # share of the windows outside of everything in the history that is another operating point
_MORE_GAPS = 0.05  # of the readings, beyond what the history had
_SHOWN = 5  # names in a line


def compare(model: Model, windows: Windows, first: int = 0, last: int | None = None) -> tuple[Normal, list[str]]:
    """Normal operation for data like these, and one line for each way in which they are unlike the history."""
    assert model.normal is not None
    stretch = windows.values[first:last]
    normal, found = resolved(model, windows.decimals)
    return normal, [*found, *_interval(model, windows), *_range(model, stretch), *_gaps(model, stretch)]


def resolved(model: Model, decimals: dict[str, int | None] | None) -> tuple[Normal, list[str]]:
    """Normal operation of readings with so many decimals, and what to say of it; decimals: by sensor."""
    assert model.normal is not None
    history = model.reading.get("decimals") or {}
    if not decimals or not history:
        return model.normal, []
    known = {name: history[name] for name in model.names if name in history and name in decimals}
    compared = coarser(
        known, {name: decimals[name] for name in known}, dict(zip(model.names, model.scale, strict=True))
    )
    if not compared.coarser:
        return model.normal, []
    steps = np.zeros(len(model.names))
    for name in compared.coarser:
        places = decimals[name]
        k = model.names.index(name)
        steps[k] = 0.0 if places is None else 10.0**-places / model.scale[k]
    rows = max(float(model.summary.row_counts[0]), 1.0)  # means of many rows are rounded less
    line = (
        f"the new data are rounded more than the history ({listed(compared.coarser, _SHOWN)}): what rounding adds is "
        "taken as usual; calibrate on a history with the same decimals to be exact"
    )
    return model.normal.rounded(steps / np.sqrt(rows)), [line]


def _interval(model: Model, windows: Windows) -> Iterator[str]:
    usual = float(model.reading.get("interval") or 0.0)
    if windows.interval is None or not usual or model.clock.counted:
        return
    ratio = windows.interval / usual
    if not _FASTER < ratio < _SLOWER:
        length = model.clock.length
        yield (
            f"rows are {length(windows.interval)} apart, in the history {length(usual)}: means of windows vary "
            "otherwise than in the history; calibrate on rows of the same interval"
        )


def _range(model: Model, values: Array) -> Iterator[str]:
    if away := outside_of(model, values):
        yield (
            f"most readings of {listed(away, _SHOWN)} lie outside of everything in the history: a fault, or an "
            "operating point that the history does not have; in that case calibrate on one that has it"
        )


def outside_of(model: Model, values: Array) -> list[str]:
    """Sensors whose readings, (T, K), lie outside of everything in the history most of the time."""
    assert model.normal is not None
    low, high = model.normal.low, model.normal.high
    outside = ((values < low) | (values > high)).sum(axis=0)  # never for NaN
    present = np.maximum((~np.isnan(values)).sum(axis=0), 1)
    return [name for name, share in zip(model.names, outside / present, strict=True) if share > _OUTSIDE]


def _gaps(model: Model, values: Array) -> Iterator[str]:
    missing = np.isnan(values).mean(axis=0)
    usual = np.array([column.imputed for column in model.columns if column.kept])
    more = [name for name, share, was in zip(model.names, missing, usual, strict=True) if share > was + _MORE_GAPS]
    if more:
        yield f"more readings are missing than in the history ({listed(more, _SHOWN)}): what is missing is not judged"
