"""A watch of a model as `events.Watcher`: numbers of windows become times, robust units those of the readings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.plants.data.windows import Sample
from eccaht.plants.model.model import Model
from eccaht.plants.watch.events import ActiveAlarm, Still
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.plant_state import built_plant, plant_state
from eccaht.streams.watch.alarm import State


class WatchedPlant:
    """A `PlantWatch`: what it finds standing still is reported beside its alarm."""

    def __init__(self, watch: PlantWatch) -> None:
        self.names, self.watch = watch.model.names, watch

    @staticmethod
    def of(model: Model, false_alarm_every: float, decimals: dict[str, int | None] | None = None) -> WatchedPlant:
        """A new watch; false_alarm_every: in windows; decimals: of the readings, if they are known."""
        return WatchedPlant(PlantWatch(model, false_alarm_every=false_alarm_every, decimals=decimals))

    def with_rate(self, false_alarm_every: float) -> WatchedPlant:
        """The same from here on with another false-alarm rate; an alarm that is on stays on."""
        header, arrays = self.parts()
        return WatchedPlant.restored(self.watch.model, header | {"false_alarm_every": false_alarm_every}, arrays)

    @property
    def state(self) -> State:
        return self.watch.state

    @property
    def evidence(self) -> float:
        """How unusual the last windows are: 1 raises an alarm."""
        return self.watch.evidence

    @property
    def false_alarm_every(self) -> float:
        return self.watch.false_alarm_every

    @property
    def fault(self) -> ActiveAlarm | None:
        alarm = self.watch.alarm
        if alarm is None:
            return None
        sizes = (alarm.sizes * self.watch.model.scale[alarm.decision]).tolist()
        times = (alarm.time, alarm.onset, *alarm.onset_interval)
        raised, onset, first, last = np.array(times, dtype="datetime64[us]")
        return ActiveAlarm(
            raised,
            onset,
            first,
            last,
            named=alarm.names,
            kinds=alarm.kinds,
            sizes=tuple(size if np.isfinite(size) else None for size in sizes),
            beliefs=tuple(alarm.beliefs[alarm.decision].tolist()),
            confidence=alarm.confidence,
        )

    @property
    def deviations(self) -> dict[str, float]:
        """How far the sensors of the alarm moved, in robust units."""
        alarm = self.watch.alarm
        return {} if alarm is None else dict(zip(alarm.names, np.nan_to_num(alarm.sizes).tolist(), strict=True))

    def still(self, kind: Still) -> dict[str, np.datetime64]:
        """Sensors that are stuck, silent or out of range now, and since when."""
        found, now = {}, self.watch.start
        for k, (what, since) in self.watch.standing.items():
            if what == kind and now is not None:
                ago = (self.watch.time - 1 - since) * self.watch.model.seconds
                found[self.names[k]] = now - np.timedelta64(round(ago * 1e6), "us")
        return found

    @property
    def changed(self) -> bool:
        """Whether the last alarm was over because its deviation lasts as a change."""
        return self.watch.changed

    @property
    def settled(self) -> bool:
        """Whether such a change still lasts."""
        return bool(self.watch.engine.settled[0])

    @property
    def cautions(self) -> tuple[str, ...]:
        """Ways in which the readings are unlike the history."""
        return self.watch.cautions

    def update(self, sample: Sample) -> None:
        """Take a window of all sensors, in robust units."""
        self.watch.update(sample.values, sample.start.astype("datetime64[us]"))

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file must keep."""
        return plant_state(self.watch)

    @staticmethod
    def restored(model: Model, header: Any, arrays: dict[str, NDArray[Any]]) -> WatchedPlant:
        """Go on from what `parts` gave."""
        return WatchedPlant(built_plant(model, header, arrays))
