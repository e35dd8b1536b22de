"""The state of a watch of a plant, and again from that of an untrusted file; the model is kept apart.

`session.py` puts it into the file of `eccaht watch` and of the service.
"""

from copy import deepcopy
from typing import Any, NamedTuple

from eccaht.base.arrays import as_number
from eccaht.base.codec import Field, Fields, State, built, restore, state_of
from eccaht.base.files import check_keys
from eccaht.plants.incident.alarms import STANDING
from eccaht.plants.model.model import Model
from eccaht.plants.watch.active import ReadingPlan
from eccaht.plants.watch.plant import KEPT, Decimals, PlantWatch


class _Standstill(NamedTuple):
    """A sensor that is stuck, silent or out of range, and the window since which it is."""

    sensor: int
    kind: str
    since: int


_STANDSTILL: Fields = (Field("sensor", (), int), Field("kind", (), str, among=STANDING), Field("since", (), int))


def plant_state(watch: PlantWatch) -> State:
    """All but the model, of which `built_plant` makes it again."""
    standing = [_Standstill(k, kind, since) for k, (kind, since) in watch.standing.items()]
    return {
        "false_alarm_every": watch.false_alarm_every,
        "plan": None if watch.plan is None else state_of(watch.plan),
        "decimals": state_of(watch._decimals),
        "standing": [state_of(each, _STANDSTILL) for each in standing],
        "state": state_of(watch),
    }


def built_plant(model: Model, state: Any) -> PlantWatch:
    """From the state in an untrusted file."""
    check_keys(state, {"false_alarm_every", "plan", "decimals", "standing", "state"}, "watch")
    every, sizes = as_number(state["false_alarm_every"], "the false-alarm rate"), {"K": len(model.names)}
    decimals = Decimals(model)
    restore(decimals, state["decimals"], sizes, what="decimals")
    if decimals.known is not None and not set(decimals.known) <= set(model.names):
        raise ValueError("its decimals are damaged: they are of other sensors")
    plan = None if state["plan"] is None else built(ReadingPlan, state["plan"], sizes, what="plan")
    watch = PlantWatch(model, false_alarm_every=every, decimals=decimals.known, plan=plan)
    watch._decimals = decimals
    restore(watch, state["state"], sizes)
    for each in state["standing"]:
        sensor, kind, since = built(_Standstill, each, sizes, _STANDSTILL)
        if sensor >= watch.normal.size or since > watch.time or sensor in watch.standing:
            raise ValueError("its record of standstills is damaged")
        watch.standing[sensor] = (kind, since)
    _check(watch)
    return watch


def _check(watch: PlantWatch) -> None:
    if len(watch._recent.times) != KEPT:
        raise ValueError("its windows are damaged: they are too few, or too many")
    follow, dated = watch._follow, watch._recent.dated
    if (watch.alarm is None) != (follow is None) or (follow and not follow.onset <= follow.raised <= watch.time):
        raise ValueError("its alarm is damaged: it is not followed from its onset on")
    for alarm in (watch.alarm, watch.past):
        if alarm is not None:
            alarm.check_of(watch.model.names, dated=dated, over=alarm is watch.past)
    seen = watch._recent.count or watch.alarm is not None or watch.past is not None
    if seen and dated != (watch.start is not None):
        raise ValueError("its windows are damaged: only some have times")


def with_rate(watch: PlantWatch, false_alarm_every: float) -> PlantWatch:
    """The same from here on with another false-alarm rate; an alarm that is on stays on."""
    return built_plant(watch.model, deepcopy(plant_state(watch)) | {"false_alarm_every": false_alarm_every})
