"""The state of a watch of a model as plain numbers; the model itself, with its rule, is kept elsewhere."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from eccaht.archive import check_keys
from eccaht.arrays import Array, as_count, as_number
from eccaht.model.model import Model
from eccaht.model.standstill import Kind
from eccaht.stored import check_bounded
from eccaht.watch.alarm_state import built_alarm, number_of, stored_alarm, time_of
from eccaht.watch.kept import plant_watch
from eccaht.watch.plant import PlantWatch
from eccaht.watch.recent import Followed
from eccaht.watch.suspects import Before

_COUNTS = ("time", "n_late", "_missing", "_calm")
_SENSORS = ("_repeats", "_silent", "_value", "_still")
_KEYS = {"false_alarm_every", "counts", "statistic", "start", "standing", "follow", "alarm", "past"}
_PARTS = ("recent", "streams", "follow", "alarm", "past")


def plant_state(watch: PlantWatch) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """A watch as values of JSON and arrays."""
    follow = watch._follow
    header: dict[str, Any] = {
        "false_alarm_every": watch.false_alarm_every,
        "counts": [getattr(watch, name) for name in _COUNTS],
        "statistic": watch._statistic,
        "start": None if watch.start is None else number_of(watch.start),
        "standing": [[k, kind, since] for k, (kind, since) in watch.standing.items()],
        "follow": None if follow is None else [follow.raised, follow.onset, follow.length],
    }
    arrays = {name: getattr(watch, name) for name in _SENSORS}
    arrays |= {f"recent.{name}": array for name, array in watch._recent.state().items()}
    arrays |= {f"streams.{name}": array for name, array in watch.streams.state().items()}
    if follow is not None:
        arrays |= {f"follow.{name}": array for name, array in follow.before._asdict().items()}
    for which, alarm in (("alarm", watch.alarm), ("past", watch.past)):
        header[which], parts = stored_alarm(which, alarm)
        arrays |= parts
    return header, arrays


def built_plant(model: Model, header: Any, arrays: dict[str, NDArray[Any]]) -> PlantWatch:
    """The watch that goes on from there, or what is wrong with it."""
    check_keys(header, _KEYS, "state")
    parts: dict[str, dict[str, NDArray[Any]]] = {part: {} for part in (*_PARTS, "")}
    for name, array in arrays.items():
        part, _, rest = name.partition(".") if "." in name else ("", "", name)
        parts[part][rest] = array
    check_keys(parts[""], set(_SENSORS), "state")
    watch = plant_watch(model, as_number(header["false_alarm_every"], "the promise"))
    counts = header["counts"]
    if not isinstance(counts, list) or len(counts) != len(_COUNTS):
        raise ValueError("its counts are damaged")
    for name, count in zip(_COUNTS, counts, strict=True):
        setattr(watch, name, as_count(count, "a count", least=0))
    for name in _SENSORS:
        setattr(watch, name, _by_sensor(name, parts[""][name], len(model.names)))
    watch._statistic = as_number(header["statistic"], "the statistic")
    watch._recent.restore(parts["recent"])
    watch.streams.restore(parts["streams"])
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


def _by_sensor(name: str, array: NDArray[Any], size: int) -> Array:
    """One number for each sensor; only the last reading may be missing."""
    if array.shape != (size,) or array.dtype != np.float64:
        raise ValueError("its record of standstills is damaged")
    known = array[~np.isnan(array)] if name == "_value" else array
    check_bounded(known, "record of standstills")
    if name != "_value" and (array < 0).any():
        raise ValueError("its record of standstills is damaged")
    return array


def _standing(listed: Any, watch: PlantWatch) -> dict[int, tuple[str, int]]:
    found = {}
    for k, kind, since in listed:
        sensor, window = as_count(k, "a sensor", least=0), as_count(since, "a window", least=0)
        if kind not in get_args(Kind) or sensor >= watch.normal.size or window > watch.time or sensor in found:
            raise ValueError("its record of standstills is damaged")
        found[sensor] = (kind, window)
    return found


def _follow(header: Any, arrays: dict[str, NDArray[Any]], watch: PlantWatch) -> Followed | None:
    """The windows before the alarm that goes on."""
    if header is None:
        check_keys(arrays, set(), "alarm")
        return None
    check_keys(arrays, set(Before._fields), "alarm")
    before, size = Before(**arrays), watch.normal.size
    raised, onset, length = (as_count(number, "a window", least=0) for number in header)
    good = before.values.ndim == 2 and before.values.shape[1] == size and len(before.values) <= watch.normal.width
    good = good and before.recent.shape == before.given.shape == (size,) and onset <= raised <= watch.time
    if not good or not all(array.dtype == np.float64 and not np.isinf(array).any() for array in before):
        raise ValueError("its alarm is damaged")
    if not ((before.recent > 0) & (before.given > 0)).all():
        raise ValueError("its alarm is damaged")
    return Followed(raised, onset, length, before)
