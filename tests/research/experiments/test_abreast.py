"""Searches run abreast are the searches run one by one, to the last bit."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eccaht import Problem, Simulator, families, make_policy
from eccaht.base.arrays import Array, Index
from eccaht.research.experiments.abreast import Rankers, run_abreast
from eccaht.research.experiments.comparison import run_policy
from eccaht.streams.covariance import Covariance, Diagonal
from eccaht.streams.measurements import Budget, Constraint, Design
from eccaht.streams.posterior import Ranker

SEEDS = [(3, run) for run in range(4)]
SINGLY = ("round-robin", "base-arm-combgape", "restricted-coordinates")
BY_SCORES = ("ecc-aht", "cost-free", "simple-difference", "diagonal", "random-sparse", "ttts-challenger", "robust")
SHIFTS = np.where(np.arange(16) % 3 == 0, -2.0, 3.0)


def one_by_one(problem: Problem, name: str, horizon: int, **options: float) -> Array:
    return np.stack([run_policy(problem, name, horizon, seed, options)[0] for seed in SEEDS])


@pytest.mark.parametrize("name", [*BY_SCORES, *SINGLY, "restricted-tree", "combgape", "ttts", "mean-difference"])
def test_every_policy_gives_the_same_run(name: str) -> None:
    problem = Problem(families.toeplitz(16, 0.7), shift=SHIFTS, n_anomalies=3, budget=1.5, mean=0.3)
    assert_array_equal(run_abreast(problem, name, 150, SEEDS, {}), one_by_one(problem, name, 150))


@pytest.mark.parametrize("name", ["ecc-aht", "random-sparse", "round-robin"])
@pytest.mark.parametrize(
    "problem",
    [
        Problem(families.toeplitz(600, 0.8), shift=3.0, n_anomalies=4, budget=5.0),  # updated where c has weight
        Problem(families.identity(5), shift=2.0, n_anomalies=4, budget=1.0),
        Problem(families.identity(2), shift=1.0, n_anomalies=1, budget=2.0),
        Problem(families.kronecker(0.8), shift=3.0, n_anomalies=5, budget=5.0),
        Problem(families.toeplitz(12, 0.6), shift=1.0, n_anomalies=2, budget=1.1),  # the limit binds
        Problem(families.toeplitz(12, 0.6), shift=1.0, n_anomalies=2, budget=2.0, readout_noise=0.5),
    ],
)
def test_problems_of_all_kinds(problem: Problem, name: str) -> None:
    assert_array_equal(run_abreast(problem, name, 60, SEEDS, {}), one_by_one(problem, name, 60))


def test_a_policy_that_believes_another_covariance() -> None:
    problem = Problem(families.rbf(16, length_scale=2.0), shift=3.0, n_anomalies=3, budget=3.0)
    for name in ("ecc-aht", "ttts-challenger", "round-robin"):
        abreast = run_abreast(problem, name, 100, SEEDS, {"regularize": 0.05})
        assert_array_equal(abreast, one_by_one(problem, name, 100, regularize=0.05))


def test_who_runs_beside_a_search_does_not_matter() -> None:
    problem = Problem(families.toeplitz(16, 0.7), shift=SHIFTS, n_anomalies=3, budget=1.5)
    whole = run_abreast(problem, "ecc-aht", 80, SEEDS, {})
    assert_array_equal(run_abreast(problem, "ecc-aht", 80, SEEDS[1:], {}), whole[1:])


@pytest.mark.parametrize("n", [1, 3, 6])
def test_rows_are_ranked_as_by_their_own_rankers(n: int) -> None:
    """Scores of few values: ties inside, outside and across the cut."""
    rng = np.random.default_rng(n)
    rankers = [Ranker(rng.permutation(7)) for _ in range(400)]
    for values in (2, 4, 30):
        scores = rng.integers(0, values, (400, 7)).astype(float)
        members, rankings = Rankers(rankers, n)(scores)
        for row, own, found, ranker in zip(scores, members, rankings, rankers, strict=True):
            expected = ranker(row, n)
            assert_array_equal(own, expected.members)
            assert_array_equal(found.members, expected.members)
            assert found[1:] == expected[1:]


@dataclass(frozen=True)
class Halved(Constraint):
    """Not the L1 budget, and another measurement each time: nothing of it may be remembered."""

    asked: list[int]

    def allows(self, c: Array) -> bool:
        return bool(np.abs(c).sum() <= 4.0)

    def scaled(self, direction: Array) -> Array:
        return direction / np.abs(direction).sum()

    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        self.asked.append(1)
        weights = np.zeros(covariance.size)
        weights[indices] = values / len(self.asked)
        return Design(covariance, indices, values, self.scaled(weights))


def test_other_constraints_are_asked_every_time() -> None:
    asked: list[int] = []
    problem = Problem(Diagonal(np.ones(6)), shift=2.0, n_anomalies=1, measurements=Halved(asked))
    hits = run_abreast(problem, "ecc-aht", 30, SEEDS, {})
    assert len(asked) == 30 * len(SEEDS)
    assert_array_equal(hits, one_by_one(problem, "ecc-aht", 30))


def test_an_error_says_in_which_run(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(families.identity(6), shift=2.0, n_anomalies=1, budget=1.0)
    monkeypatch.setattr(Budget, "recalled", _fail)
    with pytest.raises(ArithmeticError, match="ecc-aht, run 0, after 0 measurements: too ill"):
        run_abreast(problem, "ecc-aht", 5, SEEDS, {})


def _fail(*_: object) -> None:
    raise ArithmeticError("too ill")


def test_what_a_problem_remembers_is_what_it_would_work_out() -> None:
    """The same search twice on one problem, the second time with every design remembered, and on a fresh one."""
    problem, fresh = (
        Problem(families.toeplitz(20, 0.8), shift=2.0, n_anomalies=2, budget=3.0, mean=1.0) for _ in range(2)
    )
    searches = []
    for on in (problem, problem, fresh):
        policy, world, readings = make_policy("ecc-aht", on, stopping=None), Simulator(on), []
        for _ in range(80):
            c = policy.ask()
            readings.append((c.copy(), on.noise_variance(c), on.mean_reading(c), world.measure(c)))
            assert readings[-1][1] == on.covariance.quad(c)
            policy.tell(c, readings[-1][3])
        searches.append((readings, policy.scores.copy()))
    for readings, scores in searches[1:]:
        assert_array_equal(scores, searches[0][1])
        for one, other in zip(readings, searches[0][0], strict=True):
            assert_array_equal(one[0], other[0])
            assert one[1:] == other[1:]


def test_a_problem_remembers_a_bounded_number_of_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eccaht.base.recalled._MOST", 64 * 20)
    problem = Problem(families.toeplitz(20, 0.8), shift=2.0, n_anomalies=2, budget=3.0)
    few = run_abreast(problem, "ecc-aht", 60, SEEDS, {})
    assert max(len(problem._memory._made), len(problem._memory._known)) <= 64
    monkeypatch.undo()
    assert_array_equal(few, run_abreast(problem.replace(), "ecc-aht", 60, SEEDS, {}))
