"""One plant watched round the clock, whatever is known of it: a problem, or a model of its history."""

from __future__ import annotations

from os import PathLike
from typing import Any

from numpy.typing import NDArray

from eccaht.base.files import check_keys, part_of, read_archive, write_archive
from eccaht.base.randomness import Seed
from eccaht.plants.model.model import Model
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.state import built_plant, plant_parts
from eccaht.streams import Alarm, Problem, State
from eccaht.streams.watch.steps import StepWatch, Threshold

_KIND, _VERSION = "watch", 3


class Watch:
    """Watch streams window by window: an alarm in time, rarely a false one, and the streams named.

    subject: a problem, whose covariance, mean and names say what is normal: windows are independent draws, and steps of
    any size and sign in any stream are looked for (see `steps.StepWatch`). The false-alarm rate then holds for Gaussian
    noise of exactly that covariance; give the problem `degrees_of_freedom` for heavy tails and `estimated_from` for a
    covariance that was estimated. Or a model, as `eccaht calibrate` writes it and `eccaht.load_model` reads it:
    memory and heavy tails are normal, faults of any course are looked for, and the thresholds were counted on its
    history (see `plant.PlantWatch`).
    false_alarm_every: the mean time to a false alarm, at least, in windows; with a model also a length of time, "30d".
    threshold: with a problem "calibrated" by a simulation or "proven".

    Memory and time a window are constant. From an alarm on its set is followed until the windows look normal again.

    >>> import numpy as np
    >>> problem = Problem(np.eye(5), shift=1.0, n_anomalies=1, budget=1.0, names=list("abcde"))
    >>> watch = Watch(problem, threshold="proven")
    >>> rows = np.random.default_rng(1).standard_normal((60, 5))
    >>> rows[40:, 2] += 3.0
    >>> alarms = [alarm for row in rows if (alarm := watch.update(row))]
    >>> [(alarm.time, alarm.onset, alarm.names) for alarm in alarms], watch.state
    ([(42, 40, ('c',))], 'alarm')
    """

    def __init__(
        self,
        subject: Problem | Model,
        *,
        false_alarm_every: float | str = 5000,
        threshold: Threshold = "calibrated",
        seed: Seed = 0,
    ) -> None:
        if isinstance(subject, Model):
            if threshold != "calibrated":
                raise ValueError(
                    f"threshold={threshold!r} is for problems: what proves it, a plant's noise does not keep"
                )
            self.engine: StepWatch | PlantWatch = PlantWatch(subject, false_alarm_every=false_alarm_every)
        elif isinstance(subject, Problem):
            if isinstance(false_alarm_every, str):
                raise ValueError("false_alarm_every is a number of windows: a problem does not say how long they are")
            self.engine = StepWatch(subject, false_alarm_every=false_alarm_every, threshold=threshold, seed=seed)
        else:
            raise ValueError(f"Watch takes a Problem or a Model (see eccaht.load_model), not {subject!r:.40}")

    @property
    def false_alarm_every(self) -> float:
        """The mean time to a false alarm, in windows."""
        return self.engine.false_alarm_every

    @property
    def basis(self) -> str:
        """What the false-alarm rate rests on.

        "simulated" from the problem; "proven"; "counted" on a model's history; or "extrapolated", where the history is
        too short to have shown anything as rare.
        """
        if isinstance(self.engine, PlantWatch):
            return self.engine.basis
        return "proven" if self.engine.threshold == "proven" else "simulated"

    @property
    def assumes(self) -> str:
        """What the false-alarm rate assumes of the readings while nothing is wrong."""
        return self.engine.assumes if isinstance(self.engine, StepWatch) else "readings like those of the history"

    @property
    def cautions(self) -> tuple[str, ...]:
        """Ways in which the readings contradict that: false alarms may then be more frequent."""
        return self.engine.cautions

    def __repr__(self) -> str:
        rate = f"false_alarm_every={self.false_alarm_every:g}"
        return f"Watch({rate}, basis={self.basis!r}, assumes={self.assumes!r}, state={self.state!r})"

    @property
    def time(self) -> int:
        """Windows so far, with a model missing ones included."""
        return self.engine.time

    @property
    def evidence(self) -> float:
        """How unusual the last windows are: 1 raises an alarm.

        It is the mean time in which chance alone brings windows as unusual, in units of `false_alarm_every`.
        """
        return self.engine.evidence

    @property
    def state(self) -> State:
        """Where it stands: "suspicious" is evidence of 0.1 or more."""
        return self.engine.state

    @property
    def alarm(self) -> Alarm | None:
        """The alarm as it is now, None if there is none."""
        return self._as_read(self.engine.alarm)

    @property
    def past(self) -> Alarm | None:
        """The last alarm that is over."""
        return self._as_read(self.engine.past)

    @property
    def still(self) -> dict[str, str]:
        """With a model: the sensors that are stuck, silent or out of range now, and which of these."""
        if isinstance(self.engine, StepWatch):
            return {}
        return {self.engine.model.names[k]: kind for k, (kind, _) in self.engine.standing.items()}

    def update(self, x: Any, time: Any = None) -> Alarm | None:
        """Take a window, (K,) or a dict by name, in units of the readings; return an alarm that it raises.

        NaN, or a name that is not in the dict, is a silent stream. time: of the start of the window, with a model;
        windows that are missing in between are then noticed, and those that came before are left out.
        """
        if isinstance(self.engine, StepWatch):
            if time is not None:
                raise ValueError("windows of a problem follow each other: only those of a model have a time")
            return self.engine.update(x)
        model = self.engine.model
        return self._as_read(self.engine.update(model.scaled(self.engine.checked(x)), time))

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file from which `Watch.load` goes on exactly where this watch is; that of a model holds the model."""
        model = None
        if isinstance(self.engine, StepWatch):
            state, arrays = self.engine.parts()
        else:
            state, arrays = plant_parts(self.engine)
            model, of_model = self.engine.model.parts()
            arrays |= {f"model.{name}": array for name, array in of_model.items()}
        write_archive(path, _KIND, _VERSION, {"state": state, "model": model}, arrays)

    @staticmethod
    def load(path: str | PathLike[str]) -> Watch:
        """Read a watch that was saved; safe for untrusted files."""
        return read_archive(path, _KIND, _VERSION, Watch._build)

    @staticmethod
    def _build(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Watch:
        check_keys(header, {"state", "model"}, "header")
        watch = Watch.__new__(Watch)
        if header["model"] is None:
            watch.engine = StepWatch.build(header["state"], arrays)
        else:
            model = Model.build(header["model"], part_of(arrays, "model"))
            rest = {name: array for name, array in arrays.items() if not name.startswith("model.")}
            watch.engine = built_plant(model, header["state"], rest)
        return watch

    def _as_read(self, alarm: Alarm | None) -> Alarm | None:
        """An alarm of the engine with its sizes in units of the readings."""
        return self.engine.in_units(alarm) if isinstance(self.engine, PlantWatch) else alarm
