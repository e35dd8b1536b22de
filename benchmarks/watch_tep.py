"""Tennessee Eastman: the charts of process monitoring, at the same share of false alarms.

A chart learns from `normal.csv.gz`; its limit is the 99 % quantile on `normal-test.csv.gz`, so that all charts flag 1 %
of the windows there. Faults begin with row 161. A chart of one's own takes part with one more line in `CHARTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks import watch_plant
from benchmarks.jobs import Row
from benchmarks.watch_rules import Flags
from eccaht.arrays import Array

COMPONENTS = 11
DYNAMIC_COMPONENTS, LAGS = 29, 2  # any number from 20 to 45 gives the same mean share within 0.06 (T2) and 0.01 (Q)
SHARE = 0.01  # of quiet windows that are flagged
ONSET = 160  # windows before the fault
IN_A_ROW = 6  # flagged windows that are an alarm
MINUTES = 3  # between windows

Statistic = Callable[[Array], Array]  # rows (T, K) -> (T,)
Chart = Callable[[Array], Statistic]  # from the rows to learn from


def t2(rows: Array) -> Statistic:
    """Hotelling's T2 with the full covariance."""
    mean, whitening = rows.mean(axis=0), np.linalg.inv(np.linalg.cholesky(np.cov(rows.T)))
    return lambda new: (((new - mean) @ whitening.T) ** 2).sum(axis=1)


def pca_t2(rows: Array, components: int = COMPONENTS) -> Statistic:
    """T2 of the scores of the first components of the correlation matrix."""
    scaled, values, vectors = _components(rows, components)
    return lambda new: ((scaled(new) @ vectors) ** 2 / values).sum(axis=1)


def pca_q(rows: Array, components: int = COMPONENTS) -> Statistic:
    """The squared distance from the plane of the first components."""
    scaled, _, vectors = _components(rows, components)
    return lambda new: (scaled(new) ** 2).sum(axis=1) - ((scaled(new) @ vectors) ** 2).sum(axis=1)


def _components(rows: Array, count: int) -> tuple[Callable[[Array], Array], Array, Array]:
    mean, deviation = rows.mean(axis=0), rows.std(axis=0, ddof=1)
    values, vectors = np.linalg.eigh(np.corrcoef(rows.T))
    return lambda new: (new - mean) / deviation, values[-count:], vectors[:, -count:]


def lagged(chart: Callable[[Array, int], Statistic]) -> Chart:
    """The chart of each window beside the two before it (Ku et al. 1995); the first ones repeat the first window."""

    def learn(rows: Array) -> Statistic:
        statistic = chart(_beside(rows)[LAGS:], DYNAMIC_COMPONENTS)
        return lambda new: statistic(_beside(new))

    return learn


def _beside(rows: Array) -> Array:
    longer = np.concatenate([np.repeat(rows[:1], LAGS, axis=0), rows])
    return np.hstack([longer[LAGS - lag : len(longer) - lag] for lag in range(LAGS + 1)])


CHARTS: dict[str, Chart] = {
    "PCA T2": pca_t2,
    "PCA Q": pca_q,
    "dynamic PCA T2": lagged(pca_t2),
    "dynamic PCA Q": lagged(pca_q),
    "T2, full covariance": t2,
    watch_plant.NAME: watch_plant.statistic,
}


def read_rows(path: Path) -> Array:
    """All variables of a recording, (T, 52)."""
    return pl.read_csv(path).drop("time").to_numpy().astype(float)


def compare(directory: Path, name: str) -> list[Row]:
    """One row a fault: the share of windows flagged after its onset, and the delay in minutes (None: never)."""
    statistic = CHARTS[name](read_rows(directory / "normal.csv.gz"))
    limit = np.quantile(statistic(read_rows(directory / "normal-test.csv.gz")), 1.0 - SHARE)
    rows = []
    for path in sorted(directory.glob("fault-*.csv.gz")):
        flagged = (statistic(read_rows(path)) > limit)[ONSET:]
        alarm = alarm_after(flagged)
        rows.append(
            {
                "chart": name,
                "fault": path.name.removeprefix("fault-").removesuffix(".csv.gz"),
                "flagged": float(flagged.mean()),
                "minutes": None if alarm is None else MINUTES * alarm,
            }
        )
    return rows


def alarm_after(flagged: Flags) -> int | None:
    """Windows before the first of six flagged ones in a row; None if there are none.

    >>> alarm_after(np.array([True, False, True, True, True, True, True, True])), alarm_after(np.array([True] * 5))
    (2, None)
    """
    runs = np.convolve(flagged, np.ones(IN_A_ROW), mode="valid") if len(flagged) >= IN_A_ROW else np.zeros(1)
    found = np.flatnonzero(runs > IN_A_ROW - 0.5)
    return int(found[0]) if found.size else None
