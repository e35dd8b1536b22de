"""S + a I keeps the structure of S."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from eccaht import Problem, families, pair_design
from eccaht.streams.covariance import (
    AR1,
    BlockDiagonal,
    Covariance,
    Dense,
    Diagonal,
    Kronecker,
    Ridged,
    SparsePrecision,
    with_ridge,
)
from tests.checks.covariances import PLAIN, grid, wishart


@pytest.mark.parametrize("name", PLAIN)
def test_the_ridge_is_on_the_diagonal_and_nowhere_else(name: str) -> None:
    cov = PLAIN[name]()
    before = cov.dense()
    assert_allclose(with_ridge(cov, 0.7).dense(), before + 0.7 * np.eye(cov.size), rtol=1e-12, atol=1e-12)
    assert np.array_equal(cov.dense(), before)


@pytest.mark.parametrize("name", PLAIN)
def test_structure_is_kept(name: str) -> None:
    cov = PLAIN[name]()
    kept = Ridged if isinstance(cov, AR1 | SparsePrecision) else type(cov)
    crossed = isinstance(cov, Kronecker) and cov.left.size > 1
    assert type(with_ridge(cov, 0.7)) is (Ridged if crossed else kept)


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


def test_a_factor_of_one_row_leaves_the_other_its_structure() -> None:
    for cov in (Kronecker([[2.0]], AR1(10**6, 0.9)), Kronecker(AR1(10**6, 0.9), [[2.0]])):
        ridged = with_ridge(cov, 1.0)
        assert isinstance(ridged, Kronecker)
        assert {type(ridged.left), type(ridged.right)} == {Dense, Ridged}
        assert_allclose(ridged.quad(np.ones(cov.size)), cov.quad(np.ones(cov.size)) + 1.0 * cov.size)


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


def test_ridged_takes_only_what_it_can_factorise() -> None:
    with pytest.raises(ValueError, match=r"Diagonal.*with_ridge"):
        Ridged(Diagonal([1.0, 2.0]), 1.0)
    with pytest.raises(ValueError, match="ridge must be positive"):
        Ridged(AR1(3, 0.5), 0.0)


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
            assert_allclose(ridged.matvec(x), b, atol=1e-13 * size)


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


DESIGNS: dict[str, Covariance] = {
    "ar1": AR1(200, 0.9),
    "ar1-negative": AR1(200, -0.9),
    "graph": families.graph(200, 0.9, p=0.02),
    "grid": grid(14),
    "kronecker": families.kronecker(0.8, shape=(20, 10)),
    "block": families.block(200, 0.8),
    "circulant": families.circulant(200, 0.9),
}


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("budget", [0.4, 0.6, 50.0])
@pytest.mark.parametrize("a", [0.01, 1.0])
def test_designs_are_those_of_the_matrix(name: str, budget: float, a: float) -> None:
    cov = DESIGNS[name]
    matrix = Dense(cov.dense() + a * np.eye(cov.size))
    structured, dense = (
        pair_design(Problem(S, shift=3.0, n_anomalies=1, budget=budget), 60, 61) for S in (with_ridge(cov, a), matrix)
    )
    assert structured.kkt_residual < 1e-8
    assert structured.budget_active == dense.budget_active
    assert_allclose(structured.information, dense.information, rtol=1e-9)
    assert_allclose(structured.weights, dense.weights, atol=1e-8)


@pytest.mark.parametrize("budget", [5.0, 0.5, 0.4])
@pytest.mark.parametrize("a", [0.05, 1.0])
def test_a_million_streams(budget: float, a: float) -> None:
    """Far from the ends the design for 10^6 streams is that of a short stretch around each stream."""
    K, i, j = 1_000_000, 400_000, 700_000
    large = pair_design(Problem(with_ridge(AR1(K, 0.8), a), shift=3.0, n_anomalies=1, budget=budget), i, j)
    small = pair_design(Problem(with_ridge(AR1(800, 0.8), a), shift=3.0, n_anomalies=1, budget=budget), 200, 600)
    assert large.kkt_residual < 1e-8
    assert large.budget_active == small.budget_active
    assert_allclose(large.information, small.information, rtol=1e-9)
    assert_allclose(large.weights[i - 9 : i + 10], small.weights[191:210], atol=1e-12)


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
