"""The most informative measurement."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize

from eccaht import Problem, families, pair_design
from eccaht.base.arrays import Array, Index
from eccaht.streams.designs.information import InformationDesign, _Information
from eccaht.streams.sets import Hypotheses


def plain(sets: Index, weights: Array, shift: Array) -> Hypotheses:
    """Sets as hypotheses, every stream with its known shift."""
    shifts = np.append(shift, 0.0)
    return Hypotheses.of_sets(sets, weights, shifts[sets[:, :-1]], np.tile(shifts, (len(sets), 1)))


def mutual_information(means: Array, weights: Array) -> float:
    """By numerical integration of the mixture's entropy."""

    def density(y: float) -> float:
        return float(weights @ np.exp(-0.5 * (y - means) ** 2)) / np.sqrt(2 * np.pi)

    entropy = quad(lambda y: -density(y) * np.log(density(y)), means.min() - 9, means.max() + 9, limit=400)[0]
    return float(entropy) - 0.5 * math.log(2 * math.pi * math.e)


def test_information_of_a_reading() -> None:
    rng = np.random.default_rng(0)
    for spread in (0.3, 1.0, 4.0):
        means, weights = spread * rng.standard_normal(6), rng.dirichlet(np.ones(6))
        found, _ = _Information(weights).judge(means)
        assert_allclose(found, mutual_information(means, weights), rtol=0.03, atol=2e-3)


@pytest.mark.parametrize("budget", [5.0, 0.7])
@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.9, 0.1]])
def test_two_sets_give_the_pair_design(budget: float, weights: list[float]) -> None:
    """Where one swap is in doubt; also under a limit that binds, and with unequal shifts."""
    shift = np.full(20, 2.0)
    shift[7] = -3.0
    problem = Problem(families.toeplitz(20, 0.8), shift=shift, n_anomalies=3, budget=budget)
    hypotheses = plain(np.array([[1, 12, 4], [1, 12, 7]]), np.array(weights), shift)
    c = InformationDesign(problem)(hypotheses, np.random.default_rng(0))
    pair = pair_design(problem, 4, 7)
    assert pair.budget_active == (budget < 1.0)
    assert_allclose(c * np.sign(c @ pair.weights), pair.weights, atol=1e-6 * budget)


def test_noisy_readings_take_the_top_generalized_eigenvector() -> None:
    rng = np.random.default_rng(1)
    K = 8
    problem = Problem(families.equicorrelation(K, 0.3), shift=0.02, n_anomalies=2, budget=60.0)
    sets = np.array([rng.choice(K, 2, replace=False) for _ in range(12)])
    weights = rng.dirichlet(np.ones(12))
    x = np.zeros((12, K))
    x[np.arange(12)[:, None], sets] = 0.02
    centred = x - weights @ x
    covariance = (centred * weights[:, None]).T @ centred
    S = problem.covariance.dense()
    top = np.linalg.eigvals(np.linalg.solve(S, covariance)).real.max()
    design = InformationDesign(problem)
    reached = []
    for seed in range(5):
        c = design(plain(sets, weights, problem.shift), np.random.default_rng(seed))
        reached.append(float(c @ covariance @ c / (c @ S @ c)))
    assert max(reached) > 0.97 * top


def test_precise_readings_settle_several_streams_at_once() -> None:
    """The direction of largest variance asks about the one stream that is in half of the sets."""
    rng = np.random.default_rng(2)
    K = 20
    problem = Problem(families.identity(K), shift=12.0, n_anomalies=2, budget=5.0)
    pairs = np.array([rng.choice(np.arange(1, K), 2, replace=False) for _ in range(40)])
    pairs[:20, 0] = 0
    weights = np.full(40, 1 / 40)

    def information_of(c: Array) -> float:
        return mutual_information(12.0 * c[pairs].sum(axis=1) / np.linalg.norm(c), weights)

    hypotheses = plain(pairs, weights, problem.shift)
    reached = [information_of(InformationDesign(problem)(hypotheses, np.random.default_rng(s))) for s in range(5)]
    x = np.zeros((40, K))
    x[np.arange(40)[:, None], pairs] = 1.0
    top = np.linalg.svd(x - x.mean(axis=0))[2][0]
    assert max(reached) > information_of(top) + 0.1
    assert np.mean(reached) > np.mean([information_of(rng.standard_normal(K)) for _ in range(20)]) + 0.1


@pytest.mark.parametrize("doubt", [0.4, 0.6])
def test_one_measurement_asks_about_all_rivals_at_once(doubt: float) -> None:
    """Nothing is wrong, or one of 30 correlated streams is: the best measurement has signs that alternate."""
    K = 30
    problem = Problem(families.toeplitz(K, 0.8), shift=1.0, n_anomalies=(0, 1), budget=5.0)
    stream, chance = np.arange(K + 1), np.append(np.full(K, doubt / K), 1.0 - doubt)
    empty = np.zeros((1, 0))
    rows = np.zeros(K + 1, dtype=np.intp)
    hypotheses = Hypotheses(empty.astype(np.intp), empty, rows, stream, np.append(problem.shift, 0.0), chance)

    def information_of(c: Array) -> float:
        return mutual_information(np.append(c, 0.0) / np.sqrt(problem.noise_variance(c)), chance)

    alternating = information_of(np.where(np.arange(K) % 2, -1.0, 1.0))
    reached = [information_of(InformationDesign(problem)(hypotheses, np.random.default_rng(s))) for s in range(8)]
    assert min(reached) > 0.9 * alternating
    assert alternating > 5.0 * information_of(np.ones(K))


def test_the_likeliest_set_is_set_apart_from_all_rivals() -> None:
    """Where one rival is four times as probable as the next, information dwells on it; the error bound does not."""
    K = 12
    problem = Problem(families.toeplitz(K, 0.6), shift=1.5, n_anomalies=1, budget=5.0)
    chance = np.append(0.75, np.geomspace(1.0, 0.3, K - 1))
    chance[1:] *= 0.25 / chance[1:].sum()
    sets = np.arange(K)[:, None]

    def bound(c: Array) -> float:
        apart = 1.5 * (c[1:] - c[0]) / np.sqrt(problem.noise_variance(c))
        return float(np.sqrt(chance[1:]) @ np.exp(-(apart**2) / 8.0))

    starts = [np.random.default_rng(s).standard_normal(K) for s in range(10)]
    best = min(minimize(bound, start, method="BFGS").fun for start in starts)
    found = [
        bound(InformationDesign(problem)(plain(sets, chance, problem.shift), np.random.default_rng(s)))
        for s in range(10)
    ]
    assert min(found) < best * 1.001
    assert max(found) < best * 1.1
