"""The simulated search is the user's own, and no search beats the bound."""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pytest

from eccaht import Problem, Simulator, families, make_policy
from eccaht.diagnose.expectation import Expectation, expect, fewest_measurements, judge
from eccaht.diagnose.report import diagnose
from eccaht.statistics import Delay
from tests.diagnose.worlds import model_of, white

KL = 0.9 * math.log(19.0)  # of an error of 5 % against 95 %


def test_runs_are_those_of_the_policy_on_the_model() -> None:
    model = model_of(white())
    told = expect(model, n_anomalies=2, shift=3.0, budget=4.0, runs=3, horizon=60, seed=7)
    problem = model.problem(shift=3.0, n_anomalies=2, budget=4.0)
    for run, right in enumerate(told.right.times):
        world = Simulator(problem, seed=(7, run), names=("joint",))
        policy = make_policy("joint", problem, seed=(7, run))
        last_wrong, stopped = 0, None
        for step in range(1, 61):
            c = policy.ask()
            policy.tell(c, world.measure(c))
            if not np.array_equal(policy.decision, world.anomalies):
                last_wrong = step
            if stopped is None and policy.should_stop():
                stopped = step
        assert right == (last_wrong + 1 if last_wrong < 60 else None)
        assert told.stopped.times[run] == stopped


def test_a_hopeless_search_is_not_fit_and_a_lower_bound() -> None:
    told = diagnose(model_of(white()), n_anomalies=3, shift=0.05, budget=50.0, runs=4, horizon=10)
    found = told.checks[-1]
    assert found.verdict == told.verdict == "not fit"
    assert found.shown == "at least 10 measurements"
    assert "`--shift`" in found.action


def test_an_easy_search_is_ok() -> None:
    found = diagnose(model_of(white()), n_anomalies=1, shift=6.0, runs=6, horizon=40).checks[-1]
    assert found.verdict == "ok"
    assert found.number is not None
    assert found.number < 10


@pytest.mark.parametrize(
    ("late", "wrong", "verdict"), [(0, 0, "ok"), (0, 4, "ok"), (0, 5, "caution"), (1, 0, "caution"), (11, 0, "not fit")]
)
def test_verdicts_depend_on_searches_that_end_or_stop_wrong(late: int, wrong: int, verdict: str) -> None:
    right = Delay([5] * (20 - late) + [None] * late, 30.0, (20.0, 40.0))
    told = Expectation("ecc-aht", 2, 3.0, 5.0, 20, 500, 0, 60.0, right, right, wrong, 3.0)
    found = judge(told)
    assert found.verdict == verdict
    assert ("`--stopping 5`" in found.action) == (verdict == "caution" and late == 0)
    json.dumps(told.as_dict(), allow_nan=False)


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


def test_a_search_that_does_not_fit_the_model_is_refused() -> None:
    model = model_of(white(200, 6))
    with pytest.raises(ValueError, match="must be smaller than the number of streams, 6"):
        diagnose(model, n_anomalies=6, shift=1.0)
    with pytest.raises(ValueError, match=r"budget 0\.1 cannot separate"):
        diagnose(model, n_anomalies=1, shift=1.0, budget=0.1)


@pytest.mark.parametrize("rho", [0.6, -0.6])
def test_the_bound_of_two_correlated_sensors_is_known(rho: float) -> None:
    """There is one swap, and S^-1 (e_1 - e_2) = (e_1 - e_2) / (1 - rho): Gamma = shift^2 / (1 - rho)."""
    problem = Problem([[1.0, rho], [rho, 1.0]], shift=0.2, n_anomalies=1, budget=1.0)
    needed = 0.9 * np.log(0.95 / 0.05)
    assert fewest_measurements(problem, np.array([0])) == pytest.approx(needed * (1.0 - rho) / 0.2**2, rel=1e-9)
