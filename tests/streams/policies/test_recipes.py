"""Each ablation differs from the method exactly where its name says."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht import Problem, Simulator, families, make_policy, pair_design
from eccaht.streams.covariance import Diagonal
from eccaht.streams.policies import Policy
from tests.checks.covariances import wishart

SHIFT = np.random.default_rng(0).choice([-2.0, 1.0, 3.0], 16)
PROBLEM = Problem(wishart(16), shift=SHIFT, n_anomalies=3, budget=2.0)


def after(name: str, steps: int = 25, problem: Problem = PROBLEM, **options: float) -> Policy:
    policy, world = make_policy(name, problem, seed=3, stopping=None, **options), Simulator(problem, seed=3)
    for _ in range(steps):
        policy.tell(policy.ask(), world.measure(policy.ask()))
    return policy


def pair_of(policy: Policy) -> tuple[int, int]:
    assert policy.pair is not None
    return policy.pair


def test_cost_free_is_ecc_aht_wherever_the_limit_does_not_bind() -> None:
    for budget, binds in ((50.0, False), (1.05, True)):
        problem = PROBLEM.replace(budget=budget)
        policy = after("cost-free", problem=problem)
        design = pair_design(problem, *pair_of(policy))
        same = np.allclose(policy.ask(), design.weights, rtol=1e-9)
        assert same is not binds
        unlimited = pair_design(problem.replace(budget=1e6), *pair_of(policy)).weights
        assert_allclose(policy.ask() / np.abs(policy.ask()).sum(), unlimited / 1e6, atol=1e-12)


def test_simple_difference_measures_the_contrast() -> None:
    policy = after("simple-difference")
    i, j = pair_of(policy)
    D = np.zeros(16)
    D[i], D[j] = SHIFT[i], -SHIFT[j]
    assert_allclose(policy.ask(), 2.0 * D / np.abs(D).sum())


def test_diagonal_sees_variances_only() -> None:
    policy = after("diagonal")
    blind = PROBLEM.replace(covariance=Diagonal(PROBLEM.covariance.diagonal()))
    assert_allclose(policy.ask(), pair_design(blind, *pair_of(policy)).weights)


def test_regularize_changes_what_is_believed_not_the_world() -> None:
    ridge = PROBLEM.replace(covariance=PROBLEM.covariance.dense() + 0.3 * np.eye(16))
    for name in ("ecc-aht", "robust"):
        policy = after(name, regularize=0.3)
        assert_allclose(policy.ask(), pair_design(ridge, *pair_of(policy)).weights, atol=1e-10)
        assert policy.problem is PROBLEM
    tiny = PROBLEM.replace(covariance=PROBLEM.covariance.dense() + 0.01 * np.eye(16))
    policy = after("robust")
    assert_allclose(policy.ask(), pair_design(tiny, *pair_of(policy)).weights, atol=1e-10)


def test_random_sparse_follows_its_algorithm() -> None:
    """ceil(B) streams, |c|_1 = B, all streams equally often, signs balanced."""
    problem = PROBLEM.replace(budget=2.3)
    policy, counts, positive = make_policy("random-sparse", problem, stopping=None), np.zeros(16), 0
    for _ in range(1600):
        c = policy.ask()
        assert np.count_nonzero(c) == 3
        assert_allclose(np.abs(c).sum(), 2.3)
        counts[c != 0] += 1
        positive += int((c > 0).sum())
        policy.tell(c, 0.0)
    assert np.all(np.abs(counts - 300) < 5 * np.sqrt(1600 * 3 / 16 * 13 / 16))
    assert abs(positive - 2400) < 5 * np.sqrt(4800 / 4)


def test_round_robin_takes_turns() -> None:
    policy = make_policy("round-robin", PROBLEM, stopping=None)
    for t in range(40):
        assert np.flatnonzero(policy.ask()).tolist() == [t % 16]
        policy.tell(policy.ask(), 0.0)


@pytest.mark.parametrize("name", ["restricted-tree", "restricted-coordinates"])
def test_restricted_actions_are_the_best_of_their_dictionary(name: str) -> None:
    policy = after(name)
    i, j = pair_of(policy)
    D = np.zeros(16)
    D[i], D[j] = SHIFT[i], -SHIFT[j]
    S = PROBLEM.covariance.dense()
    levels = range(5) if name == "restricted-tree" else range(1)
    nodes = [np.repeat(np.eye(16 >> level)[place], 1 << level) for level in levels for place in range(16 >> level)]
    values = [(node @ D) ** 2 / (node @ S @ node) for node in nodes]
    c = policy.ask()
    assert_allclose((c @ D) ** 2 / (c @ S @ c), max(values))
    assert any(np.allclose(c, 2.0 * node / node.sum()) for node in nodes)


def test_base_arm_measures_the_less_measured_of_the_pair() -> None:
    policy, world = make_policy("base-arm-combgape", PROBLEM, stopping=None), Simulator(PROBLEM)
    counts = np.zeros(16)
    for _ in range(60):
        (k,) = np.flatnonzero(policy.ask())
        i, j = pair_of(policy)
        assert k == (i if counts[i] <= counts[j] else j)
        counts[k] += 1
        policy.tell(policy.ask(), world.measure(policy.ask()))


def test_thompson_pairs_vary_and_come_from_the_beta_posterior() -> None:
    """With all beliefs at 1 or 0 and many readings the draw is the deterministic pair's set."""
    problem = Problem(families.identity(8), shift=6.0, n_anomalies=2, budget=2.0)
    world = Simulator(problem, anomalies=[2, 5])
    early = {pair_of(make_policy("ttts-challenger", problem, seed=seed)) for seed in range(40)}
    assert len(early) > 10
    policy = make_policy("ttts-challenger", problem, stopping=None)
    for _ in range(400):
        policy.tell(policy.ask(), world.measure(policy.ask()))
    assert pair_of(policy)[0] in (2, 5)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("hds", {"regularize": 0.1}, "hds knows no covariance"),
        ("ecc-aht", {"regularize": -0.1}, "must not be negative"),
        ("ecc-aht", {"coin": 0.5}, "no option 'coin'"),
        ("hds", {"errors": 0.5}, "its options are readings"),
        ("ttts", {"stopping": "gap"}, "log-likelihood ratios"),
        ("ecc-aht", {"stopping": "own"}, "no stopping rule of its own"),
    ],
)
def test_options_that_do_not_apply_are_refused_by_name(name: str, options: dict[str, float], message: str) -> None:
    problem = Problem(families.identity(16), shift=2.0, n_anomalies=2, budget=2.0)
    with pytest.raises(ValueError, match=message):
        make_policy(name, problem, **options)  # type: ignore[arg-type]
