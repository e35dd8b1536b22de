"""Every structured operator is its dense matrix, in every operation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.arrays import Array
from eccaht.covariance import AR1, Covariance, Dense
from tests.checks.covariances import EXAMPLES


@pytest.fixture(params=EXAMPLES, scope="module")
def cov(request: pytest.FixtureRequest) -> Covariance:
    return EXAMPLES[request.param]()


@pytest.fixture(scope="module")
def S(cov: Covariance) -> Array:
    """The matrix, built entry by entry from products with unit vectors."""
    return np.column_stack([cov.matvec(unit) for unit in np.eye(cov.size)])


def close(a: object, b: object, scale: float = 1.0) -> None:
    assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-9 * scale)


def test_dense_columns_and_diagonal(cov: Covariance, S: Array) -> None:
    assert_allclose(S, S.T, atol=1e-12 * np.abs(S).max())
    close(cov.dense(), S)
    close(np.column_stack([cov.column(k) for k in range(cov.size)]), S)
    close(cov.column(-1), S[:, -1])
    close(cov.diagonal(), S.diagonal())


def test_products_and_quadratic_forms(cov: Covariance, S: Array) -> None:
    rng = np.random.default_rng(0)
    c, C = rng.standard_normal(cov.size), rng.standard_normal((cov.size, 3))
    close(cov.matvec(c), S @ c)
    close(cov.matvec(C), S @ C)
    close(cov.quad(c), c @ S @ c)
    assert cov.quad(np.zeros(cov.size)) == 0.0
    for count in (1, 2, 5):  # sparse measurements take their own road
        few = np.zeros(cov.size)
        few[rng.integers(0, cov.size, count)] = rng.standard_normal(count)
        close(cov.quad(few), few @ S @ few)


def test_solutions(cov: Covariance, S: Array) -> None:
    rng = np.random.default_rng(1)
    b, B = rng.standard_normal(cov.size), rng.standard_normal((cov.size, 3))
    scale = float(np.linalg.norm(np.linalg.inv(S), 2))
    close(cov.solve(b), np.linalg.solve(S, b), scale)
    close(cov.solve(B), np.linalg.solve(S, B), scale)
    for count in range(1, min(4, cov.size) + 1):
        indices = rng.choice(cov.size, count, replace=False)
        values = rng.standard_normal(count)
        b = np.zeros(cov.size)
        b[indices] = values
        close(cov.solve_sparse(indices, values), np.linalg.solve(S, b), scale)


def test_eigenvalues(cov: Covariance, S: Array) -> None:
    exact = np.linalg.eigvalsh(S)
    close(cov.eigenvalues(), exact, exact[-1])


def test_coloured_noise_has_the_covariance(cov: Covariance, S: Array) -> None:
    A = cov.color(np.eye(cov.size))
    close(A @ A.T, S)
    rng = np.random.default_rng(2)
    assert cov.sample(rng).shape == (cov.size,)
    drawn = cov.sample(rng, 3)
    z = np.random.default_rng(2)
    z.standard_normal(cov.size)
    close(drawn, z.standard_normal((3, cov.size)) @ A.T)


def test_inputs_are_not_changed(cov: Covariance) -> None:
    x = np.random.default_rng(3).standard_normal((cov.size, 2))
    kept = x.copy()
    for operation in (cov.matvec, cov.solve, cov.color):
        operation(x)
        operation(x[:, 0].copy())
    cov.quad(x[:, 0])
    assert np.array_equal(x, kept)


def test_sampled_covariance_converges() -> None:
    """10^5 draws: entries within five standard errors."""
    for name in ("ar1", "graph", "factor-signed", "kronecker", "circulant-odd", "block-mixed"):
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
    close(full, structured.solve_sparse(indices, values))
