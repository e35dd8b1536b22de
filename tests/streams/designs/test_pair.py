"""The pair design is optimal: an interior-point solver and the KKT conditions agree."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht import Problem, families, pair_design
from eccaht.base.arrays import Array
from eccaht.streams.covariance import AR1, Covariance, Dense
from tests.checks.covariances import factor_model, grid, wishart
from tests.checks.reference import bound_by_convexity, budget_range, contrast, solve_by_interior_point

FAMILIES: dict[str, Callable[[int, float, int], Covariance]] = {
    "toeplitz": lambda K, rho, _: families.toeplitz(K, rho),
    "toeplitz-negative": lambda K, rho, _: families.toeplitz(K, -rho),
    "equicorrelation": lambda K, rho, _: families.equicorrelation(K, rho),
    "block": lambda K, rho, seed: families.block(K, rho, size=1 + seed % 17),
    "circulant": lambda K, rho, _: families.circulant(K, rho),
    "graph": lambda K, rho, seed: families.graph(K, rho, p=0.2, seed=seed),
    "rbf": lambda K, rho, _: families.rbf(K, rho=rho),
    "kronecker": lambda K, rho, _: families.kronecker(rho, shape=(max(K // 5, 1), 5)),
    "mixture": lambda K, rho, seed: families.spectral_mixture(K, rho, seed, unit_variance=True),
    "identity": lambda K, _, __: families.identity(K),
    "wishart": lambda K, _, seed: wishart(K, seed),
    "factor": lambda K, _, seed: factor_model(K, seed),
    "grid": lambda K, _, __: grid(max(int(K**0.5), 2)),
}


def shifts(kind: int, K: int, rng: np.random.Generator) -> Array:
    signs = rng.choice([-1.0, 1.0], K)
    return [np.full(K, 3.0), 2.0 * signs, signs * rng.uniform(0.5, 4.0, K), rng.choice([1.0, 2.0], K)][kind]


def check(cov: Covariance, shift: Array, budget: float, i: int, j: int) -> None:
    S, D = cov.dense(), contrast(shift, i, j)
    design = pair_design(Problem(cov, shift=shift, n_anomalies=1, budget=budget), i, j)
    c = design.weights / (D @ design.weights)
    value = c @ S @ c
    assert_allclose(np.abs(design.weights).sum(), budget, rtol=1e-12)
    assert np.abs(c).sum() <= budget * (1 + 1e-9)
    assert design.kkt_residual < 1e-6  # conditions of 1e8 times rounding of 1e-16, and a factor of 100
    assert_allclose(design.information, 0.5 / value, rtol=1e-6)
    assert_allclose(bound_by_convexity(S, D, budget, c), value, rtol=1e-6)  # no other measurement has less noise
    found = solve_by_interior_point(S, D, budget)
    if found is not None:
        assert_allclose(value, found, rtol=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("kind", range(4))
def test_agrees_with_an_interior_point_solver(name: str, kind: int) -> None:
    rng = np.random.default_rng([kind, *name.encode()])
    for _ in range(2):
        K = int(rng.integers(2, 60))
        cov = FAMILIES[name](K, float(rng.uniform(0.0, 0.95)), int(rng.integers(100)))
        shift = shifts(kind, cov.size, rng)
        i, j = (int(k) for k in rng.choice(cov.size, 2, replace=False))
        least, most = budget_range(cov.dense(), contrast(shift, i, j))
        for share in (0.0, float(rng.uniform(0.01, 0.99)), 0.999, 1.5):  # from barely feasible to not binding
            check(cov, shift, least + share * (most - least) if share <= 1 else share * most, i, j)


@pytest.mark.parametrize("name", ["toeplitz", "graph", "mixture", "wishart", "factor"])
def test_agrees_at_300_streams(name: str) -> None:
    """Larger than the first working set, so that streams have to be added to it."""
    rng = np.random.default_rng(300)
    cov = FAMILIES[name](300, 0.8, 7)
    shift = shifts(2, cov.size, rng)
    i, j = (int(k) for k in rng.choice(cov.size, 2, replace=False))
    least, most = budget_range(cov.dense(), contrast(shift, i, j))
    check(cov, shift, least + 0.7 * (most - least), i, j)


def test_closed_form_where_the_limit_does_not_bind() -> None:
    cov = families.toeplitz(50, 0.8)
    design = pair_design(Problem(cov, shift=3.0, n_anomalies=2, budget=5.0), 10, 30)
    D = contrast(np.full(50, 3.0), 10, 30)
    best = np.linalg.solve(cov.dense(), D)
    assert not design.budget_active
    assert_allclose(design.weights, 5.0 * best / np.abs(best).sum(), atol=1e-12)
    assert_allclose(design.information, 0.5 * D @ best)


def test_ties_are_exact() -> None:
    """Symmetric neighbours get the same weight, and all equicorrelated bystanders do."""
    problem = Problem(AR1(4001, 0.9), shift=2.0, n_anomalies=1, budget=0.6)
    design = pair_design(problem, 1000, 3000)
    c = design.weights
    assert design.budget_active
    assert c[999] < 0
    assert_allclose(c[999], c[1001], rtol=1e-12)
    assert_allclose(c, -c[::-1], atol=1e-12)
    shift = np.full(60, 1.0)
    shift[7] = 2.5
    problem = Problem(families.equicorrelation(60, 0.9), shift=shift, n_anomalies=1, budget=0.6)
    design = pair_design(problem, 7, 8)
    bystanders = np.delete(design.weights, [7, 8])
    assert design.budget_active
    assert np.ptp(bystanders) < 1e-12
    assert abs(bystanders[0]) > 0


def test_order_and_relabelling() -> None:
    cov, shift = wishart(20, 1), np.random.default_rng(1).uniform(-3, -1, 20)
    for budget in (0.6, 50.0):
        problem = Problem(cov, shift=shift, n_anomalies=1, budget=budget)
        c = pair_design(problem, 3, 9).weights
        assert_allclose(pair_design(problem, 9, 3).weights, -c, atol=1e-10)
        turn = np.random.default_rng(2).permutation(20)
        turned = Problem(Dense(cov.dense()[np.ix_(turn, turn)]), shift=shift[turn], n_anomalies=1, budget=budget)
        place = np.argsort(turn)
        assert_allclose(pair_design(turned, int(place[3]), int(place[9])).weights, c[turn], atol=1e-9)


def test_a_million_streams_need_only_columns() -> None:
    """Far from the ends the design for 10^6 streams is that of a short stretch around each stream."""
    K, i, j = 1_000_000, 400_000, 700_000
    for budget in (5.0, 0.5):
        large = pair_design(Problem(AR1(K, 0.8), shift=3.0, n_anomalies=1, budget=budget), i, j)
        small = pair_design(Problem(AR1(400, 0.8), shift=3.0, n_anomalies=1, budget=budget), 100, 300)
        assert large.kkt_residual < 1e-6
        assert_allclose(large.information, small.information, rtol=1e-9)
        assert_allclose(large.weights[i - 9 : i + 10], small.weights[91:110], atol=1e-12)


@pytest.mark.parametrize(("budget", "works"), [(0.333333, False), (1 / 3, True), (0.2, False)])
def test_an_infeasible_budget_names_streams_and_the_smallest_that_works(budget: float, works: bool) -> None:
    shift = np.ones(5)
    shift[1], shift[2] = 3.0, -2.0
    problem = Problem(np.eye(5), shift=shift, n_anomalies=1, budget=budget, names=list("abcde"))
    if works:
        assert pair_design(problem, 1, 2).budget_active
        return
    with pytest.raises(ValueError, match=r"'b' and 'c'.*at least 0.333334") as error:
        pair_design(problem, 1, 2)
    suggested = float(str(error.value).split("at least ")[1].split(";")[0])
    pair_design(problem.replace(budget=suggested), 1, 2)


def test_near_singular_covariances_are_refused_not_approximated() -> None:
    """Eigenvalues down to 1e-13: no float64 arithmetic cancels this noise to the accuracy asked for."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    cov = Dense((Q * np.logspace(-13.5, 0, 40)) @ Q.T)
    with pytest.raises(ArithmeticError, match="ridge"):
        pair_design(Problem(cov, shift=1.0, n_anomalies=1, budget=1e6), 0, 1)
