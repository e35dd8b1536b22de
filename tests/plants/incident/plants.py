"""Simulated plants: sensors that follow common factors, with noise that has a memory."""

from functools import cache

import numpy as np
from scipy.signal import lfilter

from eccaht.base.arrays import Array
from eccaht.plants.model.fitting import fit_normal
from eccaht.plants.model.residuals import Normal


def autoregressive(rng: np.random.Generator, windows: int, size: int, memory: float) -> Array:
    """Columns of variance 1 with x_t = memory x_{t-1} + noise, (windows, size)."""
    noise = np.sqrt(1.0 - memory**2) * rng.standard_normal((windows, size))
    noise[0] /= np.sqrt(1.0 - memory**2)
    return np.asarray(lfilter([1.0], [1.0, -memory], noise, axis=0))


def simulate(
    rng: np.random.Generator, windows: int, sensors: int, *, memory: float = 0.5, noise: float = 0.5, factors: int = 2
) -> Array:
    """Windows of a plant, (windows, sensors): two slow factors, and noise of each sensor's own."""
    loadings = rng.standard_normal((sensors, factors))
    common = autoregressive(rng, windows, factors, 0.9) @ loadings.T
    return common + noise * autoregressive(rng, windows, sensors, memory)


def spreads(values: Array) -> Array:
    """Interquartile ranges, (K,)."""
    low, high = np.percentile(values, [25, 75], axis=0)
    return np.asarray(high - low)


@cache
def plant(sensors: int = 8, noise: float = 0.5, windows: int = 3000, seed: int = 0) -> tuple[Normal, Array]:
    """Normal operation as 2,000 windows show it, and windows after those."""
    values = simulate(np.random.default_rng(seed), 2000 + windows, sensors, noise=noise)
    return fit_normal(values[:2000]), values[2000:]


def pump_house(seed: int, days: int, idle: tuple[int, ...] = ()) -> Array:
    """Flow, pump, pressure and temperature in windows of ten minutes: the pump runs by day, except on idle days."""
    rng = np.random.default_rng(seed)
    hour, day = (np.arange(144 * days) % 144) / 6.0, np.arange(144 * days) // 144
    noise = rng.standard_normal((4, 144 * days))
    load = np.where((hour >= 6) & (hour < 20) & ~np.isin(day, idle), 1.0 + 0.1 * rng.standard_normal(len(hour)), 0.0)
    pump = np.where(load > 0, 40.0 * load + 0.4 * noise[1], 0.0)
    return np.column_stack([50 * load + 0.5 * noise[0], pump, 3 + 0.5 * load + 0.05 * noise[2], 20 + noise[3]])
