"""A small plant for tests of the service: windows of two seconds, four rows each, UTC."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.plants.data.source import Arrays
from eccaht.plants.intake import Rows
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model

NAMES = ("a", "b", "c", "d", "e")
STEP = np.timedelta64(500_000, "us")
START = np.datetime64("2026-03-01T08:00", "us")
WINDOWS, ROWS = 700, 4  # of the history, and rows of a window


def readings(rows: int, seed: int) -> Array:
    """Sensors that share a factor, (rows, 5)."""
    rng = rng_for(seed, "plant of the service")
    return np.asarray(10.0 + rng.standard_normal((rows, len(NAMES))) + 1.5 * rng.standard_normal((rows, 1)))


def history() -> Arrays:
    """What the model is of."""
    rows = WINDOWS * ROWS
    return Arrays(readings(rows, 0), START - rows * STEP + np.arange(rows) * STEP, NAMES, zone="UTC")


@lru_cache(maxsize=1)
def model() -> Model:
    """The model of a history."""
    return calibrate(history(), window="2s")


@lru_cache(maxsize=1)
def content() -> bytes:
    """Its file."""
    return model().to_bytes()


@lru_cache(maxsize=1)
def other_content() -> bytes:
    """The file of another model of the same plant, of half as long a history."""
    rows = WINDOWS * ROWS // 2
    history = Arrays(readings(rows, 7), START - rows * STEP + np.arange(rows) * STEP, NAMES, zone="UTC")
    return calibrate(history, window="2s").to_bytes()


def recording(windows: int, seed: int = 1, wrong: slice | None = None) -> tuple[NDArray[np.datetime64], Array]:
    """Rows of new windows; sensor b moves in some of them."""
    values = readings(windows * ROWS, seed)
    if wrong is not None:
        values[wrong.start * ROWS : wrong.stop * ROWS, 1] += 6.0
    return START + np.arange(len(values)) * STEP, values


def rows_of(times: NDArray[np.datetime64], values: Array) -> Rows:
    """As the service takes them."""
    return Rows(times, NAMES, values)
