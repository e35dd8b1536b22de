"""Extreme eigenvalues of symmetric matrices, safe where many are equal.

LAPACK finds a few eigenvalues by bisection (`eigh(subset_by_index=...)`, with any of its drivers), which fails on some
processors where several are equal up to rounding, as those of independent streams are. All of them, by the divide and
conquer of numpy, cost little more: most of the work is the same reduction to tridiagonal form.
"""

from __future__ import annotations

import numpy as np

from eccaht.arrays import Array


def smallest_eigenvalue(M: Array) -> float:
    """Return the smallest eigenvalue of a symmetric matrix."""
    return float(np.linalg.eigvalsh(M)[0])


def largest_eigenvalue(M: Array) -> float:
    """Return the largest eigenvalue of a symmetric matrix.

    >>> round(largest_eigenvalue(np.eye(128) - 1.0 / 128), 12)
    1.0
    """
    return float(np.linalg.eigvalsh(M)[-1])


def largest_eigenpair(M: Array) -> tuple[float, Array]:
    """Return the largest eigenvalue of a symmetric matrix and a unit vector that belongs to it."""
    values, vectors = np.linalg.eigh(M)
    return float(values[-1]), vectors[:, -1]
