"""Policies by name, and what refuses to be built."""

from typing import Any

import numpy as np
import pytest

from eccaht import Problem, families, make_policy, pair_design

PROBLEM = Problem(families.toeplitz(10, 0.5), shift=[1.0, 2.0] * 5, n_anomalies=2, budget=2.0, names=list("abcdefghij"))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ecc-ath", {}, "did you mean 'ecc-aht'"),
        ("zzz", {}, "'eccaht policies' lists them; import the module that registers your own"),
        ("ecc-aht", {"alpha": 0.0}, "strictly between 0 and 1"),
        ("ecc-aht", {"alpha": 1.5}, "strictly between 0 and 1"),
        ("ecc-aht", {"stopping": "glr"}, "posterior of whole sets"),
        ("ecc-aht", {"stopping": "maybe"}, "unknown stopping rule 'maybe'"),
        ("ecc-aht", {"stopping": 0}, "at least 1"),
        ("ecc-aht", {"seed": -1}, "seed must be"),
    ],
)
def test_refused_with_what_to_do(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_policy(name, PROBLEM, **options)


def test_a_budget_too_small_for_some_pair_is_refused_before_the_first_measurement() -> None:
    """The weakest two shifts are the hardest pair: 1/1 is the least budget that separates every pair."""
    with pytest.raises(ValueError, match=r"'[acegi]' and '[acegi]'.*at least 1;"):
        make_policy("ecc-aht", PROBLEM.replace(budget=0.9))
    make_policy("ecc-aht", PROBLEM.replace(budget=1.0)).ask()


def test_ecc_aht_asks_for_the_pair_design_of_champion_and_challenger() -> None:
    policy = make_policy("ecc-aht", PROBLEM, seed=4)
    rng = np.random.default_rng(0)
    for _ in range(30):
        pair = policy.pair
        assert pair is not None
        i, j = pair
        inside = np.zeros(10, dtype=bool)
        inside[policy.decision] = True
        assert inside[i]
        assert not inside[j]
        assert policy.scores[i] == policy.scores[inside].min()
        assert policy.scores[j] == policy.scores[~inside].max()
        assert policy.lead == policy.scores[i] - policy.scores[j]
        assert np.array_equal(policy.ask(), pair_design(PROBLEM, i, j).weights)
        policy.tell(policy.ask(), rng.standard_normal())


def test_ties_are_broken_by_the_seed_not_by_the_index() -> None:
    """Before the first reading all streams are equal: over seeds every stream is a member equally often."""
    counts = np.zeros(10)
    for seed in range(500):
        counts[make_policy("ecc-aht", PROBLEM, seed=seed).decision] += 1
    assert np.all(np.abs(counts - 100) < 5 * np.sqrt(500 * 0.2 * 0.8))
