"""The bound from single swaps is one on Gamma*, and no search beats it."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from eccaht import Problem, families
from eccaht.streams.limits import fewest_measurements, gamma_star, least_measurements, swap_rate
from tests.checks.covariances import PLAIN, wishart

KL = 0.9 * math.log(19.0)  # of an error of 5 % against 95 %


def test_the_bound_of_one_anomaly_among_independent_sensors_is_known() -> None:
    """The sensor itself gives shift^2 / 2 against every rival, all others against it a little more."""
    K, shift = 50, 0.5
    problem = Problem(families.identity(K), shift=shift, n_anomalies=1, budget=5.0)
    exact = KL / (0.5 * shift**2 * K / (K - 1))
    assert fewest_measurements(problem, np.array([3])) == pytest.approx(exact, rel=1e-6)


def test_the_bound_holds_for_every_mix_of_measurements() -> None:
    """In any mix W the swap that gains least gains at most the bound's rate: tried on many mixes and all swaps."""
    rng = np.random.default_rng(0)
    problem = Problem(families.toeplitz(7, rho=0.6), shift=0.3, n_anomalies=2, budget=5.0)
    bound = fewest_measurements(problem, np.array([1, 4]))
    S = problem.covariance.dense()
    swaps = [np.eye(7)[i] - np.eye(7)[j] for i, j in product((1, 4), (0, 2, 3, 5, 6))]
    best = 0.0
    for _ in range(3000):
        actions = rng.standard_normal((4, 7)) * rng.exponential(size=7)
        shares = rng.dirichlet(np.ones(4))
        rates = [
            shares @ ((0.3 * actions @ d) ** 2 / (2 * np.einsum("ak,kl,al->a", actions, S, actions))) for d in swaps
        ]
        best = max(best, min(rates))
    assert KL / best >= bound * (1 - 1e-9)
    assert KL / best < 4 * bound  # and it is not empty


@pytest.mark.parametrize("rho", [0.6, -0.6])
def test_the_bound_of_two_correlated_sensors_is_known(rho: float) -> None:
    """There is one swap, and S^-1 (e_1 - e_2) = (e_1 - e_2) / (1 - rho): Gamma = shift^2 / (1 - rho)."""
    problem = Problem([[1.0, rho], [rho, 1.0]], shift=0.2, n_anomalies=1, budget=1.0)
    needed = 0.9 * np.log(0.95 / 0.05)
    assert fewest_measurements(problem, np.array([0])) == pytest.approx(needed * (1.0 - rho) / 0.2**2, rel=1e-9)


@pytest.mark.parametrize("name", [name for name, build in PLAIN.items() if 8 <= build().size <= 30])
@pytest.mark.parametrize("n", [1, 3])
def test_the_rate_bounds_gamma_star(name: str, n: int) -> None:
    """Gamma* counts all rivals and the best mix: no set is separated from single swaps faster than the bound says."""
    problem = Problem(PLAIN[name](), shift=0.3, n_anomalies=n, budget=50.0)
    truth = np.random.default_rng(n).choice(problem.size, n, replace=False)
    exact = gamma_star(problem, truth, mix=True)
    assert swap_rate(problem, truth) >= exact.lower * (1 - 1e-9)
    assert fewest_measurements(problem, truth) <= max(least_measurements(exact.lower, 0.05), 1.0) * (1 + 1e-9)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_it_is_gamma_star_where_streams_are_exchangeable(n: int) -> None:
    """Equal weights of all swaps are best by symmetry, and single swaps are the hardest rivals."""
    for noise in (families.identity(20), families.equicorrelation(20, 0.7)):
        problem = Problem(noise, shift=0.3, n_anomalies=n, budget=50.0)
        assert swap_rate(problem, np.arange(n)) == pytest.approx(
            gamma_star(problem, range(n), mix=True).upper, rel=1e-3
        )


def test_it_comes_near_gamma_star_without_symmetry() -> None:
    """Within a third for single anomalies, whose only rivals are single swaps."""
    for noise in (families.toeplitz(20, 0.8), families.circulant(20, 0.7), wishart(12)):
        problem = Problem(noise, shift=0.3, n_anomalies=1, budget=50.0)
        for k in (0, 7):
            exact = gamma_star(problem, [k], mix=True)
            assert exact.lower * (1 - 1e-9) <= swap_rate(problem, np.array([k])) <= 1.33 * exact.upper


def test_rivals_left_out_only_loosen_the_bound() -> None:
    """Beyond a hundred rivals the hardest are taken: still at least Gamma* of all of them."""
    problem = Problem(families.toeplitz(110, 0.6), shift=0.3, n_anomalies=1, budget=50.0)
    assert swap_rate(problem, np.array([50])) >= gamma_star(problem, [50], mix=True).lower * (1 - 1e-9)
