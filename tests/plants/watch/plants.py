"""A small plant with memory and heavy tails, for tests of the watcher of models."""

from functools import lru_cache

import numpy as np

from eccaht.base.arrays import Array
from eccaht.plants.data.windows import Windows
from eccaht.plants.model.calibration import calibrate_with_windows
from eccaht.plants.model.model import Model

SENSORS, HISTORY = 6, 1500


def readings(windows: int, seed: int) -> Array:
    """Sensors that share a factor, with memory 0.5 and shocks of a t with 6 degrees of freedom, (T, 6)."""
    rng = np.random.default_rng(seed)
    shocks = rng.standard_t(6, (windows, SENSORS)) + 1.5 * rng.standard_t(6, (windows, 1))
    rows = np.empty_like(shocks)
    rows[0] = shocks[0]
    for t in range(1, windows):
        rows[t] = 0.5 * rows[t - 1] + shocks[t]
    return rows


@lru_cache(maxsize=1)
def plant() -> tuple[Model, Windows]:
    """A model and the windows of its history."""
    return calibrate_with_windows(readings(HISTORY, 0), window="1rows")


def scaled(rows: Array) -> Array:
    """New readings in robust units."""
    model = plant()[0]
    return np.asarray((rows - model.center) / model.scale)
