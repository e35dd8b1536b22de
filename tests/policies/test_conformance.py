"""What every policy of the catalogue must do."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht import Problem, Simulator, families, identify, load_policy, make_policy, policy_names
from eccaht.arrays import Array
from eccaht.covariance import Dense
from eccaht.policies import Policy

NAMES = policy_names()
JOINT = ("joint-pair", "joint", "exact")  # a step takes milliseconds, and few are needed


def effort(name: str, steps: int) -> tuple[int, int]:
    """How many searches of how many measurements."""
    return (10, steps // 4) if name in JOINT else (20, steps)


def problem_for(name: str, budget: float = 3.0) -> Problem:
    """Correlated streams, except for the one policy that refuses them."""
    covariance = families.identity(32) if name == "hds" else families.toeplitz(32, 0.6)
    return Problem(covariance, shift=4.0, n_anomalies=3, budget=budget, mean=1.5)


def run(policy: Policy, world: Simulator, steps: int) -> list[tuple[Array, float]]:
    told = []
    for _ in range(steps):
        c = policy.ask()
        y = world.measure(c)
        policy.tell(c, y)
        told.append((c, y))
    return told


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_run_bit_for_bit(name: str) -> None:
    problem = problem_for(name)
    first, second = (run(make_policy(name, problem, seed=5), Simulator(problem, seed=2), 40) for _ in range(2))
    assert all(np.array_equal(c, d) and y == z for (c, y), (d, z) in zip(first, second, strict=True))
    other = run(make_policy(name, problem, seed=6), Simulator(problem, seed=2), 40)
    assert name in ("round-robin", "hds") or any(
        not np.array_equal(c, d) for (c, _), (d, _) in zip(first, other, strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", [0.3, 3.0])
def test_the_budget_is_respected(name: str, budget: float) -> None:
    problem = problem_for(name, budget)
    for c, _ in run(make_policy(name, problem), Simulator(problem), 60):
        assert c.shape == (32,)
        assert np.isfinite(c).all()
        assert 0 < np.abs(c).sum() <= budget * (1 + 1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_asking_twice_gives_the_same_measurement_and_reading_changes_nothing(name: str) -> None:
    problem = problem_for(name)
    quiet, asked = make_policy(name, problem, seed=1), make_policy(name, problem, seed=1)
    one, other = Simulator(problem, seed=1), Simulator(problem, seed=1)
    for _ in range(10):
        assert asked.ask() is asked.ask()
        _ = asked.decision, asked.scores, asked.beliefs, asked.pair, asked.should_stop(), asked.lead
        run(asked, one, 1)
        run(quiet, other, 1)
    assert np.array_equal(asked.scores, quiet.scores)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_not_changed_and_views_are_read_only(name: str) -> None:
    problem = problem_for(name)
    policy = make_policy(name, problem)
    c = np.linspace(-0.1, 0.1, 32)
    kept = c.copy()
    policy.tell(c, 0.3)
    assert np.array_equal(c, kept)
    for array in (policy.ask(), policy.scores):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@pytest.mark.parametrize("name", NAMES)
def test_finds_the_set_on_an_easy_problem(name: str) -> None:
    problem = Problem(families.identity(16), shift=8.0, n_anomalies=2, budget=2.0, mean=-3.0)
    right, (runs, steps) = 0, effort(name, 200)
    for seed in range(runs):
        policy, world = make_policy(name, problem, seed=seed, stopping=None), Simulator(problem, seed=seed)
        right += np.array_equal(identify(policy, world.measure, steps).anomalies, world.anomalies)
    assert right >= runs - 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("K", "n"), [(2, 1), (4, 1), (8, 2)])
@pytest.mark.parametrize("sizes", ["equal", "mixed"])
def test_mixed_shifts_and_smallest_problems(name: str, K: int, n: int, sizes: str) -> None:
    """Shifts of either sign, of one size or several, and a mean: found in nearly all runs, or refused clearly."""
    rng = np.random.default_rng(K)
    shift = rng.choice([-1.0, 1.0], K) * (7.0 if sizes == "equal" else rng.uniform(5.0, 9.0, K))
    problem = Problem(families.identity(K), shift=shift, n_anomalies=n, budget=2.0, mean=rng.standard_normal(K))
    if name == "hds" and sizes == "mixed":
        with pytest.raises(ValueError, match="HDS needs"):
            make_policy(name, problem)
        return
    right, (runs, steps) = 0, effort(name, 150)
    for seed in range(runs):
        policy, world = make_policy(name, problem, seed=seed, stopping=None), Simulator(problem, seed=seed)
        right += np.array_equal(identify(policy, world.measure, steps).anomalies, world.anomalies)
    assert right >= 0.85 * runs


@pytest.mark.parametrize("name", [name for name in NAMES if name != "hds"])  # relabelling is another tree
def test_relabelling_the_streams_relabels_the_scores(name: str) -> None:
    """The same readings of relabelled measurements lead to relabelled scores and decision."""
    rng = np.random.default_rng(0)
    problem, turn = problem_for(name), rng.permutation(32)
    turned = problem.replace(covariance=Dense(problem.covariance.dense()[np.ix_(turn, turn)]))
    policy, other = make_policy(name, problem), make_policy(name, turned)
    for c, y in run(make_policy(name, problem, seed=9), Simulator(problem, seed=9), 60):
        policy.tell(c, y)
        other.tell(c[turn], y)
    assert_allclose(other.scores, policy.scores[turn], rtol=1e-8, atol=1e-8)
    assert np.array_equal(np.sort(turn[other.decision]), policy.decision)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("asked", [False, True])
def test_saved_and_loaded_it_goes_on_identically(name: str, asked: bool, tmp_path: Path) -> None:
    problem, path = problem_for(name), tmp_path / "policy.eccaht"
    policy, world = make_policy(name, problem, seed=(3, 1), alpha=0.01), Simulator(problem, seed=3)
    run(policy, world, 20)
    if asked:
        policy.ask()
    policy.save(path)
    loaded = load_policy(path)
    assert loaded.n_told == 20
    assert loaded.recipe == policy.recipe
    twin = Simulator(problem, seed=3)
    twin._noise.bit_generator.state = world._noise.bit_generator.state
    for (c, y), (d, z) in zip(run(policy, world, 30), run(loaded, twin, 30), strict=True):
        assert np.array_equal(c, d)
        assert y == z
    assert np.array_equal(policy.scores, loaded.scores)
    assert policy.should_stop() == loaded.should_stop()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("c", "y", "message"),
    [
        (np.zeros(32), 1.0, "all zero"),
        (np.ones(31), 1.0, "shape"),
        (np.full(32, np.nan), 1.0, "non-finite"),
        (np.ones(32), float("nan"), "reading must be finite"),
        (np.ones(32), float("inf"), "reading must be finite"),
        (np.ones(32), "1", "reading must be a real number"),
        ("weights", 1.0, "measurement must hold real numbers"),
    ],
)
def test_a_bad_reading_is_refused_and_leaves_no_trace(name: str, c: Array, y: float, message: str) -> None:
    policy = make_policy(name, problem_for(name))
    before, asked = policy.scores.copy(), policy.ask()
    with pytest.raises(ValueError, match=message):
        policy.tell(c, y)
    assert policy.n_told == 0
    assert np.array_equal(policy.scores, before)
    assert policy.ask() is asked
