"""The rule of a watch: kept in a model, counted on its history, or simulated from the model where there is neither.

In a file the rule is arrays under dotted names, a field of a part each. What is infinite in it is as large as a file
may hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple, get_type_hints
from weakref import WeakKeyDictionary

import numpy as np

from eccaht.archive import check_keys
from eccaht.arrays import Array
from eccaht.data.windows import Windows
from eccaht.incident.quiet import Quiet
from eccaht.incident.usual import simulated
from eccaht.model.counted import Counted
from eccaht.model.model import Model
from eccaht.model.normal import DAY, Normal
from eccaht.stored import LARGEST, check_bounded, check_gram
from eccaht.watch.drill_confidence import WatchConfidence
from eccaht.watch.drill_counts import WatchCounts
from eccaht.watch.history import Rule, rule_of_history
from eccaht.watch.plant import PlantWatch
from eccaht.watch.streams import Streams
from eccaht.watch.wander import AGES

SIMULATED = 3000  # windows
_OF_LAW = ("knots", "knot_scores", "scatter")  # all else is that of the model's normal operation
_RULES: WeakKeyDictionary[Model, Rule] = WeakKeyDictionary()
_TRIED = (10.0, 1e4, 1e8)  # windows to a false alarm, for which a rule must have ascending thresholds


class Drilled(NamedTuple):
    """What drills of a watch counted, see `drill.drill_watch`."""

    counts: WatchCounts
    confidence: WatchConfidence


def plant_watch(model: Model, false_alarm_every: float | str) -> PlantWatch:
    """A new watch of a model by all that it keeps; false_alarm_every: in windows, or a length of time."""
    drilled = drills_of(model)
    confidence = None if drilled is None else drilled.confidence
    return PlantWatch(model, rule_of(model), false_alarm_every=false_alarm_every, confidence=confidence)


def rule_of(model: Model) -> Rule:
    """The rule that a model keeps, or one that is simulated from it, which takes seconds."""
    if model.normal is None:
        raise ValueError("the model does not describe normal operation: calibrate it again")
    if model not in _RULES:  # plants that share a model share its rule
        _RULES[model] = kept(model) or replace(rule_of_history(model, simulated_windows(model)), simulated=True)
    return _RULES[model]


def count_watch(model: Model, windows: Windows) -> Model:
    """The model with the rule that is counted on the windows of its history, as `calibrate_with_windows` gives them."""
    return keeping(model, rule_of_history(model, windows))


def keeping(model: Model, rule: Rule, drilled: Drilled | None = None) -> Model:
    """The model with this rule, and what drills counted by it, instead of its own."""
    header = {"simulated": rule.simulated, "counts": None, "confidence": None}
    if drilled is not None:
        header |= {name: part.header() for name, part in drilled._asdict().items()}
    return replace(model, watched=Counted(header, dict(_flat(rule))))


def kept(model: Model) -> Rule | None:
    """The rule that a model keeps, None if it has none; checked, since a stranger may have written it."""
    if model.watched is None or model.normal is None:
        return None
    header = _header(model.watched)
    arrays = model.watched.arrays()
    rule = replace(_built(Rule, arrays, "", model.normal), simulated=header["simulated"])
    check_keys(arrays, {name for name, _ in _flat(rule)}, "rule of a watch")
    _check(rule, model.normal)
    return rule


def drills_of(model: Model) -> Drilled | None:
    """What drills of the watch a model keeps, None if it has none; checked as well."""
    header = {} if model.watched is None else _header(model.watched)
    if header.get("counts") is None:
        return None
    return Drilled(WatchCounts.build(header["counts"]), WatchConfidence.build(header["confidence"]))


def _header(watched: Counted) -> dict[str, Any]:
    header = watched.header()
    check_keys(header, {"simulated", *Drilled._fields}, "rule of a watch")
    if type(header["simulated"]) is not bool or (header["counts"] is None) != (header["confidence"] is None):
        raise ValueError("its rule of a watch is damaged")
    return header


def simulated_windows(model: Model, count: int = SIMULATED) -> Windows:
    """Windows as the normal operation of a model describes them, about a level that is fixed or daily."""
    normal = model.normal
    assert normal is not None
    seconds: Array = np.arange(count, dtype=np.float64) * model.seconds
    values = simulated(normal, count)
    if normal.level == "daily":
        values = values + normal.level_at(normal.profile, np.mod(seconds, DAY)) - normal.profile[0]
    starts = np.datetime64("1970-01-01", "us") + (seconds * 1e6).astype("timedelta64[us]")
    return Windows(starts, values, model.names, model.seconds, clock=replace(model.clock, zone=None))


def _flat(part: Any, prefix: str = "") -> Iterator[tuple[str, Array]]:
    """The numbers of a part, by their dotted names."""
    for field in fields(part):
        value, name = getattr(part, field.name), f"{prefix}{field.name}"
        if isinstance(value, Normal):
            yield from ((f"{name}.{key}", getattr(value, key)) for key in _OF_LAW)
        elif is_dataclass(value):
            yield from _flat(value, f"{name}.")
        elif field.name != "simulated":
            yield name, np.clip(np.asarray(value, dtype=np.float64), -LARGEST, LARGEST)


def _built(kind: Any, arrays: dict[str, Array], prefix: str, normal: Normal) -> Any:
    """A part from its numbers."""
    hints = get_type_hints(kind)
    parts: dict[str, Any] = {}
    for field in fields(kind):
        hint, name = hints[field.name], f"{prefix}{field.name}"
        if hint is Normal:
            law: dict[str, Any] = {key: arrays[f"{name}.{key}"] for key in _OF_LAW}
            parts[field.name] = replace(normal, **law)
        elif is_dataclass(hint):
            parts[field.name] = _built(hint, arrays, f"{name}.", normal)
        elif hint in (int, float):
            parts[field.name] = hint(arrays[name].item())
        elif field.name != "simulated":
            array = arrays[name]
            check_bounded(array, "rule of a watch")
            parts[field.name] = (
                array if kind is Quiet else np.where(np.abs(array) >= LARGEST, np.copysign(np.inf, array), array)
            )
    return kind(**parts)


def _check(rule: Rule, normal: Normal) -> None:
    """Refuse a rule that does not fit the sensors, or whose thresholds make no sense."""
    passes, damaged = rule.passes, ValueError("its rule of a watch is damaged")
    shapes = rule.second.shape, rule.moves.shape
    if rule.quiet.size != normal.size or shapes != ((2, normal.size, normal.size), (len(AGES), normal.size)):
        raise ValueError("its rule of a watch is of other sensors")
    if not np.isfinite(rule.moves).all() or (rule.moves < 0.0).any():
        raise damaged
    if (np.diff(passes.levels) <= 0).any() or (np.diff(passes.counts) > 0).any() or passes.counts[-1] <= 0:
        raise damaged
    for moments in rule.second:
        check_gram(moments, "second moments")
    look = Streams(normal, rule.law, rule.second).update(normal.profile[0], 0.0)
    with np.errstate(all="ignore"):
        statistic = rule.statistic(look)
        found = [math.log(every) <= passes.log_time(passes.threshold(every)) + 1e-6 for every in _TRIED]
        thresholds = np.array([passes.threshold(every) for every in _TRIED])
    if not np.isfinite(statistic).all() or not np.isfinite(thresholds).all() or not all(found):
        raise damaged
    if (np.diff(thresholds) < 0).any() or not np.isfinite(rule.calm) or passes.windows < 1 or passes.number < 1:
        raise damaged
