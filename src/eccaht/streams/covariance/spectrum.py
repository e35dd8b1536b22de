"""How many independent directions a covariance effectively has, and extreme eigenvalues, safe where many are equal.

LAPACK finds a few eigenvalues by bisection (`eigh(subset_by_index=...)`, with any of its drivers), which fails on some
processors where several are equal up to rounding, as those of independent streams are. All of them, by the divide and
conquer of numpy, cost little more: most of the work is the same reduction to tridiagonal form.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array
from eccaht.streams.covariance.base import Covariance
from eccaht.streams.covariance.dense import as_covariance


def effective_rank(cov: Covariance | ArrayLike, kind: Literal["shannon", "participation"] = "shannon") -> float:
    """Return exp(entropy) of the normalised eigenvalues, or (sum)^2 / (sum of squares).

    Both are K for independent streams of one variance and tend to 1 when one direction carries all the noise.

    >>> round(effective_rank(np.eye(5)), 6), round(effective_rank([[1.0, 0.5], [0.5, 1.0]], kind="participation"), 6)
    (5.0, 1.6)
    """
    if kind not in ("shannon", "participation"):
        raise ValueError(f"kind must be 'shannon' or 'participation', not {kind!r}")
    share = as_covariance(cov).eigenvalues()
    share = share / share.sum()
    if kind == "participation":
        return float(1.0 / np.sum(share**2))
    share = share[share > 0]
    return float(np.exp(-np.sum(share * np.log(share))))


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
