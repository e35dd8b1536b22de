"""The best search against Wald's test, against itself without symmetry, and against what searches attain."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from benchmarks import best_search
from benchmarks.best_search import BeliefGrid, isometries_of, optimal_search
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from eccaht import Problem, families
from eccaht.base.arrays import Array

TWO = Problem(np.eye(2), shift=1.0, n_anomalies=1, budget=100.0)
THREE = Problem(families.toeplitz(3, 0.5), shift=1.0, n_anomalies=1, budget=100.0)
PAIRS = Problem(np.eye(4), shift=2.0, n_anomalies=2, budget=100.0)


def wald(threshold: float, drift: float) -> tuple[float, float]:
    """Mean length and error of the test that stops where the log-odds leave (-threshold, threshold), started at 0.

    Steps are N(drift, 2 drift). The two integral equations are solved with Gauss-Legendre points (Nystrom).
    """
    points, weights = np.polynomial.legendre.leggauss(60)
    points, weights, spread = threshold * points, threshold * weights, math.sqrt(2.0 * drift)

    def kernel(start: Array) -> Array:
        z = (points - start[:, None] - drift) / spread
        return np.asarray(weights * np.exp(-0.5 * z**2) / (spread * math.sqrt(2.0 * math.pi)))

    below, origin = ndtr((-threshold - points - drift) / spread), np.zeros(1)
    length, error = np.linalg.solve(np.eye(60) - kernel(points), np.column_stack([np.ones(60), below])).T
    first = kernel(origin)[0]
    return 1.0 + float(first @ length), float(first @ error + ndtr((-threshold - drift) / spread))


@pytest.mark.parametrize("penalty", [15.0, 50.0, 200.0])
def test_two_sets_are_walds_test_with_the_best_threshold(penalty: float) -> None:
    """The best search of two sets repeats one measurement, by |x1 - x2|^2 / 2 = 1 nat a reading."""

    def cost(threshold: float) -> float:
        length, error = wald(threshold, 1.0)
        return length + penalty * error

    best = minimize_scalar(cost, bounds=(0.5, 6.0), method="bounded").fun
    values = [optimal_search(TWO, penalty, intervals=n, step=0.1).value for n in (20, 80, 320)]
    assert values[0] < values[1] < values[2] < best + 1e-4
    assert values[2] == pytest.approx(best, rel=1e-3)


def test_walds_solution_agrees_with_siegmunds_approximation() -> None:
    """Boundaries that are moved out by 0.583 steps for the overshoot; this checks the check above."""
    drift, threshold = 0.02, 3.0
    moved = threshold + 0.583 * math.sqrt(2.0 * drift)
    error = 1.0 / (1.0 + math.exp(moved))
    expected = (1.0 - 2.0 * error) * moved / drift, error
    assert wald(threshold, drift) == pytest.approx(expected, rel=5e-3)


def test_interpolation_is_exact_for_linear_and_below_concave_functions() -> None:
    rng = np.random.default_rng(0)
    grid = BeliefGrid(7, np.arange(4)[None])
    q = rng.random((500, 4)) ** 4
    classes, weights = grid.corners(q)
    assert (weights[..., None] * grid.points[classes]).sum(axis=-2) == pytest.approx(q)
    assert weights.min() >= 0.0
    functions: tuple[Callable[[Array], Array], ...] = (
        lambda p: np.exp(np.log(np.maximum(p, 1e-300)).mean(axis=-1)),
        lambda p: np.sqrt(p).sum(axis=-1) ** 2,
    )
    loss = q.sum(axis=1) - q.max(axis=1)  # of stopping: linear where one set is the likeliest
    assert (weights * (grid.points.sum(axis=1) - 1.0)[classes]).sum(axis=-1) == pytest.approx(loss)
    for concave in functions:
        between = (weights * concave(grid.points)[classes]).sum(axis=-1)
        assert (between <= concave(q) + 1e-12).all()
        assert (between < concave(q) - 1e-4).any()


def test_symmetry_changes_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    found = optimal_search(THREE, 40.0, intervals=6)
    monkeypatch.setattr(best_search, "isometries_of", lambda x: np.arange(len(x))[None])
    alone = optimal_search(THREE, 40.0, intervals=6)
    assert len(alone.grid.points) > 1.6 * len(found.grid.points)
    assert alone.value == pytest.approx(found.value, rel=3e-4)  # directions are refined from elsewhere


def test_isometries_are_those_of_the_simplex_and_of_the_octahedron() -> None:
    assert len(isometries_of(np.eye(4))) == math.factorial(4)
    assert len(isometries_of(np.vstack([np.eye(3), -np.eye(3)]))) == 48
    assert len(isometries_of(best_search.white_means(THREE))) == 2


@pytest.mark.parametrize(("problem", "intervals", "gap"), [(THREE, 10, 0.05), (PAIRS, 3, 0.25)], ids=["three", "pairs"])
def test_searches_by_the_values_cost_what_the_values_say(problem: Problem, intervals: int, gap: float) -> None:
    """The value bounds the mean cost from below, and the search that follows it comes within the grid's error."""
    best = optimal_search(problem, 40.0, intervals=intervals, directions=24)
    readings, doubts = best.simulate(np.random.default_rng(1), 2000)
    costs = readings + 40.0 * doubts
    spread = float(costs.std() / math.sqrt(costs.size))
    assert best.value - 3.0 * spread <= costs.mean() <= (1.0 + gap) * best.value + 3.0 * spread


def test_more_sets_than_can_be_solved_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 6 possible sets, not 10"):
        optimal_search(Problem(np.eye(5), shift=1.0, n_anomalies=2, budget=9.0), 40.0, intervals=4)
    with pytest.raises(ValueError, match="intervals"):
        optimal_search(TWO, 40.0, intervals=1)
    with pytest.raises(ValueError, match="penalty must be positive"):
        optimal_search(TWO, -1.0, intervals=4)
