"""What every policy of the catalogue must do."""

from pathlib import Path

import numpy as np
import pytest

from eccaht import Problem, Simulator, UnknownShift, families, load_policy, make_policy, policy_names, search
from eccaht.base.arrays import Array
from eccaht.streams.policies import CATALOGUE
from tests.checks.capabilities import ALL_CHECKS, all_but, check_fully

NAMES = [name for name in policy_names() if name != "oracle-design"]  # which is told the true set
JOINT = ("joint-pair", "joint", "exact", "track-and-stop", "frank-wolfe", "lingame")  # a step takes milliseconds
SLOW = (
    *JOINT,
    "chernoff",
    "controlled-sensing",
    "extrinsic-jensen-shannon",
    "rage",
    "od-linbai",
    "lingape",
    "two-stage",
)


def problem_for(name: str, budget: float = 3.0) -> Problem:
    """Correlated streams, except for the one policy that refuses them."""
    covariance = families.identity(32) if name == "hds" else families.toeplitz(32, 0.6)
    return Problem(covariance, shift=4.0, n_anomalies=3, budget=budget, mean=1.5)


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_passes_every_check(name: str) -> None:
    """All apply, except that which a policy declares of the order of the streams."""
    ordered = {"relabelling": "it declares that the order of the streams matters"}
    problem = Problem(families.toeplitz(12, 0.6), shift=4.0, n_anomalies=2, budget=3.0, mean=1.5)
    found = check_fully(name, problem=problem if name in SLOW else None)
    assert found == (ordered if CATALOGUE[name].can.order_matters else {})


@pytest.mark.parametrize("name", ["joint", "exact"])
@pytest.mark.parametrize("check", ALL_CHECKS)
def test_open_numbers_and_unknown_shifts(name: str, check: str) -> None:
    unknown = UnknownShift(8.0, sign="either")
    names = [f"s{k}" for k in range(12)]
    problem = Problem(families.toeplitz(12, 0.5), shift=unknown, n_anomalies=(0, 2), budget=2.0, names=names)
    check_fully(name, problem=problem, skip=all_but(check))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("round-robin", "hds", "two-stage")])
def test_another_seed_is_another_run(name: str) -> None:
    problem = problem_for(name)
    runs = []
    for seed in (5, 6):
        policy, world, asked = make_policy(name, problem, seed=seed), Simulator(problem, seed=2), []
        for _ in range(12):
            asked.append(policy.ask())
            policy.tell(asked[-1], world.measure(asked[-1]))
        runs.append(asked)
    assert any(not np.array_equal(c, d) for c, d in zip(*runs, strict=True))


def runs_right(name: str, problem: Problem, runs: int, steps: int) -> int:
    right = 0
    for seed in range(runs):
        policy, world = make_policy(name, problem, seed=seed, stopping=None), Simulator(problem, seed=seed)
        right += np.array_equal(search(policy, world.measure, steps).anomalies, world.anomalies)
    return right


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("K", "n"), [(2, 1), (8, 2)])
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
    runs = 5 if name in SLOW else 10
    assert runs_right(name, problem, runs, 25 if name in JOINT else 100) >= 0.8 * runs


def test_a_file_keeps_the_recipe(tmp_path: Path) -> None:
    policy = make_policy("ecc-aht", problem_for("ecc-aht"), seed=(3, 1), alpha=0.01)
    policy.save(tmp_path / "policy")
    assert load_policy(tmp_path / "policy").recipe == policy.recipe


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
def test_a_refusal_says_what_is_wrong(c: Array, y: float, message: str) -> None:
    policy = make_policy("ecc-aht", problem_for("ecc-aht"))
    with pytest.raises(ValueError, match=message):
        policy.tell(c, y)
