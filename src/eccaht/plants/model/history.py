"""Summaries of the history that a model keeps: enough to judge the model, small enough to store with it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.plants.model.rows import SHARES

PROBABILITIES: Array = np.concatenate(
    [[0.001, 0.0025, 0.005, 0.01, 0.0175], np.linspace(0.025, 0.975, 31), [0.9825, 0.99, 0.995, 0.9975, 0.999]]
)
PROBABILITIES.flags.writeable = False
_ROUNDING = 1e-6
MOST_LAGS, MOST_BLOCKS, MOST_SENSORS, MOST_STRETCHES = 60, 20, 500, 1440
# how many windows a stretch may hold: they add up to usual lengths
_JOINED = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)


@dataclass(frozen=True)
class History:
    """Summaries of T windows of K sensors, all of the scaled windows except `stuck`, `gaps` and `raw_quantiles`.

    autocorrelation: (L + 1, K), lags 0 to L = min(60, T // 4), between consecutive windows.
    quantiles: (Q, K) at PROBABILITIES.
    skewness, kurtosis: (K,), the latter in excess of the normal's.
    block_means, block_sizes: (N, K) and (N,), means of N = min(20, T // 10) consecutive stretches.
    half_covariances: (2, K, K), of the first and the second half; (0, K, K) for more than 500 sensors.
    stuck: (K,), the longest share of the rows in which a sensor repeated one value.
    raw_quantiles: (3, K), quartiles of the raw values.
    coarse, coarse_windows: (C, K) and (1,), means of C consecutive stretches and the number of windows in each,
        from which longer windows can be tried; C is at most 1440, and 0 for more than 500 sensors.
    gaps: (K,), the longest share of the rows in which a sensor delivered nothing.
    row_counts: (2,), rows of a usual window and of the whole history.
    within: (1, K, K), covariance of scaled rows about the mean of their window; (0, K, K) for more than 500 sensors.
    runs: (9,), error variance of the mean of consecutive rows over that of random rows (model/rows.py).
    """

    autocorrelation: Annotated[Array, "L", "K"]
    quantiles: Annotated[Array, PROBABILITIES.size, "K"]
    skewness: Annotated[Array, "K"]
    kurtosis: Annotated[Array, "K"]
    block_means: Annotated[Array, "N", "K"]
    block_sizes: Annotated[Array, "N"]
    half_covariances: Annotated[Array, "0|2", "K", "K"]
    stuck: Annotated[Array, "K"]
    raw_quantiles: Annotated[Array, 3, "K"]
    coarse: Annotated[Array, "C", "K"]
    coarse_windows: Annotated[Array, 1]
    gaps: Annotated[Array, "K"]
    row_counts: Annotated[Array, 2]
    within: Annotated[Array, "0|1", "K", "K"]
    runs: Annotated[Array, SHARES.size]

    def check(self, size: int) -> None:
        """Refuse arrays of the wrong shape or with values that are not finite."""
        lengths: dict[Any, int] = {"K": size, "L": len(self.autocorrelation), "N": len(self.block_sizes)}
        lengths |= {"C": len(self.coarse), "0|2": 2 * bool(len(self.half_covariances)), "0|1": bool(len(self.within))}
        for name, array in self.arrays().items():
            if array.shape != tuple(lengths.get(length, length) for length in _SHAPES[name]):
                raise ValueError(f"its {name} has shape {array.shape}, which does not fit {size} sensors")
            if not np.isfinite(array).all():
                raise ValueError(f"its {name} holds values that are not finite")
        if min(self.row_counts.min(), self.runs.min(), self.coarse_windows[0]) < 1.0:
            raise ValueError("its counts of rows are damaged")
        if not 0.0 <= self.gaps.min() <= self.gaps.max() <= 1.0:
            raise ValueError("its gaps are no shares of the rows")
        if len(self.within) and not is_covariance(self.within[0]):
            raise ValueError("its covariance of rows within windows is damaged")

    def of(self, chosen: Index) -> History:
        """The summaries of some of the sensors."""
        arrays = self.arrays()
        for name, shape in _SHAPES.items():
            if "K" in shape:
                which = (..., chosen) if shape.count("K") == 1 else (slice(None), chosen[:, None], chosen)
                arrays[name] = arrays[name][which]
        return History(**arrays)

    def arrays(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in _SHAPES}


_SHAPES: dict[str, tuple[Any, ...]] = {
    name: hint.__metadata__ for name, hint in get_type_hints(History, include_extras=True).items()
}


def summarise(values: Array, stuck: Array, raw_quantiles: Array, **rows: Array) -> History:
    """Summarise scaled windows, shape (T, K), without gaps.

    rows: gaps, row_counts, within and runs of a History; without them every window is one row.
    """
    T, K = values.shape
    if not rows:
        rows = {"gaps": np.zeros(K), "row_counts": np.array([1.0, T]), "runs": np.ones(SHARES.size)}
        rows["within"] = np.zeros((0 if K > MOST_SENSORS else 1, K, K))
    step = next((m for m in _JOINED if m * MOST_STRETCHES >= T), _JOINED[-1])
    centred = values - values.mean(axis=0)
    spread = np.sqrt(np.mean(centred**2, axis=0))
    standard = centred / np.where(spread > 0, spread, 1.0)
    edges = np.linspace(0, T, min(MOST_BLOCKS, T // 10) + 1).round().astype(np.intp)
    halves = np.zeros((0, K, K))
    if K <= MOST_SENSORS:
        halves = np.stack([np.cov(half, rowvar=False).reshape(K, K) for half in (values[: T // 2], values[T // 2 :])])
    return History(
        autocorrelation=_autocorrelation(standard, min(MOST_LAGS, T // 4)),
        quantiles=np.quantile(values, PROBABILITIES, axis=0),
        skewness=np.einsum("tk,tk,tk->k", standard, standard, standard) / T,
        kurtosis=np.einsum("tk,tk->k", standard * standard, standard * standard) / T - 3.0,
        block_means=np.stack([values[a:b].mean(axis=0) for a, b in pairwise(edges)]),
        block_sizes=np.diff(edges).astype(np.float64),
        half_covariances=halves,
        stuck=stuck,
        raw_quantiles=raw_quantiles,
        coarse=values[: T // step * step if K <= MOST_SENSORS else 0].reshape(-1, step, K).mean(axis=1),
        coarse_windows=np.array([float(step)]),
        **rows,
    )


def is_covariance(matrix: Array) -> bool:
    """Symmetric, with no negative variance and no correlation above 1."""
    if (matrix.diagonal() < 0).any():
        return False
    deviations = np.sqrt(matrix.diagonal())
    largest = np.outer(deviations, deviations)
    symmetric = np.abs(matrix - matrix.T) <= _ROUNDING * largest
    return bool(symmetric.all() and (np.abs(matrix) <= largest * (1.0 + _ROUNDING)).all())


def _autocorrelation(standard: Array, lags: int) -> Array:
    """Lagged products over T, the usual estimate that never exceeds 1."""
    T = len(standard)
    return np.stack([np.einsum("tk,tk->k", standard[: T - lag], standard[lag:]) / T for lag in range(lags + 1)])


def longest_run(column: Array) -> float:
    """The longest share of the rows in which one value repeats.

    >>> longest_run(np.array([1.0, 2.0, 2.0, 2.0]))
    0.75
    """
    same = column[1:] == column[:-1]
    if 2 * np.count_nonzero(same) < same.size:  # count along the fewer of repetitions and changes
        repeats = np.flatnonzero(same)
        ends = np.flatnonzero(np.diff(repeats, append=len(column) + 1) > 1)
        longest = int(np.diff(ends, prepend=-1).max(initial=0)) + 1
    else:
        longest = int(np.diff(np.flatnonzero(~same) + 1, prepend=0, append=len(column)).max())
    return longest / len(column)


def longest_true(column: NDArray[np.bool_]) -> float:
    """The longest share of the rows in a run that is true.

    >>> longest_true(np.array([True, False, True, True]))
    0.5
    """
    edges = np.flatnonzero(np.diff(column.astype(np.int8), prepend=0, append=0))
    return int((edges[1::2] - edges[::2]).max(initial=0)) / len(column)
