"""Precisions from few windows, and windows with gaps completed by them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array

_WORST, _LARGEST = 1e13, 1e15  # condition and eigenvalue of a precision


def shrunk_covariance(z: Array) -> Array:
    """The covariance of centred rows, (n, p), shrunk towards a multiple of the identity by Ledoit and Wolf's share."""
    n, p = z.shape
    sample = z.T @ z / n
    mean = float(np.trace(sample)) / p
    away = float(np.sum(sample**2)) - p * mean**2  # |S - mean I|^2
    error = (float(np.mean(np.einsum("tk,tk->t", z, z) ** 2)) - float(np.sum(sample**2))) / n
    share = min(max(error, 0.0) / away, 1.0) if away > 0 else 1.0
    return np.asarray((1.0 - share) * sample + share * mean * np.eye(p))


def completed(y: Array, precision: Array) -> Array:
    """Windows whose missing entries, NaN, are what the others predict, so that they bear no evidence."""
    missing = np.isnan(y)
    some = np.flatnonzero(missing.any(axis=1))
    if not some.size:
        return y
    filled = np.where(missing, 0.0, y)
    patterns, which = np.unique(missing[some], axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows, gone = some[which.ravel() == number], np.flatnonzero(pattern)
        pull = filled[rows] @ precision[:, gone]
        filled[np.ix_(rows, gone)] = -np.linalg.solve(precision[np.ix_(gone, gone)], pull.T).T
    return filled


def check_precision(precision: Array) -> None:
    """Refuse a matrix that is no precision, or one that no fit could have made: every fit adds a ridge."""
    values = np.linalg.eigvalsh(precision)
    if not values[0] > 0.0 or values[-1] > min(_WORST * float(values[0]), _LARGEST):
        raise ValueError("its precisions are not positive definite")


def symmetric(matrix: NDArray[np.floating[Any]]) -> Array:
    """The symmetric part, without what rounding leaves."""
    return np.asarray(0.5 * (matrix + matrix.T))
