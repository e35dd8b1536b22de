"""The loop asks, reads and tells as a user would by hand, whatever the world."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from eccaht import Problem, Simulator, families, make_policy, search
from eccaht.base.arrays import Array
from eccaht.plants.replay import Replay
from eccaht.streams.run import Hits, steps
from eccaht.streams.run.world import World

PROBLEM = Problem(families.toeplitz(20, 0.5), shift=4.0, n_anomalies=2, budget=2.0)
START = np.datetime64("2024-05-01T08:00", "us")


def windows(x: Array) -> list[tuple[np.datetime64, Array]]:
    return [(START + np.timedelta64(k, "m"), row) for k, row in enumerate(x)]


@pytest.mark.parametrize("name", ["ecc-aht", "joint", "round-robin"])
def test_one_step_a_reading(name: str) -> None:
    policy, world = make_policy(name, PROBLEM, seed=1, stopping=None), Simulator(PROBLEM, seed=1)
    by_hand, same_world = make_policy(name, PROBLEM, seed=1), Simulator(PROBLEM, seed=1)
    hits, made = Hits(world.anomalies), 0
    for made, step in enumerate(steps(policy, world, 25), start=1):
        hits.count(policy)
        c, pair = by_hand.ask(), by_hand.pair or (-1, -1)
        reading = same_world.measure(c)
        by_hand.tell(c, reading)
        assert (step.number, step.reading, (step.champion, step.challenger)) == (made, reading, pair)
        assert np.array_equal(step.weights, c)
        assert policy.lead == by_hand.lead
        assert hits.counts[-1] == len(set(by_hand.decision.tolist()) & set(world.anomalies.tolist()))
    assert made == len(hits.counts) == 25


def test_a_search_ends_when_the_policy_stops_unless_the_caller_says_otherwise() -> None:
    for obey, made in ((True, 7), (False, 30)):
        policy = make_policy("ecc-aht", PROBLEM, stopping=7)
        assert len(list(steps(policy, Simulator(PROBLEM), 30, obey_stopping=obey))) == made == policy.n_readings
    assert list(steps(make_policy("ecc-aht", PROBLEM), Simulator(PROBLEM), 0)) == []
    with pytest.raises(ValueError, match="limit"):
        next(steps(make_policy("ecc-aht", PROBLEM), Simulator(PROBLEM), -1))


def test_simulators_replays_and_functions_are_worlds() -> None:
    """The same numbers are read from the same rows, whoever holds them."""
    x = Simulator(PROBLEM, seed=3).sample(30)
    rows = iter(x)
    worlds: list[World] = [Replay(windows(x), PROBLEM), Simulator(PROBLEM)]
    policy = make_policy("ecc-aht", PROBLEM, stopping=None)
    replayed = list(steps(policy, worlds[0]))
    measured = list(steps(make_policy("ecc-aht", PROBLEM, stopping=None), lambda c: float(c @ next(rows)), 30))
    assert [step.window for step in replayed] == list(range(30))
    assert [step.time for step in replayed] == [start for start, _ in windows(x)]
    for one, other in zip(replayed, measured, strict=True):
        assert np.array_equal(one.weights, other.weights)
        assert one.reading == pytest.approx(other.reading, rel=1e-12)
        assert other.window == -1
        assert np.isnat(other.time)


def test_hits_are_padded_with_the_last() -> None:
    policy, world = make_policy("ecc-aht", PROBLEM, stopping=6), Simulator(PROBLEM)
    hits = Hits(world.anomalies)
    for _ in steps(policy, world):
        hits.count(policy)
    assert len(hits.counts) == 6
    assert hits.over(9).tolist() == [*hits.counts, *[hits.counts[-1]] * 3]


@pytest.mark.parametrize("name", ["ecc-aht", "round-robin", "combgape", "joint"])
def test_a_set_named_after_a_number_of_readings_has_its_posterior_probability(name: str) -> None:
    """That of all readings, by Bayes' rule over all sets."""
    problem = Problem(families.toeplitz(8, 0.6), shift=1.5, n_anomalies=2, budget=2.0)
    policy, world = make_policy(name, problem, seed=1, stopping=9), Simulator(problem, seed=1)
    told: list[tuple[Array, float]] = []

    def measure(c: Array) -> float:
        told.append((c, world.measure(c)))
        return told[-1][1]

    result = search(policy, measure)
    heights = {}
    for members in combinations(range(8), 2):
        left = [(y - problem.expected(c, members)) ** 2 / problem.noise_variance(c) for c, y in told]
        heights[members] = -0.5 * sum(left)
    weights = {members: np.exp(height - max(heights.values())) for members, height in heights.items()}
    expected = weights[tuple(result.anomalies.tolist())] / sum(weights.values())
    assert result.confidence is not None
    assert result.confidence.how == "exact"
    assert result.confidence.probability == pytest.approx(expected)
