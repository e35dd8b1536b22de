"""Every structured operator is its dense matrix in every operation, and extreme eigenvalues are right where equal."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.base.arrays import Array
from eccaht.checks import covariance_checks
from eccaht.streams.covariance import AR1, Covariance, Dense
from eccaht.streams.covariance.dense import largest_eigenpair, largest_eigenvalue, smallest_eigenvalue
from tests.checks.covariances import EXAMPLES

CHECKS = dict(covariance_checks())


@pytest.fixture(params=EXAMPLES, scope="module")
def cov(request: pytest.FixtureRequest) -> Covariance:
    return EXAMPLES[request.param]()


@pytest.mark.parametrize("check", CHECKS)
def test_every_operator_passes_every_check(cov: Covariance, check: str) -> None:
    CHECKS[check](cov)


def test_samples_are_coloured_noise_of_the_generator(cov: Covariance) -> None:
    drawn = cov.sample(np.random.default_rng(2), 3)
    z = np.random.default_rng(2).standard_normal((3, cov.size))
    assert_allclose(drawn, z @ cov.color(np.eye(cov.size)).T, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ar1", "graph", "factor-signed", "kronecker", "circulant-odd", "block-mixed"])
def test_sampled_covariance_converges(name: str) -> None:
    """10^5 draws: entries within five standard errors."""
    cov = EXAMPLES[name]()
    drawn, S = cov.sample(np.random.default_rng(4), 100_000), cov.dense()
    error = np.sqrt((S**2 + np.outer(S.diagonal(), S.diagonal())) / 100_000)
    assert np.all(np.abs(drawn.T @ drawn / 100_000 - S) < 5.5 * error)


def test_a_full_matrix_with_a_sparse_inverse_gives_sparse_solutions() -> None:
    """AR1 written out: S^-1 (e_i - e_j) has exactly six nonzero entries, as from the structured operator."""
    structured = AR1(200, 0.8)
    indices, values = np.array([40, 150]), np.array([1.0, -1.0])
    full = Dense(structured.dense()).solve_sparse(indices, values)
    assert np.flatnonzero(full).tolist() == [39, 40, 41, 149, 150, 151]
    assert_allclose(full, structured.solve_sparse(indices, values), rtol=1e-9, atol=1e-9)


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
