"""The loop asks, reads and tells as a user would by hand, whatever the world."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import eccaht
from eccaht import Problem, Simulator, families, identify, make_policy
from eccaht.base.arrays import Array
from eccaht.base.statistics import f1_score, first_reached, reached_for_good
from eccaht.plants.replay import Replay
from eccaht.streams.policies import Policy
from eccaht.streams.run import Hits, Step, steps
from eccaht.streams.run.loop import Pair, Recorder
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
    for made, step in enumerate(steps(policy, world, 25, recorders=[hits]), start=1):
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
        assert len(list(steps(policy, Simulator(PROBLEM), 30, obey_stopping=obey))) == made == policy.n_told
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
    for one, other, row in zip(replayed, measured, x, strict=True):
        assert np.array_equal(one.weights, other.weights)
        assert one.reading == pytest.approx(other.reading, rel=1e-12)
        assert one.values is not None
        assert np.array_equal(one.values, row)
        assert (other.window, other.values) == (-1, None)
        assert np.isnat(other.time)


def test_whole_vectors_are_given_whole() -> None:
    x = Simulator(PROBLEM, seed=3).sample(6)
    x[2, 4] = np.nan
    policy, by_hand = (make_policy("joint", PROBLEM, seed=2, stopping=None) for _ in range(2))
    for step in steps(policy, Replay(windows(x), PROBLEM), whole=True):
        by_hand.observe(x[step.number - 1])
        assert np.array_equal(policy.scores, by_hand.scores)
        assert step.whole
        assert step.values is not None
        assert np.array_equal(step.values, x[step.number - 1], equal_nan=True)
        assert not step.weights.any()
        assert np.isnan(step.reading)
    assert policy.n_told == 6
    simulated = make_policy("joint", PROBLEM, seed=2)
    world = Simulator(PROBLEM, seed=4)
    assert 0 < len(list(steps(simulated, world, 50, whole=True))) < 50
    assert np.array_equal(simulated.decision, world.anomalies)
    with pytest.raises(ValueError, match="cannot read whole vectors"):
        next(steps(make_policy("joint", PROBLEM), lambda c: 0.0, whole=True))  # noqa: ARG005
    with pytest.raises(ValueError, match="whole vectors"):
        next(steps(make_policy("ecc-aht", PROBLEM), world, whole=True))


class Witness(Recorder):
    """Notes what it sees before and after."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, Pair | None, int, int]] = []

    def before(self, policy: Policy, pair: Pair | None) -> None:
        self._before = policy.n_told, pair

    def after(self, policy: Policy, step: Step) -> None:
        self.seen.append((*self._before, policy.n_told, step.number))


def test_recorders_see_the_policy_before_and_after_each_reading() -> None:
    policy, witness = make_policy("ecc-aht", PROBLEM, stopping=None), Witness()
    made = list(steps(policy, Simulator(PROBLEM), 5, recorders=[witness]))
    assert witness.seen == [(t - 1, (step.champion, step.challenger), t, t) for t, step in enumerate(made, 1)]


def test_identify_counts_the_steps() -> None:
    policy, twin = (make_policy("ecc-aht", PROBLEM, seed=5) for _ in range(2))
    found = identify(policy, Simulator(PROBLEM, seed=5).measure, 500)
    made = list(steps(twin, Simulator(PROBLEM, seed=5), 500))
    assert (found.n_measurements, found.reason) == (len(made), "stopped")
    assert np.array_equal(found.anomalies, twin.decision)
    with pytest.raises(ValueError, match="max_measurements"):
        identify(policy, lambda _: 0.0, -1)
    with pytest.raises(ValueError, match="no stopping rule"):
        identify(make_policy("ecc-aht", PROBLEM, stopping=None), lambda _: 0.0)


def test_only_the_loop_asks_and_tells() -> None:
    """One loop: no other module asks a policy for a measurement, but for the suites that put policies to the test,
    the session whose loop is another program's, and the policy that asks an object of the user's."""
    source = Path(eccaht.__file__).parent
    files = {path: path.read_text(encoding="utf-8") for path in source.rglob("*.py") if path.parent.name != "checks"}
    asking = {
        path.relative_to(source).as_posix()
        for path, text in files.items()
        if ".ask" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "ask"
    }
    assert asking == {"streams/run/loop.py", "cli/session.py", "streams/policies/ask_tell.py"}


def test_hits_are_padded_with_the_last() -> None:
    policy, world = make_policy("ecc-aht", PROBLEM, stopping=6), Simulator(PROBLEM)
    hits = Hits(world.anomalies)
    assert len(list(steps(policy, world, recorders=[hits]))) == 6
    assert hits.over(9).tolist() == [*hits.counts, *[hits.counts[-1]] * 3]


def test_f1_from_hits() -> None:
    """Precision 1/2 and recall 1/3 have the harmonic mean 0.4."""
    assert np.isclose(f1_score(1, n_decided=2, n_anomalies=3), 0.4)


def test_first_and_for_good_are_different_numbers() -> None:
    curve = [0.0, 1.0, 0.9, 1.0, 1.0]
    assert (first_reached(curve), reached_for_good(curve)) == (2, 4)
    assert (first_reached([0.5]), reached_for_good([0.5, 1.0, 0.5])) == (None, None)
    assert (first_reached([]), reached_for_good([])) == (None, None)
    assert reached_for_good([1.0, 1.0]) == 1
