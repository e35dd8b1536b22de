"""The state of a watch of a model as plain numbers; the model itself is kept elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.archive import check_keys
from eccaht.base.arrays import as_count, as_number
from eccaht.base.stored import check_bounded
from eccaht.plants.data.resolution import MOST_DECIMALS
from eccaht.plants.incident.recording import STANDING
from eccaht.plants.model.local import Before
from eccaht.plants.model.model import Model
from eccaht.plants.watch.plant import Followed, PlantWatch
from eccaht.streams.watch.alarm_state import built_alarm, number_of, stored_alarm, time_of

_COUNTS = ("time", "n_late", "_missing")
_KEYS = {
    *("false_alarm_every", "counts", "passed", "start", "standing", "follow", "alarm", "past", "changed"),
    *("decimals", "places"),
}
_PARTS = ("recent", "engine", "follow", "alarm", "past")


def plant_state(watch: PlantWatch) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """A watch as values of JSON and arrays."""
    follow = watch._follow
    header: dict[str, Any] = {
        "false_alarm_every": watch.false_alarm_every,
        "counts": [getattr(watch, name) for name in _COUNTS],
        "passed": watch._passed if math.isfinite(watch._passed) else None,
        "start": None if watch.start is None else number_of(watch.start),
        "standing": [[k, kind, since] for k, (kind, since) in watch.standing.items()],
        "follow": None if follow is None else [follow.raised, follow.onset],
        "changed": watch.changed,
        "decimals": watch.decimals,
        "places": watch._places.tolist(),
    }
    arrays = {f"recent.{name}": array for name, array in watch._recent.state().items()}
    arrays |= {f"engine.{name}": array for name, array in watch.engine.state().items()}
    if follow is not None:
        arrays |= {f"follow.{name}": array for name, array in follow.before._asdict().items()}
    for which, alarm in (("alarm", watch.alarm), ("past", watch.past)):
        header[which], parts = stored_alarm(which, alarm)
        arrays |= parts
    return header, arrays


def built_plant(model: Model, header: Any, arrays: dict[str, NDArray[Any]]) -> PlantWatch:
    check_keys(header, _KEYS, "state")
    parts: dict[str, dict[str, NDArray[Any]]] = {part: {} for part in _PARTS}
    for name, array in arrays.items():
        part, _, rest = name.partition(".")
        if part not in parts:
            raise ValueError(f"it has an unknown array {name!r:.40}")
        parts[part][rest] = array
    every = as_number(header["false_alarm_every"], "the false-alarm rate")
    watch = PlantWatch(model, false_alarm_every=every, decimals=_decimals(header["decimals"], model))
    counts = header["counts"]
    if not isinstance(counts, list) or len(counts) != len(_COUNTS) or type(header["changed"]) is not bool:
        raise ValueError("its counts are damaged")
    for name, count in zip(_COUNTS, counts, strict=True):
        setattr(watch, name, as_count(count, "a count", least=0))
    watch.changed = header["changed"]
    watch._places = _places(header["places"], model)
    watch._passed = -math.inf if header["passed"] is None else as_number(header["passed"], "the evidence")
    watch._recent.restore(parts["recent"])
    watch.engine.restore(parts["engine"])
    dated = watch._recent.dated
    start = None if header["start"] is None else time_of(header["start"], True)
    watch.start = start if isinstance(start, np.datetime64) else None
    watch.standing = _standing(header["standing"], watch)
    watch._follow = _follow(header["follow"], parts["follow"], watch)
    watch.alarm, watch.past = (
        built_alarm(which, header[which], arrays, model.names, dated=dated) for which in ("alarm", "past")
    )
    if (watch.alarm is None) != (watch._follow is None) or (watch.past is not None and watch.past.over is None):
        raise ValueError("its alarms are damaged")
    return watch


def _decimals(found: Any, model: Model) -> dict[str, int | None] | None:
    if found is None:
        return None
    good = isinstance(found, dict) and set(found) <= set(model.names)
    if not good or not all(n is None or (type(n) is int and 0 <= n <= MOST_DECIMALS) for n in found.values()):
        raise ValueError("its decimals are damaged")
    return dict(found)


def _places(found: Any, model: Model) -> NDArray[np.int64]:
    good = isinstance(found, list) and len(found) == len(model.names)
    if not good or not all(type(n) is int and 0 <= n <= MOST_DECIMALS + 1 for n in found):
        raise ValueError("its decimals are damaged")
    return np.array(found, dtype=np.int64)


def _standing(listed: Any, watch: PlantWatch) -> dict[int, tuple[str, int]]:
    found = {}
    for k, kind, since in listed:
        sensor, window = as_count(k, "a sensor", least=0), as_count(since, "a window", least=0)
        if kind not in STANDING or sensor >= watch.normal.size or window > watch.time or sensor in found:
            raise ValueError("its record of standstills is damaged")
        found[sensor] = (kind, window)
    return found


def _follow(header: Any, arrays: dict[str, NDArray[Any]], watch: PlantWatch) -> Followed | None:
    """The alarm that goes on, and what was before it."""
    if header is None:
        check_keys(arrays, set(), "alarm")
        return None
    check_keys(arrays, set(Before._fields), "alarm")
    before, size = Before(**arrays), watch.normal.size
    raised, onset = (as_count(number, "a window", least=0) for number in header)
    if onset > raised or raised > watch.time or any(a.shape != (size,) or a.dtype != np.float64 for a in before):
        raise ValueError("its alarm is damaged")
    check_bounded(before.level, "alarm")
    check_bounded(before.last[~np.isnan(before.last)], "alarm")
    return Followed(raised, onset, before)
