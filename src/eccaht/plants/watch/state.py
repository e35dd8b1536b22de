"""The state of a watch of a plant as plain numbers, and again from those of an untrusted file; the model is kept apart.

`session.py` puts it into the file of `eccaht watch` and of the service, `watch.py` into that of `eccaht.Watch`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import as_count, as_number, check_bounded
from eccaht.base.clock import from_microseconds, microseconds
from eccaht.base.files import check_keys, check_like, part_of
from eccaht.plants.data.windows import MOST_DECIMALS
from eccaht.plants.incident.naming import STANDING
from eccaht.plants.model.local import Before
from eccaht.plants.model.model import Model
from eccaht.plants.watch.plant import LARGEST, Decimals, Followed, PlantWatch, Recent
from eccaht.streams.watch.alarm import built_alarms, stored_alarms

_COUNTS = ("time", "n_late", "_missing")
_KEYS = {
    *("false_alarm_every", "counts", "passed", "start", "standing", "follow", "alarm", "past", "changed"),
    *("decimals", "places"),
}
_PARTS = {"recent", "engine", "follow", "alarm", "past"}


def plant_parts(watch: PlantWatch) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """All but the model as values of JSON and arrays, of which `built_plant` makes it again."""
    follow = watch._follow
    header: dict[str, Any] = {
        "false_alarm_every": watch.false_alarm_every,
        "counts": [getattr(watch, name) for name in _COUNTS],
        "passed": watch._passed if math.isfinite(watch._passed) else None,
        "start": None if watch.start is None else microseconds(watch.start),
        "standing": [[k, kind, since] for k, (kind, since) in watch.standing.items()],
        "follow": None if follow is None else [follow.raised, follow.onset],
        "changed": watch.changed,
        "decimals": watch._decimals.known,
        "places": watch._decimals.so_far.tolist(),
    }
    arrays = {f"recent.{name}": array for name, array in _windows(watch._recent).items()}
    arrays |= {f"engine.{name}": array for name, array in watch.engine.state().items()}
    if follow is not None:
        arrays |= {f"follow.{name}": array for name, array in follow.before._asdict().items()}
    alarms, of_alarms = stored_alarms(watch.alarm, watch.past)
    return header | alarms, arrays | of_alarms


def built_plant(model: Model, header: Any, arrays: dict[str, NDArray[Any]]) -> PlantWatch:
    """From the header and arrays of an untrusted file."""
    check_keys(header, _KEYS, "state")
    for name in arrays:
        if name.partition(".")[0] not in _PARTS:
            raise ValueError(f"it has an unknown array {name!r:.40}")
    every = as_number(header["false_alarm_every"], "the false-alarm rate")
    decimals = _decimals(model, header["decimals"], header["places"])
    watch = PlantWatch(model, false_alarm_every=every, decimals=decimals.known)
    watch._decimals = decimals
    for name, count in zip(_COUNTS, header["counts"], strict=True):
        setattr(watch, name, as_count(count, "a count", least=0))
    if type(header["changed"]) is not bool:
        raise ValueError("its counts are damaged")
    watch.changed = header["changed"]
    watch._passed = -math.inf if header["passed"] is None else as_number(header["passed"], "the evidence")
    _restore_windows(watch._recent, part_of(arrays, "recent"))
    watch.engine.restore(part_of(arrays, "engine"))
    watch.start = None if header["start"] is None else from_microseconds(header["start"])
    for k, kind, since in header["standing"]:
        place, window = as_count(k, "a sensor", least=0), as_count(since, "a window", least=0)
        if kind not in STANDING or place >= watch.normal.size or window > watch.time or place in watch.standing:
            raise ValueError("its record of standstills is damaged")
        watch.standing[place] = (kind, window)
    watch._follow = _followed(watch, header["follow"], part_of(arrays, "follow"))
    watch.alarm, watch.past = built_alarms(header, arrays, model.names, dated=watch._recent.dated)
    seen = watch._recent.count or watch.alarm is not None or watch.past is not None
    undated = seen and watch._recent.dated != (watch.start is not None)
    if undated or (watch.alarm is None) != (watch._follow is None):
        raise ValueError("its alarms are damaged")
    return watch


def with_rate(watch: PlantWatch, false_alarm_every: float) -> PlantWatch:
    """The same from here on with another false-alarm rate; an alarm that is on stays on."""
    header, arrays = plant_parts(watch)
    return built_plant(watch.model, header | {"false_alarm_every": false_alarm_every}, arrays)


def _windows(recent: Recent) -> dict[str, NDArray[Any]]:
    counts = np.array([recent.count, recent.dated], dtype=np.int64)
    values, wrong = recent.values.astype(np.float64), recent.wrong.astype(np.int64)
    return {"values": values, "wrong": wrong, "times": recent.times, "counts": counts}


def _restore_windows(recent: Recent, arrays: dict[str, NDArray[Any]]) -> None:
    check_like(arrays, _windows(recent), "windows")
    (count, dated), wrong, values = arrays["counts"].tolist(), arrays["wrong"], arrays["values"]
    check_bounded(values[~np.isnan(values)], "windows", 2 * LARGEST)
    if count < 0 or dated not in (0, 1) or not np.isin(wrong, (0, 1)).all():
        raise ValueError("its windows are damaged")
    recent.values, recent.wrong, recent.times = values.astype(np.float32), wrong.astype(bool), arrays["times"].copy()
    recent.count, recent.dated = count, bool(dated)


def _decimals(model: Model, known: Any, so_far: Any) -> Decimals:
    decimals = Decimals(model, known)
    if known is not None:
        check_keys(known, set(model.names) & set(known), "decimals")
        _check_places([places for places in known.values() if places is not None], MOST_DECIMALS)
    _check_places(so_far, MOST_DECIMALS + 1)
    if len(so_far) != len(model.names):
        raise ValueError("its decimals are damaged")
    decimals.so_far = np.array(so_far, dtype=np.int64)
    return decimals


def _check_places(numbers: Any, most: int) -> None:
    if not isinstance(numbers, list) or not all(type(number) is int and 0 <= number <= most for number in numbers):
        raise ValueError("its decimals are damaged")


def _followed(watch: PlantWatch, header: Any, arrays: dict[str, NDArray[Any]]) -> Followed | None:
    check_keys(arrays, set() if header is None else set(Before._fields), "alarm")
    if header is None:
        return None
    before, shape = Before(**arrays), (watch.normal.size,)
    raised, onset = (as_count(number, "a window", least=0) for number in header)
    if onset > raised or raised > watch.time or any(a.shape != shape or a.dtype != np.float64 for a in before):
        raise ValueError("its alarm is damaged")
    check_bounded(before.level, "alarm")
    check_bounded(before.last[~np.isnan(before.last)], "alarm")
    return Followed(raised, onset, before)
