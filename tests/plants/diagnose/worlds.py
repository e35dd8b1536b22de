"""Histories of which the truth is known, and the models that are calibrated on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.signal import lfilter

from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.plants.data.cleaning import ColumnReport
from eccaht.plants.model.estimators import estimate
from eccaht.plants.model.history import longest_run, summarise
from eccaht.plants.model.model import Model
from eccaht.streams.covariance import families

SENSORS, WINDOWS = 24, 2000
READING: dict[str, Any] = {
    "time_columns": ["time"],
    "time_format": ["iso"],
    "decimal_comma": False,
    "row_interval": None,
    "interval": 60.0,
    "kinds": {},
    "levels": {},
    "notes": [],
}


def truth(size: int = SENSORS, seed: int = 0) -> Array:
    """A covariance as plants have it: three common causes of different weight, neighbours alike, unequal variances."""
    rng = rng_for(seed, "truth")
    causes = rng.standard_normal((size, 3)) * [0.8, 0.5, 0.3]
    scale = np.exp(0.3 * rng.standard_normal(size))
    return (causes @ causes.T + families.toeplitz(size, rho=0.5).dense()) * np.outer(scale, scale)


def white(windows: int = WINDOWS, size: int = SENSORS, seed: int = 0, covariance: Array | None = None) -> Array:
    """Independent normal windows, (T, K)."""
    S = truth(size, seed) if covariance is None else covariance
    return rng_for(seed, "windows").standard_normal((windows, size)) @ np.linalg.cholesky(S).T


def ar1(values: Array, phi: float) -> Array:
    """The same noise with memory: x_t = phi x_{t-1} + sqrt(1 - phi^2) e_t, so that variances stay."""
    filtered: Array = lfilter([np.sqrt(1.0 - phi**2)], [1.0, -phi], values, axis=0)
    return filtered[min(200, len(values) // 10) :]


def model_of(values: Array, *, estimator: str = "ledoit-wolf", raw: Array | None = None, **changes: Any) -> Model:
    """Calibrate on windows directly; `raw` are the readings behind them, if they differ."""
    T, K = values.shape
    names = tuple(f"S{k:02d}" for k in range(K))
    mean, covariance = estimate(values, estimator)
    behind = values if raw is None else raw
    stuck = np.array([longest_run(column) for column in behind.T])
    quartiles = np.quantile(behind, [0.25, 0.5, 0.75], axis=0)
    parts: dict[str, Any] = {
        "names": names,
        "center": quartiles[1],
        "scale": quartiles[2] - quartiles[0],
        "seconds": 60.0,
        "mean": mean,
        "covariance": covariance,
        "estimator": estimator,
        "ridge": 0.0,
        "n_windows": T,
        "first": np.datetime64("2026-03-01T00:00:00", "us"),
        "last": np.datetime64("2026-03-01T00:00:00", "us") + np.timedelta64(60 * (T - 1), "s"),
        "columns": tuple(ColumnReport(name, True, kind="continuous", scaled_by="iqr") for name in names),
        "reading": READING,
        "summary": summarise(values, stuck, quartiles),
    }
    return Model(**(parts | changes))
