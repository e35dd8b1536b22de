"""Stopping rules, driven by fabricated readings."""

import math

import numpy as np
import pytest

from eccaht import Problem, Simulator, families, make_policy, search
from eccaht.streams.stopping import Gap, Horizon, Never, stopping_rule

PROBLEM = Problem(families.identity(10), shift=1.0, n_anomalies=2, budget=1.0)


def test_the_gap_rule_stops_exactly_at_its_threshold() -> None:
    """One unit reading r of stream k moves its score by r - 1/2, so any lead can be fabricated."""
    beta = math.log(2 * 8 / 0.05)
    policy = make_policy("ecc-aht", PROBLEM, alpha=0.05)
    assert isinstance(policy.stopping, Gap)
    assert policy.stopping.beta == pytest.approx(beta)
    policy.tell(np.eye(10)[3], beta + 1.0)
    assert not policy.should_stop()  # the second member does not lead any stream yet
    policy.tell(np.eye(10)[5], beta + 0.4999)
    assert not policy.should_stop()
    policy.tell(np.eye(10)[5], 0.5002)
    assert policy.should_stop()
    assert policy.decision.tolist() == [3, 5]


def test_fixed_length_and_never() -> None:
    assert stopping_rule(3, 0.05, PROBLEM) == Horizon(3)
    assert stopping_rule(None, 0.05, PROBLEM) == Never()
    policy = make_policy("ecc-aht", PROBLEM, stopping=3)
    for count in range(4):
        assert policy.should_stop() == (count >= 3)
        policy.tell(np.eye(10)[0], 100.0)
    endless = make_policy("ecc-aht", PROBLEM, stopping=None)
    endless.tell(np.eye(10)[0], 1e6)
    assert not endless.should_stop()


def test_identify_says_why_it_ended() -> None:
    problem = Problem(families.identity(12), shift=8.0, n_anomalies=1, budget=1.0, names=list("abcdefghijkl"))
    world = Simulator(problem, anomalies=[4])
    result = search(make_policy("ecc-aht", problem), world.measure)
    assert (result.reason, result.anomalies.tolist(), result.names) == ("stopped", [4], ("e",))
    cut = search(make_policy("ecc-aht", problem), world.measure, max_measurements=1)
    assert (cut.reason, cut.n_measurements) == ("max_measurements", 1)
    none = search(make_policy("ecc-aht", problem), world.measure, max_measurements=0)
    assert (none.reason, none.n_measurements) == ("max_measurements", 0)


def test_identify_refuses_to_run_for_ever() -> None:
    policy = make_policy("ecc-aht", PROBLEM, stopping=None)
    with pytest.raises(ValueError, match="max_measurements"):
        search(policy, Simulator(PROBLEM).measure)
    with pytest.raises(ValueError, match="at least 0"):
        search(policy, Simulator(PROBLEM).measure, max_measurements=-1)


def test_a_faulty_instrument_is_reported() -> None:
    with pytest.raises(ValueError, match="reading must be finite"):
        search(make_policy("ecc-aht", PROBLEM), lambda _: float("nan"), max_measurements=5)


@pytest.mark.slow
def test_the_gap_rule_keeps_its_level_on_independent_noise() -> None:
    """1000 runs at alpha 0.05 on S = I, where pairs share no weight with other anomalies most of the time."""
    problem, wrong = Problem(families.identity(40), shift=4.0, n_anomalies=2, budget=2.0), 0
    for seed in range(1000):
        world = Simulator(problem, seed=seed)
        result = search(make_policy("ecc-aht", problem, seed=seed), world.measure, 2000)
        wrong += not np.array_equal(result.anomalies, world.anomalies)
    assert wrong <= 67  # the 99 % point of a binomial at exactly 0.05
