"""What policies declare, and posteriors chosen by name or brought along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, Simulator, UnknownShift, families, load_policy, make_policy
from eccaht.streams.designs import PairDesign
from eccaht.streams.policies import CATALOGUE, Policy
from eccaht.streams.policies.choosers import Pair, champion_challenger
from eccaht.streams.policies.parts import Parts
from eccaht.streams.posterior import (
    Capabilities,
    Enumeration,
    Joint,
    LocalSearch,
    Population,
    PseudoLikelihood,
    SufficientStatistics,
    likelihood_of,
)
from eccaht.streams.sets import SetPrior
from eccaht.streams.stopping import Never

PROBLEM = Problem(families.identity(16), shift=4.0, n_anomalies=2, budget=2.0)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_policy_can_what_its_entry_declares(name: str) -> None:
    policy = make_policy(name, PROBLEM)
    assert policy.can == CATALOGUE[name].can
    assert (policy.likelihood is not None) == policy.can.whole_vectors
    assert (policy.confidence is not None) == policy.can.posterior


def test_who_can_what() -> None:
    def able(capability: str) -> set[str]:
        return {name for name, entry in CATALOGUE.items() if getattr(entry.can, capability)}

    revised, linear = {"ecc-aht-verified", "two-stage", "oracle-design"}, {"lingape", "rage"}
    games = {"track-and-stop", "frank-wolfe", "combgame"}
    assert able("posterior") == {"joint", "exact"} | revised | linear | games
    assert able("whole_vectors") == able("exact_lead") == {"joint-pair"} | able("posterior")
    assert able("unknown_shift") == {"joint", "exact"}
    assert able("open_number") == {"joint", "exact"} | games
    assert set(CATALOGUE) - able("log_odds") == {"mean-difference", "combgape", "ttts", "t3c", "hds"}
    assert set(CATALOGUE) - able("uses_covariance") == {"hds"}


@pytest.mark.parametrize("name", [name for name, entry in CATALOGUE.items() if not entry.can.open_number])
def test_what_a_policy_cannot_do_is_refused_before_it_is_composed(name: str) -> None:
    with pytest.raises(
        ValueError, match=rf"policy '{name}' needs a known number of anomalies, not \(0, 2\): joint, exact, "
    ):
        make_policy(name, PROBLEM.replace(n_anomalies=(0, 2)))
    with pytest.raises(ValueError, match=f"policy '{name}' needs known shifts: joint and exact do without"):
        make_policy(name, PROBLEM.replace(shift=UnknownShift(2.0)))


def test_no_ridge_without_a_covariance() -> None:
    with pytest.raises(ValueError, match="hds knows no covariance: it cannot regularize one"):
        make_policy("hds", PROBLEM, regularize=0.1)


def test_policies_composed_by_hand_have_what_their_parts_declare() -> None:
    pair = Pair(champion_challenger, PairDesign(PROBLEM))
    rng = np.random.default_rng(0)
    policy = Policy(PROBLEM, Parts(PseudoLikelihood(PROBLEM), pair), Never(), rng)
    assert policy.can == Capabilities()
    with pytest.raises(ValueError, match=r"only joint-pair, joint, exact, .* take whole vectors"):
        policy.observe(np.zeros(16))
    likelihood, prior = likelihood_of(SufficientStatistics(PROBLEM)), SetPrior(16, 2, 2)
    belief = Joint(likelihood, prior, LocalSearch(likelihood, prior, rng), rng)
    joint_pair = Policy(PROBLEM, Parts(belief, pair), Never(), rng)
    joint_pair.observe(np.eye(16)[3] * 9.0)
    assert joint_pair.can == LocalSearch.can
    assert 3 in joint_pair.decision
    with pytest.raises(ValueError, match="this policy needs a known number of anomalies"):
        Policy(PROBLEM.replace(n_anomalies=(0, 2)), Parts(belief, pair), Never(), rng)


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
    with pytest.raises(ValueError, match=r"posterior=.*Mine.* cannot be saved: a file names the recipe, not the code"):
        policy.save(tmp_path / "policy")
    assert not (tmp_path / "policy").exists()


def test_a_posterior_that_was_named_is_saved_with_the_policy(tmp_path: Path) -> None:
    policy = make_policy("joint", PROBLEM, posterior="population", seed=5)
    run(policy)
    policy.save(tmp_path / "policy")
    loaded = load_policy(tmp_path / "policy")
    assert kind(loaded) is Population
    assert run(loaded) == run(policy)


@pytest.mark.parametrize(
    ("posterior", "message"),
    [
        ("populations", "unknown posterior 'populations': did you mean 'population'"),
        ("zzz", "unknown posterior 'zzz': use auto, enumeration, population, wide, or a function"),
        (3, "unknown posterior 3: use"),
        (LocalSearch, "LocalSearch keeps no posterior"),
        (lambda *_: np.zeros(3), "posterior= built a ndarray without can, update, candidates"),
    ],
)
def test_other_posteriors_are_refused(posterior: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_policy("joint", PROBLEM, posterior=posterior)


def test_too_many_sets_are_not_enumerated() -> None:
    large = Problem(families.toeplitz(128, 0.5), shift=4.0, n_anomalies=3, budget=2.0)
    with pytest.raises(ValueError, match="takes up to 200,000 sets, not 341,376: use 'population'"):
        make_policy("joint", large, posterior="enumeration")
    with pytest.raises(ValueError, match=r"there are 341,376 possible sets.*: use the policy 'joint'"):
        make_policy("exact", large)


def test_a_posterior_that_needs_a_known_number_is_refused_where_it_is_open() -> None:
    class Narrow(Population):
        can = Capabilities(whole_vectors=True, posterior=True, exact_lead=True)

    make_policy("joint", PROBLEM, posterior=Narrow)
    with pytest.raises(ValueError, match="needs a known number of anomalies"):
        make_policy("joint", PROBLEM.replace(n_anomalies=(0, 2)), posterior=Narrow)


def test_a_posterior_that_takes_no_whole_vectors_is_given_none() -> None:
    class Sums(Population):
        can = Capabilities(open_number=True, unknown_shift=True, posterior=True, exact_lead=True)

    policy = make_policy("joint", PROBLEM, posterior=Sums)
    with pytest.raises(ValueError, match=r"only joint-pair, joint, exact, .* take whole vectors"):
        policy.observe(np.zeros(16))
    assert policy.n_told == 0
