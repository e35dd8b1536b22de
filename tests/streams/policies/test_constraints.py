"""Every policy with every constraint that it accepts asks only for what is allowed, and goes on from a file."""

from pathlib import Path

import numpy as np
import pytest

from eccaht import Problem, Simulator, families, load_policy, make_policy, policy_names, search
from eccaht.streams.measurements import (
    AtMost,
    Available,
    Box,
    Budget,
    Constraint,
    Levels,
    NonNegative,
    OneOf,
    OnePerGroup,
    Readout,
)
from eccaht.streams.policies import CATALOGUE
from tests.checks.archives import edit
from tests.checks.capabilities import check_fully

K = 10
ABLE = [name for name in policy_names() if CATALOGUE[name].constraints]
RULES: dict[str, Constraint] = {
    "readout": Readout(1.0, 0.3),
    "quiet readout": Readout(1.0, 0.0),
    "non-negative": NonNegative(),
    "some non-negative": Box(np.where(np.arange(K) % 3 == 0, 0.0, -np.inf), np.inf) & Budget(2.0),
    "box": Box(-1.0, np.linspace(0.5, 2.0, K)) & Readout(2.0, 0.2),
    "few": AtMost(2),
    "few of a budget": Budget(3.0) & AtMost(3) & NonNegative(),
    "groups": OnePerGroup((np.arange(K) // 2).tolist()),
    "balance": Levels([-1, 0, 1]),
    "pools": Levels([0, 1]) & AtMost(4) & Readout(4.0, 0.2),
    "masks": Levels([-1, 1]),
    "paths": OneOf(np.tril(np.ones((K, K)))),
    "one off": Available(np.arange(K) != 4) & Budget(2.0),
    "all": Readout(2.0, 0.2) & Box(-1.5, 1.5) & AtMost(2) & NonNegative(),
}


def problem_under(within: Constraint) -> Problem:
    return Problem(families.toeplitz(K, 0.5), shift=5.0, n_anomalies=2, measurements=within, mean=1.0)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["joint-pair", "joint"])
def test_anomalies_are_found_under_every_constraint(name: str, rule: str) -> None:
    problem = problem_under(RULES[rule])
    world = Simulator(problem, seed=0)
    steps = 24 if name == "joint-pair" else 14
    result = search(make_policy(name, problem, seed=0, stopping=None), world.measure, max_measurements=steps)
    assert result.anomalies.tolist() == world.anomalies.tolist()


@pytest.mark.parametrize("rule", ["readout", "few", "groups", "paths"])
@pytest.mark.parametrize("name", ["joint-pair"])
def test_conformance_under_constraints(name: str, rule: str) -> None:
    assert set(check_fully(name, problem=problem_under(RULES[rule]))) <= {"relabelling"}


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["ecc-aht", "joint-pair", "joint"])
def test_conformance_under_every_constraint(name: str, rule: str) -> None:
    blind = {"strong_anomalies": "it scores streams as if no other were anomalous"} if name == "ecc-aht" else {}
    assert set(check_fully(name, problem=problem_under(RULES[rule]), skip=blind)) <= {"relabelling", *blind}


@pytest.mark.parametrize("rule", RULES)
def test_files_keep_constraints(rule: str, tmp_path: Path) -> None:
    problem = problem_under(RULES[rule])
    policy, world = make_policy("joint-pair", problem, seed=1), Simulator(problem, seed=1)
    for _ in range(3):
        policy.tell(policy.ask(), world.measure(policy.ask()))
    policy.ask()
    policy.save(tmp_path / "policy")
    loaded = load_policy(tmp_path / "policy")
    assert loaded.problem.measurements == RULES[rule]
    assert loaded.problem.readout_noise == problem.readout_noise
    for _ in range(3):
        assert np.array_equal(loaded.ask(), policy.ask())
        y = world.measure(policy.ask())
        policy.tell(policy.ask(), y)
        loaded.tell(loaded.ask(), y)


DAMAGE = {
    "unknown rule": lambda parts: parts[0].update(rule="Everything"),
    "no rule of eccaht": lambda parts: parts[0].update(rule="Constraint"),
    "a combination": lambda parts: parts[0].update(rule="Combined"),
    "no parameters": lambda parts: parts[0].update(parameters=None),
    "unknown parameter": lambda parts: parts[1]["parameters"].update(code="x"),
    "no streams": lambda parts: parts[1]["parameters"].update(m=0),
    "another array": lambda parts: parts[0]["parameters"].update(values={"array": "shift"}),
    "no parts": lambda parts: parts.clear(),
    "a conflict": lambda parts: parts.append({"rule": "Readout", "parameters": {"limit": 1.0, "noise": 0.5}}),
    "too many": lambda parts: parts.extend([parts[1]] * 99),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_constraints_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.eccaht"
    policy = make_policy("ecc-aht", problem_under(Levels([-1, 0, 1]) & AtMost(2) & Readout(2.0, 0.1)))
    policy.ask()
    policy.save(path)
    edit(path, lambda header, _: DAMAGE[name](header["problem"]["budget"]))
    with pytest.raises(ValueError, match=r"policy\.eccaht.*policy file") as error:
        load_policy(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("values", [np.array([0.0]), np.array([np.nan, 1.0]), np.ones((2, 2)), np.array([5.0])])
def test_damaged_numbers_of_constraints_are_refused(values: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "policy.eccaht"
    make_policy("ecc-aht", problem_under(Levels([-1, 0, 1]) & Readout(2.0, 0.1))).save(path)
    edit(path, lambda _, arrays: arrays.update({"problem.budget.0.parameters.values": values}))
    with pytest.raises(ValueError, match=r"policy\.eccaht.*policy file"):
        load_policy(path)


@pytest.mark.parametrize("name", ["ecc-aht", "joint-pair", "joint"])
def test_where_the_closest_pair_cannot_be_separated_now_another_is(name: str) -> None:
    neighbours = np.eye(8) - np.roll(np.eye(8), 1, axis=1)  # differences of neighbours on a ring
    problem = Problem(families.toeplitz(8, 0.5), shift=3.0, n_anomalies=2, measurements=OneOf(neighbours))
    policy, world = make_policy(name, problem, seed=1), Simulator(problem, seed=1)
    available = np.array([True, True, False, True, False, True, False, False])
    for _ in range(5):
        c = policy.ask(available=available)
        np.testing.assert_array_equal(c, neighbours[0])  # the one listed measurement of streams that are there
        policy.tell(c, world.measure(c))
    with pytest.raises(ValueError, match="none of the listed measurements is left"):
        policy.ask(available=np.arange(8) % 2 == 0)
