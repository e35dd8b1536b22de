"""A small plant whose rows have memory: its model, and incidents of which the truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from eccaht.base.arrays import Array
from eccaht.plants.data.windows import Windows
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model
from tests.plants.model.histories import clock, write_csv

NAMES = tuple(f"s{k}" for k in range(8))
STEP = 10  # seconds: six rows a window


def readings(rows: int, seed: int, memory: float = 0.3) -> Array:
    """Normal operation, (rows, 8): half of the variance is common to all sensors."""
    rng = np.random.default_rng(seed)
    white = rng.standard_normal((rows + 500, 9)) * np.sqrt(1 - memory**2)
    noise = lfilter([1.0], [1.0, -memory], white, axis=0)[500:]
    return np.asarray(noise[:, :8] + noise[:, 8:])


def incident(rows: int, seed: int, shift: float = 1.0) -> tuple[Array, list[str]]:
    """Readings of which two sensors are off by `shift` interquartile ranges, and their names."""
    wrong = np.random.default_rng(seed + 10_000).choice(8, 2, replace=False)
    values = readings(rows, seed + 1000)
    values[:, wrong] += shift * 1.349 * np.sqrt(2.0)
    return values, sorted(NAMES[k] for k in wrong)


def write(path: Path, values: Array, kept: NDArray[np.bool_] | None = None) -> Path:
    """The readings as a file, of some of the rows if `kept` says which; NaN is a blank cell."""
    which = np.arange(len(values)) if kept is None else np.flatnonzero(kept)
    times = clock(len(values), STEP)
    cells = [["" if np.isnan(x) else f"{x:.4f}" for x in column] for column in values[which].T]
    return write_csv(path, ["timestamp", *NAMES], [[times[k] for k in which], *cells])


def calibrated(path: Path, memory: float = 0.3, rows: int = 9000) -> Model:
    """The model of a normal history."""
    return calibrate([write(path / "history.csv", readings(rows, 0, memory))], window="1min")


def prepared(model: Model, path: Path, values: Array, kept: NDArray[np.bool_] | None = None) -> Windows:
    """The readings as the model prepares them."""
    return model.prepare([write(path / "new.csv", values, kept)])
