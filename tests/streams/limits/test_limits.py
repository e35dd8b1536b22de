"""Information limits against enumeration, closed forms and an independent solver."""

import math
from itertools import combinations
from typing import Any

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.limits import capacity_bound, diagonal_rate, entropy_bound

from eccaht import Problem, families
from eccaht.base.arrays import Array, Index
from eccaht.streams.limits import rates as rates_module, rivals as rivals_module
from eccaht.streams.limits.mixture import best_action, best_mix
from eccaht.streams.limits.rates import gamma_star, least_measurements
from eccaht.streams.limits.rivals import hardest_rivals
from eccaht.streams.sets import SetPrior
from eccaht.streams.shifts import UnknownShift


def random_covariance(K: int, seed: int, spread: float = 1.0) -> Array:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((K, 3 * K)) * np.exp(spread * rng.standard_normal((K, 1)))
    mixed: Array = rng.standard_normal((K, K)) @ X
    S: Array = mixed @ mixed.T
    scale = 1.0 / np.sqrt(S.diagonal())
    return S * scale[:, None] * scale


def differences(problem: Problem, truth: list[int]) -> Array:
    """mu_A - mu_A' for every rival A', one a row."""
    K, rows = problem.size, []
    for rival in combinations(range(K), len(truth)):
        if list(rival) != truth:
            z = np.zeros(K)
            z[truth] += 1.0
            z[list(rival)] -= 1.0
            rows.append(z * problem.shift)
    return np.array(rows)


def whitened(problem: Problem, D: Array) -> Array:
    return np.linalg.solve(np.linalg.cholesky(problem.covariance.dense()), D.T)


