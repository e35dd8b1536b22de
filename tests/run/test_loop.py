"""Records of an episode are what the loop by hand gives."""

import numpy as np

from eccaht import Problem, Simulator, families, make_policy
from eccaht.run.loop import run_episode
from eccaht.statistics import f1_score, first_reached, reached_for_good

PROBLEM = Problem(families.toeplitz(20, 0.5), shift=4.0, n_anomalies=2, budget=2.0)


def test_one_record_a_reading() -> None:
    steps = list(run_episode(make_policy("ecc-aht", PROBLEM, seed=1, stopping=None), Simulator(PROBLEM, seed=1), 25))
    policy, world = make_policy("ecc-aht", PROBLEM, seed=1), Simulator(PROBLEM, seed=1)
    for number, step in enumerate(steps, start=1):
        c, pair = policy.ask(), policy.pair
        reading = world.measure(c)
        policy.tell(c, reading)
        assert (step.step, step.reading, (step.champion, step.challenger)) == (number, reading, pair)
        assert step.lead == policy.lead
        assert step.hits == len(set(policy.decision.tolist()) & set(world.anomalies.tolist()))
    assert len(steps) == 25


def test_an_episode_ends_when_the_policy_stops() -> None:
    steps = list(run_episode(make_policy("ecc-aht", PROBLEM, stopping=7), Simulator(PROBLEM), 100))
    assert len(steps) == 7


def test_f1_from_hits() -> None:
    """Precision 1/2 and recall 1/3 have the harmonic mean 0.4."""
    assert np.isclose(f1_score(1, n_decided=2, n_anomalies=3), 0.4)


def test_first_and_for_good_are_different_numbers() -> None:
    curve = [0.0, 1.0, 0.9, 1.0, 1.0]
    assert (first_reached(curve), reached_for_good(curve)) == (2, 4)
    assert (first_reached([0.5]), reached_for_good([0.5, 1.0, 0.5])) == (None, None)
    assert (first_reached([]), reached_for_good([])) == (None, None)
    assert reached_for_good([1.0, 1.0]) == 1
