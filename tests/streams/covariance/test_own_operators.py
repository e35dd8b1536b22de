"""A user's own operator, known by its product and its solution alone, does all that the package's own do."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.sparse.linalg import LinearOperator, splu

from eccaht import Problem, Simulator, make_policy, pair_design
from eccaht.base.arrays import Array, Index
from eccaht.checks import check_covariance
from eccaht.streams.covariance import AR1, BlockDiagonal, Covariance, Dense, Kronecker, Ridged, with_ridge
from eccaht.streams.measurements import Budget


class Laplacian(Covariance):
    """(L + c I)^-1 for the Laplacian L of a ring with chords: a smooth field on a graph."""

    def __init__(self, size: int, leak: float = 0.5) -> None:
        self.size, self._leak = size, leak
        k = np.arange(size)
        half = sp.coo_array((np.ones(2 * size), (np.tile(k, 2), np.append((k + 1) % size, (k + 5) % size))))
        links = sp.csc_array(half + half.T)
        degree = np.asarray(links.sum(axis=0)).ravel()
        self._precision = sp.csc_array(sp.diags_array(degree + leak) - links)

    def matvec(self, c: Array) -> Array:
        return np.asarray(splu(self._precision).solve(np.ascontiguousarray(c)))

    def solve(self, b: Array) -> Array:
        return np.asarray(self._precision @ b)


class ProductOnly(Covariance):
    """Nothing but a size and a product."""

    def __init__(self, matrix: Array) -> None:
        self.size, self.matrix = len(matrix), matrix

    def matvec(self, c: Array) -> Array:
        return self.matrix @ c


class Doubled(AR1):
    """Changes what S is: the ridge of its parent would be wrong."""

    def matvec(self, c: Array) -> Array:
        return 2.0 * super().matvec(c)

    def solve(self, b: Array) -> Array:
        return 0.5 * super().solve(b)

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        return 0.5 * super().solve_sparse(indices, values)

    def column(self, k: int) -> Array:
        return 2.0 * super().column(k)

    def diagonal(self) -> Array:
        return 2.0 * super().diagonal()

    def quad(self, c: Array) -> float:
        return 2.0 * super().quad(c)


K = 24
OWN: dict[str, Covariance] = {
    "laplacian": Laplacian(K),
    "product only": ProductOnly(Laplacian(K).dense()),
    "doubled": Doubled(K, 0.6),
    "in a block": BlockDiagonal([Laplacian(K // 2), Laplacian(K // 2)]),
    "crossed": Kronecker(AR1(2, 0.4), Laplacian(K // 2)),
    "scaled": Kronecker([[2.0]], Laplacian(K)),
}


@pytest.fixture(params=OWN)
def own(request: pytest.FixtureRequest) -> Covariance:
    return OWN[request.param]


def twin(cov: Covariance) -> Dense:
    """The same covariance as a matrix."""
    return Dense(np.column_stack([cov.matvec(unit) for unit in np.eye(cov.size)]))


def test_it_does_what_its_matrix_does(own: Covariance) -> None:
    """`Doubled` forgot its noise and its spectrum, which is its own affair."""
    forgot = ("eigenvalues", "color", "sample") if isinstance(own, Doubled) else ()
    check_covariance(own, skip=dict.fromkeys((*forgot, "parameters"), "not declared"))


def test_a_subclass_that_changes_nothing_keeps_the_rules_of_its_parent() -> None:
    class Named(AR1):
        """The same covariance."""

    assert isinstance(with_ridge(Named(10**6, 0.5), 1.0), Ridged)
    with pytest.raises(ValueError, match="Doubled: use with_ridge"):
        Ridged(Doubled(4, 0.5), 1.0)


@pytest.mark.parametrize("name", ["ecc-aht", "joint", "joint-pair", "exact", "combgape", "robust"])
def test_searches_run_as_with_the_matrix(name: str) -> None:
    """Same seeds, same world: the same sets, and measurements that agree."""
    own = OWN["laplacian"]
    problems = [Problem(S, shift=2.0, n_anomalies=2, budget=4.0, readout_noise=0.1) for S in (own, twin(own))]
    policies = [make_policy(name, problem, seed=3, stopping=None, regularize=0.02) for problem in problems]
    world = Simulator(problems[1], seed=1, anomalies=[4, 17])
    for _ in range(25):
        asked = [policy.ask() for policy in policies]
        assert_allclose(asked[0], asked[1], atol=1e-6)
        y = world.measure(asked[0])
        for policy in policies:
            policy.tell(asked[0], y)
        assert_allclose(policies[0].scores, policies[1].scores, rtol=1e-6, atol=1e-6)
        assert np.array_equal(policies[0].decision, policies[1].decision)


def test_the_design_is_that_of_the_matrix_also_where_the_budget_binds(own: Covariance) -> None:
    for limit in (0.55, 20.0):
        mine, matrix = (
            pair_design(Problem(S, shift=2.0, n_anomalies=1, measurements=Budget(limit)), 3, 11)
            for S in (own, twin(own))
        )
        assert mine.budget_active == matrix.budget_active
        assert mine.kkt_residual < 1e-8
        assert_allclose(mine.weights, matrix.weights, atol=1e-8)


def test_a_wrong_solution_is_refused_not_used() -> None:
    class Careless(Laplacian):
        def solve(self, b: Array) -> Array:
            return 1.5 * super().solve(b) + 0.1 * b

    with pytest.raises(ArithmeticError, match="relative error"):
        pair_design(Problem(Careless(K), shift=2.0, n_anomalies=1, budget=50.0), 0, 1)


class Large(Covariance):
    """More streams than a full matrix may have."""

    size = 20_000

    def matvec(self, c: Array) -> Array:
        return 2.0 * c


@pytest.mark.parametrize("method", ["solve", "color", "plus_identity", "eigenvalues"])
def test_beyond_a_full_matrix_the_error_names_the_method_to_define(method: str) -> None:
    arguments = {"solve": (np.ones(20_000),), "color": (np.ones(20_000),), "plus_identity": (1.0,), "eigenvalues": ()}
    with pytest.raises(ValueError, match=rf"Large has 20000 streams.*define its {method}\(\)"):
        getattr(Large(), method)(*arguments[method])


def test_a_diagonal_needs_no_full_matrix() -> None:
    assert_allclose(Large().diagonal(), 2.0)


def test_an_object_that_only_looks_like_an_operator_is_refused() -> None:
    foreign = LinearOperator((3, 3), matvec=lambda c: c)
    with pytest.raises(ValueError, match="no covariance operator"):
        Problem(foreign, shift=1.0, n_anomalies=1, budget=2.0)


def test_it_travels_but_is_not_saved(tmp_path: Path) -> None:
    problem = Problem(OWN["laplacian"], shift=2.0, n_anomalies=1, budget=4.0)
    again = pickle.loads(pickle.dumps(problem))
    assert_allclose(again.covariance.dense(), problem.covariance.dense())
    with pytest.raises(ValueError, match="type Laplacian cannot be saved"):
        make_policy("ecc-aht", problem).save(tmp_path / "policy")


def test_a_namesake_of_one_of_ours_is_not_saved_as_ours(tmp_path: Path) -> None:
    namesake = type("Dense", (ProductOnly,), {})
    with pytest.raises(ValueError, match="type Dense cannot be saved"):
        make_policy("ecc-aht", Problem(namesake(np.eye(4)), shift=2.0, n_anomalies=1, budget=4.0)).save(tmp_path / "p")
