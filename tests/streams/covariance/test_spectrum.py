"""The extreme eigenvalues are right where many are equal, on every processor."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.base.arrays import Array
from eccaht.streams.covariance.spectrum import largest_eigenpair, largest_eigenvalue, smallest_eigenvalue

SIZES = [*range(2, 20), 31, 32, 33, 64, 65, 128, 300]


def matrices(K: int) -> dict[str, tuple[Array, float, float]]:
    """Symmetric matrices with many equal eigenvalues; the smallest and the largest of each."""
    centred = np.eye(K) - 1.0 / K
    twice = 9.0 * np.eye(K)
    twice -= twice.mean(axis=0)
    twice -= twice.mean(axis=1, keepdims=True)
    blocks = np.asarray(np.kron(np.eye(K // 4 + 1), 0.2 * np.eye(4) + 0.8), dtype=np.float64)
    return {
        "identity": (9.0 * np.eye(K), 9.0, 9.0),
        "zero": (np.zeros((K, K)), 0.0, 0.0),
        "constant": (np.ones((K, K)), 0.0, K),
        "centred": (centred, 0.0, 1.0),
        "centred twice": (twice, 0.0, 9.0),
        "blocks": (blocks, 0.2, 3.4),
        "small": (1e-150 * centred, 0.0, 1e-150),
        "large": (1e150 * centred, 0.0, 1e150),
    }


@pytest.mark.parametrize("name", matrices(2))
def test_equal_eigenvalues(name: str) -> None:
    for K in SIZES:
        M, smallest, largest = matrices(K)[name]
        value, vector = largest_eigenpair(M)
        unit = max(largest, 1e-300)
        assert_allclose(smallest_eigenvalue(M) / unit, smallest / unit, atol=1e-12)
        assert_allclose([largest_eigenvalue(M), value], largest, rtol=1e-12, atol=1e-300)
        assert_allclose(np.square(vector).sum(), 1.0)
        assert_allclose(M @ vector / unit, value / unit * vector, atol=1e-12)
