"""Noise of a few streams for the tests of watching."""

import numpy as np

from eccaht.base.arrays import Array
from eccaht.streams.covariance import families


def toeplitz(size: int, rho: float) -> Array:
    return families.toeplitz(size, rho=rho).dense()


def inverse(matrix: Array) -> Array:
    return np.asarray(np.linalg.inv(matrix), dtype=float)


def quiet(covariance: Array, *shape: int, seed: int = 0) -> Array:
    """Windows in which nothing is wrong, (*shape, K)."""
    return np.random.default_rng(seed).multivariate_normal(np.zeros(len(covariance)), covariance, size=shape)
