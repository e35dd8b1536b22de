"""S + a I keeps the structure of S."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from eccaht.streams.covariance import (
    AR1,
    BlockDiagonal,
    Diagonal,
    Kronecker,
    Ridged,
    SparsePrecision,
    with_ridge,
)
from tests.checks.covariances import PLAIN, grid, wishart


def test_no_ridge_returns_the_operator_itself() -> None:
    for build in PLAIN.values():
        cov = build()
        assert with_ridge(cov, 0) is cov
        assert with_ridge(cov, np.float64(0.0)) is cov


def test_ridges_add_up() -> None:
    for cov in (AR1(5, 0.5), grid(3), Kronecker(wishart(3), AR1(2, 0.5))):
        twice = with_ridge(with_ridge(cov, 0.5), 0.25)
        assert isinstance(twice, Ridged)
        assert twice.base is cov
        assert twice.ridge == 0.75


def test_blocks_that_are_one_object_stay_one() -> None:
    a, b = AR1(3, 0.5), wishart(2)
    blocks = with_ridge(BlockDiagonal([a, a, b, a]), 1.0)
    assert isinstance(blocks, BlockDiagonal)
    first, second, third, last = blocks.blocks
    assert first is second is last
    assert third is not first


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "negative": (Diagonal([1.0]), -0.1, "ridge must be positive, not -0.1"),
    "nan": (Diagonal([1.0]), np.nan, "ridge must be finite"),
    "infinite": (Diagonal([1.0]), np.inf, "ridge must be finite"),
    "text": (Diagonal([1.0]), "1", "ridge must be a real number"),
    "bool": (Diagonal([1.0]), True, "ridge must be a real number"),
    "matrix": (np.eye(2), 1.0, "type ndarray takes no ridge.*Dense"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_line(name: str) -> None:
    cov, a, message = REFUSED[name]
    with pytest.raises(ValueError, match=message) as error:
        with_ridge(cov, a)
    assert "\n" not in str(error.value)


def test_nothing_is_allocated_before_it_is_needed() -> None:
    """A file may claim any size; `load_policy` refuses it after the operator is built."""
    assert Ridged(AR1(10**15, 0.5), 1.0).size == 10**15
    assert Ridged(Kronecker(AR1(10**9, 0.5), AR1(10**9, 0.5)), 1.0).size == 10**18


@pytest.mark.parametrize("rho", [0.3, -0.8, 0.995, -0.999999])
@pytest.mark.parametrize("a", [1e-9, 1e-3, 1.0, 1e6])
def test_solutions_keep_their_digits_from_faint_to_overwhelming_ridges(rho: float, a: float) -> None:
    """The residual of a solution: S x + a x gives back b, on stretches and on the whole."""
    for cov in (AR1(500, rho, variance=2.0), AR1(2, rho), Kronecker(AR1(5, rho), wishart(4))):
        ridged, k = Ridged(cov, a), cov.size // 3
        b = np.eye(cov.size)[k]
        for x in (ridged.solve(b), ridged.solve_sparse(np.array([k]), np.ones(1))):
            size = float(np.abs(ridged.dense()).sum(axis=0).max() * np.abs(x).max())
            assert_allclose(ridged.matvec(x), b, atol=1e-11 * size)  # 500 streams times rounding of 1e-16, times 200


def plate(nugget: float) -> SparsePrecision:
    """A thin plate: the square of a grid's Laplacian, singular but for the nugget."""
    ends = np.array([1.0, *[2.0] * 6, 1.0])
    line = sp.diags_array([-np.ones(7), ends + nugget, -np.ones(7)], offsets=[-1, 0, 1])
    laplacian = sp.csc_array(sp.kronsum(line, line))
    return SparsePrecision(laplacian @ laplacian)


def test_noise_that_would_be_coloured_wrongly_is_refused() -> None:
    z = np.eye(64)
    good = with_ridge(plate(0.01), 1.0)
    assert_allclose(good.color(z) @ good.color(z).T, good.dense(), atol=1e-9 * good.dense().max())
    for nugget, a in ((1e-2, 1e4), (1e-4, 1.0), (1e-4, 1e4)):
        with pytest.raises(ArithmeticError, match=r"ill-conditioned.*ridge"):
            with_ridge(plate(nugget), a).color(z)


def test_a_million_streams_are_solved_and_coloured() -> None:
    K = 1_000_000
    cov = with_ridge(AR1(K, 0.8, variance=2.0), 0.5)
    b = np.random.default_rng(0).standard_normal(K)
    x = cov.solve(b)
    assert_allclose(cov.matvec(x), b, atol=1e-12)
    indices, values = np.array([0, 1, 500_000, K - 1]), np.array([1.0, -2.0, 3.0, -4.0])
    sparse = np.zeros(K)
    sparse[indices] = values
    assert_allclose(cov.solve_sparse(indices, values), cov.solve(sparse), atol=1e-15)
    drawn = cov.sample(np.random.default_rng(1))
    assert_allclose(drawn @ drawn / K, 2.5, rtol=0.02)
    assert_allclose(drawn[1:] @ drawn[:-1] / K, 1.6, rtol=0.03)
