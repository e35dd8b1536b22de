"""What policies declare, and posteriors chosen by name or brought along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, Simulator, families, make_policy
from eccaht.streams.policies import CATALOGUE, Policy
from eccaht.streams.posterior import (
    Enumeration,
    Joint,
    LocalSearch,
    Population,
)

PROBLEM = Problem(families.identity(16), shift=4.0, n_anomalies=2, budget=2.0)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_policy_can_what_its_entry_declares(name: str) -> None:
    told: dict[str, Any] = {"anomalies": [0, 1]} if CATALOGUE[name].oracle else {}
    policy = make_policy(name, PROBLEM, **told)
    assert policy.can == CATALOGUE[name].can
    assert (policy.likelihood is not None) == policy.can.whole_vectors
    assert (policy.confidence is not None) == policy.can.posterior


def test_no_ridge_without_a_covariance() -> None:
    with pytest.raises(ValueError, match="no covariance"):
        make_policy("hds", PROBLEM, regularize=0.1)


# -- posterior= ----------------------------------------------------------------------------------------


def run(policy: Policy, steps: int = 4) -> list[Any]:
    world = Simulator(policy.problem, seed=3)
    for _ in range(steps):
        policy.tell(policy.ask(), world.measure(policy.ask()))
    return [policy.scores.tolist(), policy.beliefs.tolist(), policy.ask().tolist()]


def kind(policy: Policy) -> type:
    assert isinstance(policy._belief, Joint)
    return type(policy._belief.posterior)


def test_a_posterior_is_chosen_by_name() -> None:
    large = Problem(families.toeplitz(60, 0.5), shift=4.0, n_anomalies=3, budget=2.0)
    assert kind(make_policy("joint", PROBLEM)) is kind(make_policy("exact", PROBLEM)) is Enumeration
    assert kind(make_policy("joint", large)) is Population
    assert kind(make_policy("joint", PROBLEM, posterior="population")) is Population
    assert run(make_policy("joint", large, posterior="auto")) == run(make_policy("joint", large))
    assert run(make_policy("joint", PROBLEM, posterior="enumeration")) == run(make_policy("joint", PROBLEM))
    assert make_policy("joint", PROBLEM, posterior="enumeration").confidence == make_policy("exact", PROBLEM).confidence


def test_a_posterior_is_brought_along(tmp_path: Path) -> None:
    class Mine(Population):
        """Of another package."""

    policy = make_policy("joint", PROBLEM, posterior=Mine)
    assert kind(policy) is Mine
    assert run(policy) == run(make_policy("joint", PROBLEM, posterior="population"))
    with pytest.raises(ValueError, match="cannot be saved"):
        policy.save(tmp_path / "policy")
    assert not (tmp_path / "policy").exists()


@pytest.mark.parametrize(
    ("posterior", "message"),
    [
        ("populations", "unknown posterior 'populations': did you mean 'population'"),
        ("zzz", "unknown posterior 'zzz': use auto, enumeration, population, wide, or a function"),
        (3, "unknown posterior 3: use"),
        (LocalSearch, "LocalSearch keeps no posterior"),
        (lambda *_: np.zeros(3), "posterior= built a ndarray without "),
    ],
)
def test_other_posteriors_are_refused(posterior: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_policy("joint", PROBLEM, posterior=posterior)


def test_too_many_sets_are_not_enumerated() -> None:
    large = Problem(families.toeplitz(128, 0.5), shift=4.0, n_anomalies=3, budget=2.0)
    with pytest.raises(ValueError, match="341,376: use 'population'"):
        make_policy("joint", large, posterior="enumeration")
    with pytest.raises(ValueError, match=r"341,376 .*'joint'"):
        make_policy("exact", large)
