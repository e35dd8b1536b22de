"""Every structured operator is its dense matrix in every operation, and extreme eigenvalues are right where equal."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.checks.covariance import CHECKS
from eccaht.streams.covariance import AR1, Covariance, Dense
from tests.checks.covariances import EXAMPLES


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


def test_a_full_matrix_with_a_sparse_inverse_gives_sparse_solutions() -> None:
    """AR1 written out: S^-1 (e_i - e_j) has exactly six nonzero entries, as from the structured operator."""
    structured = AR1(200, 0.8)
    indices, values = np.array([40, 150]), np.array([1.0, -1.0])
    full = Dense(structured.dense()).solve_sparse(indices, values)
    assert np.flatnonzero(full).tolist() == [39, 40, 41, 149, 150, 151]
    assert_allclose(full, structured.solve_sparse(indices, values), rtol=1e-9, atol=1e-9)
