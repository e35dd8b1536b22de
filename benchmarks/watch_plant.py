"""The watcher of a model of normal operation among the rivals: its statistic, and its alarms at its own threshold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eccaht.arrays import Array
from eccaht.datasets.labelled import as_metrics, scaled_rows
from eccaht.model.calibration import calibrate_with_windows
from eccaht.model.model import Model
from eccaht.watch.history import Rule, looks_of, rule_of_history
from eccaht.watch.plant import PlantWatch

NAME = "eccaht, model of normal operation"
OWN = f"{NAME}, own threshold"
Statistic = Callable[[Array], Array]  # rows (T, K) as recorded -> (T,)


def learn(rows: Array) -> tuple[Model, Rule]:
    """Calibrate with default options, every row one window, and count on the same rows."""
    model, windows = calibrate_with_windows(as_metrics(rows), window="1row")
    return model, rule_of_history(model, windows)


def statistic(rows: Array) -> Statistic:
    """The largest rarity of each window; a level that moves goes on learning, whatever happens."""
    model, rule = learn(rows)
    normal = model.normal
    assert normal is not None

    def largest(new: Array) -> Array:
        values = scaled_rows(model, new)
        found = rule.statistic(looks_of(normal, rule.law, values, np.zeros(len(values)))).max(axis=(0, 2))
        return np.concatenate([np.zeros(len(values) - len(found)), found])  # before a local level is known

    return largest


def in_alarm(rows: Array, every: float) -> Statistic:
    """1 in the windows in which an alarm goes on, or a sensor is stuck or silent, at a promise of one in `every`."""
    model, rule = learn(rows)

    def flagged(new: Array) -> Array:
        watch = PlantWatch(model, rule, false_alarm_every=every)
        found = np.zeros(len(new))
        for t, window in enumerate(scaled_rows(model, new)):
            watch.update(window)
            found[t] = watch.state == "alarm"
        return found

    return flagged
