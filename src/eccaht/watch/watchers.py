"""Watches of both kinds as `events.Watcher`: window numbers become times, robust units those of the readings."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from eccaht.archive import check_keys
from eccaht.data.windows import Sample
from eccaht.model.model import Model
from eccaht.model.standstill import Kind
from eccaht.watch.detector import LONGEST
from eccaht.watch.events import Fault
from eccaht.watch.plant import PlantWatch
from eccaht.watch.stillness import Stillness
from eccaht.watch.watch import State, Watch

_W = TypeVar("_W", Watch, PlantWatch)


class _Watcher(Generic[_W]):
    """What both kinds say in the same words."""

    watch: _W

    @property
    def state(self) -> State:
        """Where it stands."""
        return self.watch.state

    @property
    def evidence(self) -> float:
        """How unusual the last windows are: 1 raises an alarm."""
        return self.watch.evidence

    @property
    def false_alarm_every(self) -> float:
        """The mean time to a false alarm, in windows."""
        return self.watch.false_alarm_every


class ModelWatch(_Watcher[Watch]):
    """A `Watch` of the mean and covariance of a model."""

    def __init__(self, model: Model, watch: Watch) -> None:
        self.names, self.watch, self._stillness = model.names, watch, Stillness(model)
        self._scale = model.scale
        self._times: dict[int, np.datetime64] = {}  # starts of the last windows, and of those that the alarm names

    @staticmethod
    def of(model: Model, false_alarm_every: float) -> ModelWatch:
        """A new watch; false_alarm_every: in windows."""
        problem = model.problem(shift=1.0, n_anomalies=1, budget=1.0)
        return ModelWatch(model, Watch(problem, false_alarm_every=false_alarm_every))

    @property
    def fault(self) -> Fault | None:
        """The alarm as it is now."""
        alarm = self.watch.alarm
        if alarm is None:
            return None
        members = alarm.decision
        raised, onset, first, last = (self._times[number] for number in self._named_windows())
        return Fault(
            raised,
            onset,
            first,
            last,
            named=alarm.names,
            kinds=alarm.kinds,
            sizes=tuple((alarm.sizes * self._scale[members]).tolist()),
            beliefs=tuple(alarm.beliefs[members].tolist()),
        )

    @property
    def deviations(self) -> dict[str, float]:
        """How far the sensors of the alarm moved, in robust units."""
        alarm = self.watch.alarm
        return {} if alarm is None else dict(zip(alarm.names, alarm.sizes.tolist(), strict=True))

    def still(self, kind: Kind) -> dict[str, np.datetime64]:
        """Sensors that are stuck or silent now, and since when."""
        return self._stillness.now(kind)

    def update(self, sample: Sample) -> None:
        """Take a window of all sensors, in robust units; one that is stuck bears no evidence of a step."""
        now = self.watch.time
        self._times[now] = sample.start
        self.watch.update(self._stillness.look(sample).values)
        kept = self._named_windows()
        self._times = {n: start for n, start in self._times.items() if n > now - LONGEST or n in kept}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file must keep."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "watch"
            self.watch.save(path)
            content = path.read_bytes()
        starts = np.array(list(self._times.values()), dtype="datetime64[us]").astype(np.int64)
        numbers = np.array(list(self._times), dtype=np.int64)
        still = {f"still.{name}": array for name, array in self._stillness.arrays().items()}
        own = {"times": np.stack([numbers, starts]), "length": np.array([len(content)]), "file": _numbers(content)}
        return own | still

    @staticmethod
    def restored(model: Model, arrays: dict[str, NDArray[Any]]) -> ModelWatch:
        """Go on from what `arrays` gave."""
        still = {name.removeprefix("still."): arrays[name] for name in arrays if name.startswith("still.")}
        check_keys(arrays, {"times", "length", "file"} | {f"still.{name}" for name in still}, "watch")
        times = arrays["times"]
        if times.dtype.kind != "i" or times.ndim != 2 or len(times) != 2:
            raise ValueError("its times are damaged")
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "watch"
            path.write_bytes(arrays["file"].astype("<i8").tobytes()[: int(arrays["length"][0])])
            watch = Watch.load(path)
        if watch.problem.names != model.names:
            raise ValueError("it watches other sensors than the model has")
        self = ModelWatch(model, watch)
        self._stillness.restore(still)
        starts = times[1].astype("datetime64[us]")
        self._times = dict(zip(times[0].tolist(), starts, strict=True))
        if not set(self._named_windows()) <= set(self._times):
            raise ValueError("its times are damaged")
        return self

    def _named_windows(self) -> tuple[int, ...]:
        """The windows that the alarm names: that which raised it, its onset and the ends of the onset's interval."""
        alarm = self.watch.alarm
        return () if alarm is None else (alarm.time, alarm.onset, *alarm.onset_interval)


class WatchedPlant(_Watcher[PlantWatch]):
    """A `PlantWatch`: what it finds standing still is told beside its alarm."""

    def __init__(self, watch: PlantWatch) -> None:
        self.names, self.watch = watch.model.names, watch
        self._now: np.datetime64 | None = None  # start of the last window

    @property
    def fault(self) -> Fault | None:
        """The alarm as it is now."""
        alarm = self.watch.alarm
        if alarm is None:
            return None
        sizes = (alarm.sizes * self.watch.model.scale[alarm.decision]).tolist()
        times = (alarm.time, alarm.onset, *alarm.onset_interval)
        raised, onset, first, last = np.array(times, dtype="datetime64[us]")
        return Fault(
            raised,
            onset,
            first,
            last,
            named=alarm.names,
            kinds=alarm.kinds,
            sizes=tuple(size if np.isfinite(size) else None for size in sizes),
            beliefs=tuple(alarm.beliefs[alarm.decision].tolist()),
        )

    @property
    def deviations(self) -> dict[str, float]:
        """How far the sensors of the alarm moved, in robust units."""
        alarm = self.watch.alarm
        return {} if alarm is None else dict(zip(alarm.names, np.nan_to_num(alarm.sizes).tolist(), strict=True))

    def still(self, kind: Kind) -> dict[str, np.datetime64]:
        """Sensors that are stuck or silent now, and since when."""
        found = {}
        for k, (what, since) in self.watch.standing.items():
            if what == kind and self._now is not None:
                ago = (self.watch.time - 1 - since) * self.watch.model.seconds
                found[self.names[k]] = self._now - np.timedelta64(round(ago * 1e6), "us")
        return found

    def update(self, sample: Sample) -> None:
        """Take a window of all sensors, in robust units."""
        self._now = sample.start.astype("datetime64[us]")
        self.watch.update(sample.values, self._now)


def _numbers(content: bytes) -> NDArray[np.int64]:
    return np.frombuffer(content + b"\0" * (-len(content) % 8), dtype="<i8")