def mix_by_clarabel(d: Array) -> float:
    """max t subject to tr W = 1, W psd and d_k'W d_k / 2 >= t."""
    K, N = d.shape
    rows, columns = np.triu_indices(K)
    order = np.lexsort((rows, columns))  # upper triangle, column by column
    rows, columns = rows[order], columns[order]
    weight = np.where(rows == columns, 1.0, math.sqrt(2.0))  # so that products of triangles are traces
    size = rows.size
    outer = d[rows] * d[columns] * weight[:, None] / 2.0
    A = np.vstack(
        [
            np.append((rows == columns).astype(float), 0.0),
            np.column_stack([-outer.T, np.ones(N)]),
            np.column_stack([-np.eye(size), np.zeros(size)]),
        ]
    )
    b = np.concatenate([[1.0], np.zeros(N), np.zeros(size)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(N), clarabel.PSDTriangleConeT(K)]
    objective = np.append(np.zeros(size), -1.0)
    empty = sp.csc_matrix((size + 1, size + 1))
    solution = clarabel.DefaultSolver(empty, objective, sp.csc_matrix(A), b, cones, settings).solve()
    return float(-solution.obj_val)


PROBLEMS = {
    "toeplitz": Problem(families.toeplitz(8, 0.8), shift=3.0, n_anomalies=2, budget=5.0),
    "mixed shifts": Problem(families.block(9, 0.6, 3), shift=[3, -2, 1, 1, 2, -1, 3, 2, 1], n_anomalies=3, budget=50.0),
    "random": Problem(random_covariance(8, 1), shift=2.0, n_anomalies=3, budget=50.0),
    "most": Problem(random_covariance(6, 2), shift=2.0, n_anomalies=5, budget=50.0),
    "one": Problem(random_covariance(7, 3), shift=1.0, n_anomalies=1, budget=50.0),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_mix_is_that_of_an_independent_solver_with_every_rival(name: str) -> None:
    problem = PROBLEMS[name]
    truth = [1, 2, 4, 0, 3][: problem.known_number]
    rate = gamma_star(problem, truth, mix=True)
    value = mix_by_clarabel(whitened(problem, differences(problem, sorted(truth))))
    assert rate.proven
    assert rate.lower <= value * (1 + 1e-6)
    assert rate.upper >= value * (1 - 1e-6)
    assert rate.upper - rate.lower <= 1e-3 * value


@pytest.mark.parametrize("name", PROBLEMS)
def test_one_action_attains_its_rate_and_stays_below_the_mix(name: str) -> None:
    problem = PROBLEMS[name]
    truth = np.sort([1, 2, 4, 0, 3][: problem.known_number])
    single, mix = gamma_star(problem, truth), gamma_star(problem, truth, mix=True)
    action = best_action(problem, truth, limited=True)
    assert action.weights is not None
    contrasts = differences(problem, truth.tolist()) @ action.weights
    noise = problem.covariance.quad(action.weights)
    assert single.lower == pytest.approx(float((contrasts**2).min()) / (2.0 * noise), rel=1e-6)
    assert single.lower <= single.upper
    assert single.upper == pytest.approx(mix.upper, rel=1e-3)
    assert np.abs(action.weights).sum() <= problem.budget * (1 + 1e-9)


def test_one_action_is_the_distance_of_the_mean_from_the_hull_of_the_rivals() -> None:
    problem = PROBLEMS["random"]
    truth = np.array([1, 2, 4])
    d = whitened(problem, differences(problem, truth.tolist()))
    N = d.shape[1]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    A = sp.csc_matrix(np.vstack([np.ones(N), -np.eye(N)]))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(N)]
    P = sp.csc_matrix(np.triu(d.T @ d))
    hull = clarabel.DefaultSolver(P, np.zeros(N), A, np.append(1.0, np.zeros(N)), cones, settings).solve().obj_val
    assert best_action(problem, truth, limited=False).rate == pytest.approx(hull, rel=1e-5)


def test_no_direction_of_a_fine_grid_beats_the_bounds() -> None:
    """K = 3, n = 1: every action up to scale and sign is a point of a half sphere."""
    problem = Problem(random_covariance(3, 5), shift=[1.0, -2.0, 1.5], n_anomalies=1, budget=50.0)
    angle, height = np.meshgrid(np.linspace(0, 2 * np.pi, 1201), np.linspace(0, np.pi / 2, 301))
    c = np.stack([np.cos(angle) * np.sin(height), np.sin(angle) * np.sin(height), np.cos(height)]).reshape(3, -1)
    noise = np.einsum("ik,ik->k", c, problem.covariance.matvec(c))
    for truth in range(3):
        best = float(((differences(problem, [truth]) @ c) ** 2 / (2.0 * noise)).min(axis=0).max())
        rate = gamma_star(problem, [truth], limited=False)
        assert rate.lower * (1 - 1e-3) <= best <= rate.upper * (1 + 1e-9)


@pytest.mark.parametrize("shift", [3.0, [1.0, -2.0, 3.0, 1.0, 2.0, -1.0]])
def test_independent_streams_have_a_closed_form(shift: float | list[float]) -> None:
    variances = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
    problem = Problem(np.diag(variances), shift=shift, n_anomalies=2, budget=50.0)
    single, mix = gamma_star(problem, [0, 4]), gamma_star(problem, [0, 4], mix=True)
    exact = diagonal_rate(problem, [0, 4])
    assert single.lower == pytest.approx(exact, rel=1e-6)
    assert mix.lower <= exact * (1 + 1e-9)
    assert mix.upper == pytest.approx(exact, rel=1e-3)
    equal = Problem(np.eye(10), shift=3.0, n_anomalies=2, budget=5.0)
    assert diagonal_rate(equal, [3, 7]) == pytest.approx(0.5 * 9.0 * (1 / 2 + 1 / 8))


def test_the_budget_binds_only_where_it_is_short() -> None:
    problem = Problem(families.kronecker(0.8, shape=(3, 4)), shift=3.0, n_anomalies=2, budget=50.0)
    free = gamma_star(problem, [1, 2])
    assert not free.budget_active
    tight = gamma_star(problem.replace(budget=0.8), [1, 2])
    assert tight.budget_active
    assert 0.0 < tight.lower < free.lower
    action = best_action(problem.replace(budget=0.8), np.array([1, 2]), limited=True)
    assert action.weights is not None
    assert np.abs(action.weights).sum() == pytest.approx(0.8)
    assert tight.lower == pytest.approx(limited_by_clarabel(problem, [1, 2], 0.8), rel=1e-6)
    none = gamma_star(problem.replace(budget=0.6), [1, 2])  # two streams of shift 3 need 2/3
    assert (none.lower, none.budget_active) == (0.0, True)
    assert gamma_star(problem.replace(budget=0.6), [1, 2], limited=False).lower == pytest.approx(free.lower)


def limited_by_clarabel(problem: Problem, truth: list[int], budget: float) -> float:
    """1 / (2 min c'S c) over the single swaps, c = p - m."""
    K = problem.size
    side = np.full(K, -1.0)
    side[truth] = 1.0
    swaps = np.array([row for row in differences(problem, truth) if (row != 0).sum() == 2])
    S = problem.covariance.dense()
    A = np.vstack([np.column_stack([-swaps, swaps]), np.ones(2 * K), -np.eye(2 * K)])
    b = np.concatenate([np.full(len(swaps), -1.0), [budget], np.zeros(2 * K)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = 1e-12
    P = sp.csc_matrix(np.triu(np.block([[S, -S], [-S, S]])))
    cones = [clarabel.NonnegativeConeT(len(A))]
    return 0.25 / float(
        clarabel.DefaultSolver(P, np.zeros(2 * K), sp.csc_matrix(A), b, cones, settings).solve().obj_val
    )


def all_values(R: Array, truth: Index) -> Array:
    values = []
    for rival in combinations(range(len(R)), truth.size):
        z = np.zeros(len(R))
        z[truth] += 1.0
        z[list(rival)] -= 1.0
        if z.any():
            values.append(0.5 * z @ R @ z)
    return np.sort(values)


@pytest.mark.parametrize("rank", [1, 2, 10])
@pytest.mark.parametrize("largest", [10**9, 100, 0])
def test_the_hardest_rival_is_found_and_what_is_proven_is_true(
    rank: int, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By enumeration, by enumeration of single swaps alone, and by relaxation and search alone."""
    monkeypatch.setattr(rivals_module, "_LARGEST", largest)
    truth = np.array([0, 3, 5])
    for seed in range(10):
        X = np.random.default_rng([seed, rank]).standard_normal((rank, 10))
        R = X.T @ X
        exact = all_values(R, truth)
        bounds = hardest_rivals(R, truth, aim=math.inf)
        assert bounds.proven <= exact[0] + 1e-12
        assert bounds.found >= exact[0] - 1e-12
        if largest == 10**9:
            assert bounds.proven == pytest.approx(exact[0], rel=1e-9)
            assert bounds.found == pytest.approx(exact[0], rel=1e-9)
        z = np.zeros(10)
        z[truth] += 1.0
        z[bounds.rivals[0]] -= 1.0
        assert 0.5 * z @ R @ z == pytest.approx(bounds.found)
        assert z.any()


def test_bounds_hold_without_enumeration_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(random_covariance(12, 8), shift=2.0, n_anomalies=4, budget=50.0)
    exact = gamma_star(problem, [0, 3, 5, 6], mix=True)
    monkeypatch.setattr(rivals_module, "_LARGEST", 100)
    monkeypatch.setattr(rates_module, "_ROUNDS", 6)
    searched = gamma_star(problem, [0, 3, 5, 6], mix=True)
    assert searched.lower <= exact.upper
    assert searched.upper >= exact.lower
    assert searched.lower <= searched.found
    assert searched.proven == (searched.lower >= searched.found * (1 - 1e-9))


def test_double_swaps_can_be_the_hardest_rivals() -> None:
    """Two neighbours of a row against the two beside them: the mix that is best for single swaps overlooks them."""
    problem = Problem(families.toeplitz(12, 0.8), shift=3.0, n_anomalies=3, budget=50.0)
    truth = [4, 5, 9]
    D = differences(problem, truth)
    single = D[(D != 0).sum(axis=1) == 2]
    with_all, with_single = (best_mix(whitened(problem, rows), 1e-6) for rows in (D, single))
    rate = gamma_star(problem, truth, mix=True)
    assert 0.5 * with_all.upper < 0.5 * with_single.lower * (1 - 1e-3)
    assert rate.lower <= 0.5 * with_all.upper * (1 + 1e-9)
    assert rate.upper == pytest.approx(0.5 * with_all.upper, rel=1e-3)


def test_the_lower_bound_is_the_divergence_of_two_coins_over_the_rate() -> None:
    alpha, rate = 0.01, 0.4
    divergence = alpha * math.log(alpha / (1 - alpha)) + (1 - alpha) * math.log((1 - alpha) / alpha)
    assert least_measurements(rate, alpha) == pytest.approx(divergence / rate)
    assert least_measurements(rate, 1e-12) == pytest.approx(math.log(1e12) / rate, rel=1e-9)
    assert least_measurements(rate, 0.5) == least_measurements(rate, 0.7) == 0.0


def test_the_prior_ratio_and_the_entropy_are_those_of_the_enumerated_sets() -> None:
    for sizes in (3, (0, 3)):
        S = random_covariance(7, 4)
        problem = Problem(S, shift=[1, 2, -1, 3, 1, 1, 2], n_anomalies=sizes, budget=9.0)
        least, most = problem.sizes
        x, p = [], []
        for size in range(least, most + 1):
            for members in combinations(range(7), size):
                z = np.zeros(7)
                z[list(members)] = 1.0
                x.append(z * problem.shift)
                p.append(math.exp(SetPrior(7, least, most).log_prior[size]))
        chances = np.array(p)
        assert chances.sum() == pytest.approx(1.0)
        covariance = np.cov(np.array(x).T, aweights=chances, ddof=0)
        top = float(np.linalg.eigvals(np.linalg.solve(S, covariance)).real.max())
        bound = entropy_bound(problem, alpha=0.01)
        assert bound.entropy == pytest.approx(float(-chances @ np.log(chances)))
        assert bound.first_reading == pytest.approx(0.5 * math.log(1.0 + top))
        widest = max(
            float((a - b) @ np.linalg.solve(S, a - b)) / 4.0 for a, b in combinations([np.array(v) for v in x], 2)
        )
        assert bound.any_reading >= capacity_bound(math.sqrt(widest)) - 1e-12
        assert 0.0 < bound.needed < bound.entropy


def information(means: Array, chances: Array) -> float:
    """Of a reading N(mean, 1), by numerical integration."""
    y = np.linspace(means.min() - 8.0, means.max() + 8.0, 2001)
    law = np.exp(-0.5 * (y - means[:, None]) ** 2) / math.sqrt(2.0 * math.pi)
    density = chances @ law
    return float(-(y[1] - y[0]) * (density @ np.log(density)) - 0.5 * math.log(2.0 * math.pi * math.e))


@pytest.mark.parametrize("amplitude", [0.1, 0.7, 1.26, 2.0, 5.0, 20.0])
def test_no_law_of_the_mean_says_more_than_the_capacity_bound(amplitude: float) -> None:
    """Two ends, evenly spaced points and random laws within the interval; the bound is within a fifth of the best."""
    rng, bound = np.random.default_rng(3), capacity_bound(amplitude)
    laws = [(np.linspace(-amplitude, amplitude, m), np.full(m, 1.0 / m)) for m in range(2, 30)]
    laws += [(amplitude * rng.uniform(-1.0, 1.0, 9), rng.dirichlet(np.full(9, 0.5))) for _ in range(30)]
    told = [information(means, chances) for means, chances in laws]
    assert max(told) <= bound <= 1.2 * max(told)


def test_planned_readings_say_what_the_determinant_allows() -> None:
    """Random plans never exceed the poured bound, and equal ratios reach it."""
    problem = Problem(random_covariance(6, 9), shift=2.0, n_anomalies=2, budget=9.0)
    bound, rng = entropy_bound(problem, alpha=0.001), np.random.default_rng(0)
    S = problem.covariance.dense()
    p, q = 2 / 6, 2 / 30
    covariance = 4.0 * (np.full((6, 6), q - p**2) + (p - q) * np.eye(6))
    T = bound.fixed_plan - 1
    for _ in range(200):
        C = rng.standard_normal((T, 6))
        noise = np.einsum("ti,ij,tj->t", C, S, C)
        C /= np.sqrt(noise)[:, None]
        assert 0.5 * np.linalg.slogdet(np.eye(T) + C @ covariance @ C.T)[1] < bound.needed
    flat = entropy_bound(Problem(np.eye(20), shift=6.0, n_anomalies=2, budget=9.0), alpha=0.2)
    assert flat.fixed_plan <= 19
    assert flat.fixed_plan == math.ceil(flat.needed / flat.first_reading)


REFUSED: dict[str, dict[str, Any]] = {
    "number of anomalies": {"n_anomalies": (1, 2)},
    "UnknownShift": {"shift": UnknownShift(2.0)},
    "readout_noise": {"readout_noise": 1.0},
    "up to 512 streams": {"covariance": families.identity(600)},
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_the_limits_do_not_cover_is_refused_by_name(words: str) -> None:
    arguments: dict[str, Any] = {
        "covariance": np.eye(6),
        "shift": 2.0,
        "n_anomalies": 2,
        "budget": 5.0,
        **REFUSED[words],
    }
    problem = Problem(arguments.pop("covariance"), **arguments)
    with pytest.raises(ValueError, match=words):
        gamma_star(problem, [0, 1])
