"""Measurements chosen together, readings that come late or never, streams that are unavailable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.batches import PROBLEM as LARGE, SMALL, search

from eccaht import Problem, Simulator, families, load_policy, make_policy, pair_design, policy_names
from eccaht.streams.policies import CATALOGUE, Policy
from eccaht.streams.policies.parts import Choice, View
from tests.checks.archives import edit

PROBLEM = Problem(families.toeplitz(32, 0.6), shift=4.0, n_anomalies=3, budget=3.0, mean=1.5)
ABLE = [name for name in policy_names() if CATALOGUE[name].can.batches]


def searched(name: str = "joint", rounds: int = 3, **options: Any) -> tuple[Policy, Simulator]:
    policy, world = make_policy(name, PROBLEM, seed=1, **options), Simulator(PROBLEM, seed=1)
    for _ in range(rounds):
        c = policy.ask()
        policy.tell(c, world.measure(c))
    return policy, world


@pytest.mark.parametrize("name", [name for name in ABLE if name != "mean-difference"])
def test_measurements_of_a_batch_differ(name: str) -> None:
    """Ranks by means alone (mean-difference) do not know what has been measured well: there pairs come again."""
    policy, _ = searched(name)
    rows = np.vstack([policy.ask(batch=3), policy.ask(batch=3)])
    assert len(np.unique(rows, axis=0)) == 6
    assert np.array_equal(policy.pending, rows)
    assert policy.n_readings == 3


@pytest.mark.parametrize("name", ["joint", "joint-pair", "ecc-aht"])
def test_a_batch_tells_more_than_the_same_measurement_again(name: str) -> None:
    """Two of a batch lie in different directions, in the metric of the noise."""
    policy, _ = searched(name, rounds=0)
    C = policy.ask(batch=4)
    noise = C @ PROBLEM.covariance.matvec(C.T)
    deviations = np.sqrt(noise.diagonal())
    shared = np.abs(noise / np.outer(deviations, deviations) - np.eye(4))
    assert shared.max() < 0.9


def test_the_pair_in_doubt_is_settled_by_a_pending_measurement_of_it() -> None:
    """Two streams are equally suspect: a reading that lies between them would leave it so, but none will."""
    policy = make_policy("joint-pair", PROBLEM, seed=3)
    truth = np.array([3, 10, 20])
    x = PROBLEM.mean.copy()
    x[truth] += 0.6 * PROBLEM.shift[truth]
    x[[20, 25]] = 1.5 + 1.2
    policy.observe(x)
    pair = policy.pair
    assert pair is not None
    assert set(pair) == {20, 25}
    first = policy.ask(batch=1)[0]
    assert np.array_equal(first, pair_design(PROBLEM, *pair).weights)
    assert policy.pair is not None
    assert set(policy.pair) != {20, 25}


def test_where_repeating_tells_most_it_is_repeated_and_awaited_twice() -> None:
    """Two streams have one contrast; readings are recognised by their weights, one at a time."""
    problem = Problem(np.eye(2), shift=0.5, n_anomalies=1, budget=2.0)
    policy = make_policy("ecc-aht", problem)
    C = policy.ask(batch=2)
    assert np.array_equal(np.abs(C), np.ones((2, 2)))
    policy.tell(C[0], 0.3)
    assert np.array_equal(policy.pending, C[1:])


def test_what_was_not_asked_for_in_a_batch_is_not_pending() -> None:
    policy, world = searched()
    policy.ask()
    assert policy.pending.shape == (0, 32)
    C = policy.ask(batch=2)
    policy.tell(np.eye(32)[4], world.measure(np.eye(32)[4]))
    assert np.array_equal(policy.pending, C)
    with pytest.raises(ValueError, match="is pending"):
        policy.forget(np.eye(32)[4])
    with pytest.raises(ValueError, match="read-only"):
        policy.pending[0, 0] = 1.0
    with pytest.raises(ValueError, match="at least 1"):
        policy.ask(batch=0)


def test_a_batch_is_there_as_a_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, _ = searched("ecc-aht")
    first = policy.ask(batch=1)
    choose, calls = policy._chooser.choose, []

    def fails(view: View) -> Choice:
        calls.append(view)
        if len(calls) == 3:
            raise ArithmeticError("ill-conditioned")
        return choose(view)

    monkeypatch.setattr(policy._chooser, "choose", fails)
    with pytest.raises(ArithmeticError, match="ill-conditioned"):
        policy.ask(batch=4)
    assert np.array_equal(policy.pending, first)


def test_forgotten_readings_lead_back_to_the_search_without_them() -> None:
    """ecc-aht keeps no memory of what was asked for: only readings and what is pending count."""
    policy, _ = searched("ecc-aht")
    before = policy.ask().copy()
    for c in policy.ask(batch=5):
        policy.forget(c)
    assert np.array_equal(policy.ask(), before)


def test_what_many_younger_readings_have_overtaken_is_late_and_no_longer_waited_for() -> None:
    """A batch whose later ones are all there: its lost one stays pending, but is asked for again where it matters."""
    policy, world = searched("ecc-aht")
    before = policy.scores.copy()
    lost = policy.ask(batch=1)[0]
    twin = searched("ecc-aht")[0]
    for _ in range(4):
        c = policy.ask(batch=1)[0]
        assert not np.array_equal(c, lost)
        y = world.measure(c)
        policy.tell(c, y)
        twin.tell(c, y)
    assert not np.array_equal(policy.scores, before)
    assert np.array_equal(policy.pending, lost[None])
    assert np.array_equal(policy.ask(), twin.ask())  # as if it had never been asked for


# -- streams that are unavailable ----------------------------------------------------------------------


def test_a_pair_is_measured_as_if_unavailable_streams_did_not_exist() -> None:
    policy, _ = searched("ecc-aht")
    mask = np.ones(32, dtype=bool)
    mask[[0, 7, 8, 30, *policy.pair]] = False  # type: ignore[misc]
    c = policy.ask(available=mask)
    assert policy.pair is not None
    there = np.flatnonzero(mask)
    smaller = Problem(PROBLEM.covariance.dense()[np.ix_(there, there)], shift=4.0, n_anomalies=3, budget=3.0)
    i, j = (int(np.searchsorted(there, k)) for k in policy.pair)
    assert np.allclose(c[there], pair_design(smaller, i, j).weights, rtol=1e-9, atol=1e-12)
    members = policy.decision[mask[policy.decision]]
    others = np.setdiff1d(there, policy.decision)
    assert policy.scores[policy.pair[0]] == policy.scores[members].min()
    assert policy.scores[policy.pair[1]] == policy.scores[others].max()


def test_joint_pair_takes_the_cheapest_swap_that_can_be_measured() -> None:
    policy, _ = searched("joint-pair", rounds=6)
    mask = np.random.default_rng(0).random(32) < 0.5
    mask[policy.decision[0]] = True
    policy.ask(available=mask)
    assert policy.pair is not None
    assert policy.likelihood is not None
    decision = policy.decision.tolist()
    swaps = {
        (i, j): float(policy.likelihood.log_likelihood(np.array([[*(set(decision) - {i}), j]]))[0])
        for i in decision
        for j in range(32)
        if mask[i] and mask[j] and j not in decision
    }
    assert np.isclose(swaps[policy.pair], max(swaps.values()))


# -- files ---------------------------------------------------------------------------------------------


def test_a_mask_and_what_is_pending_are_saved(tmp_path: Path) -> None:
    policy, _ = searched()
    mask = np.arange(32) % 2 == 0
    policy.ask(batch=3)
    c = policy.ask(available=mask)
    policy.save(tmp_path / "p")
    loaded = load_policy(tmp_path / "p")
    assert np.array_equal(loaded.ask(available=mask), c)
    assert np.array_equal(loaded.ask(batch=2), policy.ask(batch=2))
    assert np.array_equal(loaded.pending, policy.pending)


DAMAGE: dict[str, Any] = {
    "all zero": lambda a: a["state.pending.awaited.0.weights"].fill(0.0),
    "beyond the budget": lambda a: a["state.pending.awaited.0.weights"].fill(1.0),
    "no stream available": lambda a: a["state.available"].fill(0),
    "all available": lambda a: a["state.available"].fill(1),
    "a choice among others": lambda a: a.update({"state.available": 1 - a["state.available"]}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_refused(damage: str, tmp_path: Path) -> None:
    policy, _ = searched()
    policy.ask(batch=2)
    policy.ask(available=np.arange(32) % 2 == 0)
    policy.save(tmp_path / "p")
    edit(tmp_path / "p", lambda _, arrays: DAMAGE[damage](arrays))
    with pytest.raises(ValueError, match="not a valid policy file"):
        load_policy(tmp_path / "p")


# -- what batches cost ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["joint", "joint-pair"])
def test_batches_of_four_need_at_most_a_quarter_more_readings(name: str) -> None:
    """Measured ratios are 0.95 to 1.1 (docs/how-to/run-a-search.md); 30 pairs separate 1.25 from that."""
    pairs = [[search(name, LARGE, seed, batch=batch).readings for batch in (0, 4)] for seed in range(30)]
    one, four = np.array(pairs, dtype=float).mean(axis=0)
    assert four <= 1.25 * one


@pytest.mark.slow
def test_searches_in_batches_with_lost_results_keep_the_error_bound() -> None:
    """At most 5 % wrong: more than 16 of 160 would happen with probability below 0.01."""
    found = [search("joint", SMALL, seed, batch=4, lost=0.2, stop=True) for seed in range(1000, 1160)]
    assert all(each.readings is not None for each in found)
    assert sum(not each.right for each in found) <= 16
