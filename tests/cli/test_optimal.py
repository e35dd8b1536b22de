"""The command prints what the library measures, and refuses what it does not know."""

from __future__ import annotations

import json
import math
from functools import partial

import numpy as np
import pytest

from eccaht import Simulator, make_policy
from eccaht.cli import optimal as command
from eccaht.cli.main import run
from eccaht.research.experiments.optimality import CASES, case, measure_optimality, simulated
from eccaht.streams.limits.optimal import white_means
from tests.cli import commands

QUICK = ["two", "--runs", "30", "--grids", "1", "--jobs", "1"]
invoke, document = partial(commands.invoke, "optimal"), partial(commands.document, "optimal")


def test_json_holds_what_the_library_measures() -> None:
    printed = document(*QUICK, "--seed", "3")
    expected = command.document(measure_optimality("two", runs=30, seed=3, grids=1))
    assert printed["problems"] == json.loads(json.dumps([expected]))
    assert printed["settings"] == {"runs": 30, "seed": 3, "grids": 1}
    (line, _) = printed["problems"][0]["beside"]
    assert line["ratio"] == pytest.approx(line["readings"] / line["least"])
    assert line["interval"][0] < line["ratio"] < line["interval"][1]


def test_one_line_for_each_policy() -> None:
    lines = invoke(*QUICK).splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["two", "joint"], ["two", "exact"]]
    assert lines[-1].startswith("two: K = 2, identity, shift 1")
    assert all(line.isascii() and len(line) <= 120 for line in lines)


def test_an_unknown_problem_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["optimal", "two", "tree"]) == 2
    assert "unknown problem 'tree'" in capsys.readouterr().err


@pytest.mark.parametrize("name", CASES)
def test_each_problem_or_a_part_like_it_can_be_solved(name: str) -> None:
    """A part has the distances of the whole, so that it is what a random part of its sets looks like."""
    found = case(name)
    means = white_means(found.part or found.problem)
    assert len(means) <= 6
    if found.part is not None:
        whole = found.problem.covariance.solve(np.eye(found.problem.size))
        difference = np.eye(found.problem.size)[0] - np.eye(found.problem.size)[1]
        apart = ((means[:, None] - means) ** 2).sum(axis=-1)[np.triu_indices(len(means), 1)]
        assert apart == pytest.approx(np.full(apart.size, difference @ whole @ difference))


def test_doubts_are_those_of_the_exact_posterior() -> None:
    problem = case("three").problem
    searches = simulated(problem, "exact", runs=3, seed=5)
    policy, world = make_policy("exact", problem, seed=(5, 2)), Simulator(problem, seed=(5, 2))
    while not policy.should_stop():
        c = policy.ask()
        policy.tell(c, world.measure(c))
    assert searches.readings[2] == policy.n_told
    assert searches.doubts[2] == pytest.approx(1.0 - policy.beliefs.max())
    assert not math.isnan(searches.doubts.sum())
