"""Simulated plants: windows of normal operation, faults in them, and models fitted to them."""

from functools import lru_cache

import numpy as np
import polars as pl
from scipy.signal import lfilter

from eccaht.base.arrays import Array
from eccaht.plants.data.windows import Windows
from eccaht.plants.model.calibration import calibrate_with_windows
from eccaht.plants.model.fitting import fit_normal
from eccaht.plants.model.model import Model
from eccaht.plants.model.residuals import Normal

START = np.datetime64("2024-01-01T00:00:00", "us")
MINUTE = np.timedelta64(60, "s")
CENTER, SCALE = 50.0, 4.0  # of raw readings


def scatter_of(sensors: int, seed: int = 0) -> Array:
    """A correlation matrix in which every sensor has something in common with others."""
    root = np.random.default_rng(seed).standard_normal((sensors, 2 * sensors))
    R = root @ root.T
    deviations = np.sqrt(R.diagonal())
    return np.asarray(R / np.outer(deviations, deviations))


def quiet(sensors: int = 6, windows: int = 1500, seed: int = 0, memory: float = 0.6) -> Array:
    """Windows of normal operation of one plant, (T, K), with unit variance, common causes and memory."""
    noise = np.random.default_rng([seed, 1]).multivariate_normal(np.zeros(sensors), scatter_of(sensors), windows + 50)
    return np.asarray(lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], noise, axis=0)[50:])


@lru_cache(maxsize=4)
def normal_of(sensors: int = 6, memory: float = 0.6) -> Normal:
    """Normal operation as fitted to a long history."""
    return fit_normal(quiet(sensors, 3000, 0, memory))


def frame_of(values: Array, first: int = 0, decimals: int = 6, step: np.timedelta64 = MINUTE) -> pl.DataFrame:
    """Windows as raw readings S0, S1, ..., from minute `first` on."""
    times = START + first * MINUTE + np.arange(len(values)) * step
    readings = np.round(CENTER + SCALE * values, decimals)
    return pl.DataFrame({"time": times, **{f"S{k}": readings[:, k] for k in range(values.shape[1])}})


@lru_cache(maxsize=2)
def model_of(sensors: int = 6, windows: int = 1500) -> tuple[Model, Windows]:
    """A model of a history of such windows, and the windows."""
    return calibrate_with_windows(frame_of(quiet(sensors, windows)), window="1min")
