"""The constraint on weights is a part: the budget is one, a user's own is as good."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import nnls

from eccaht import Problem, Simulator, families, make_policy, measurements, pair_design, policy_names, search
from eccaht.base.arrays import Array, Index
from eccaht.streams.covariance import Covariance
from eccaht.streams.measurements import Budget, Constraint, Design, Unlimited
from eccaht.streams.policies.catalogue import CATALOGUE
from eccaht.streams.policies.policy import BudgetWarning
from tests.checks.covariances import wishart
from tests.checks.reference import contrast as contrast_of
from tests.test_docs import code_of


class TwoBlocks(Constraint):
    """The first half of the streams is only ever added, the second only subtracted; no weight is above 1."""

    def __init__(self, size: int) -> None:
        self.sign = np.where(np.arange(size) < size // 2, 1.0, -1.0)

    def allows(self, c: Array) -> bool:
        return bool((c * self.sign >= 0.0).all() and np.abs(c).max() <= 1.0 + 1e-9)

    def scaled(self, direction: Array) -> Array:
        return direction / np.abs(direction).max()

    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        """min |L'c - L^-1 D|^2 over the cone, for both signs of D."""
        S, D = covariance.dense(), np.zeros(covariance.size)
        D[indices] = values
        L = np.linalg.cholesky(S)
        found = [self.sign * nnls(L.T * self.sign, np.linalg.solve(L, side * D))[0] for side in (1.0, -1.0)]
        best = max((c for c in found if c.any()), key=lambda c: (c @ D) ** 2 / (c @ S @ c))
        return Design(covariance, indices, values, self.scaled(best))


def own(size: int = 16, **changes: Any) -> Problem:
    options: dict[str, Any] = {"shift": 4.0, "n_anomalies": 2, "measurements": TwoBlocks(size), **changes}
    return Problem(families.toeplitz(size, 0.7), **options)


ABLE = [name for name in policy_names() if CATALOGUE[name].constraints]


def test_a_budget_is_short_for_a_constraint() -> None:
    short = Problem(np.eye(4), shift=2.0, n_anomalies=1, budget=3)
    long = Problem(np.eye(4), shift=2.0, n_anomalies=1, measurements=Budget(3.0))
    assert short.measurements == long.measurements == measurements.Budget(3)
    assert short.budget == long.budget == 3.0
    assert repr(short) == repr(long) == "Problem(Dense(size=4), n_anomalies=1, budget=3)"
    assert pickle.loads(pickle.dumps(long)).measurements == Budget(3.0)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "neither": ({}, "either budget=B.*or measurements="),
    "both": ({"budget": 2.0, "measurements": Budget(2.0)}, "either budget=B.*or measurements="),
    "a number": ({"measurements": 2.0}, "subclass of eccaht.measurements.Constraint, not float"),
    "a class": ({"measurements": Budget}, "subclass of eccaht.measurements.Constraint"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_constraint_is_refused_in_one_line(name: str) -> None:
    options, message = BAD[name]
    with pytest.raises(ValueError, match=message) as error:
        Problem(np.eye(4), shift=2.0, n_anomalies=1, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ABLE)
def test_a_users_own_constraint_is_honoured_and_anomalies_are_found(name: str) -> None:
    problem = own()
    world = Simulator(problem, anomalies=[3, 12], seed=2)
    policy = make_policy(name, problem, seed=1, stopping=None)

    def measure(c: Array) -> float:
        assert problem.measurements.allows(c)
        return world.measure(c)

    result = search(policy, measure, max_measurements=60)
    if name not in ("mean-difference", "diagonal"):  # which are blind to correlation
        assert result.anomalies.tolist() == [3, 12]


@pytest.mark.parametrize("name", sorted(set(policy_names()) - set(ABLE)))
def test_algorithms_that_need_the_budget_say_so(name: str) -> None:
    with pytest.raises(ValueError, match=rf"'{name}' needs an L1 budget, not .*TwoBlocks.*: ecc-aht, .*joint") as error:
        make_policy(name, own())
    assert "\n" not in str(error.value)


def test_unlimited_is_the_closed_form_at_its_scale() -> None:
    noise = wishart(12)
    free = pair_design(Problem(noise, shift=2.0, n_anomalies=1, measurements=Unlimited(0.6)), 2, 7)
    best = noise.solve(contrast_of(np.full(12, 2.0), 2, 7))
    assert_allclose(free.weights, 0.6 * best / np.abs(best).sum(), atol=1e-12)
    assert not free.budget_active
    assert pair_design(Problem(noise, shift=2.0, n_anomalies=1, budget=0.6), 2, 7).information < free.information


def test_weights_that_are_not_allowed_count_with_a_warning() -> None:
    policy = make_policy("ecc-aht", own())
    c = policy.ask()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.tell(c.copy(), 1.0)
    with pytest.warns(BudgetWarning, match="TwoBlocks.*does not allow: they count"):
        policy.tell(-np.ones(16), 1.0)
    assert policy.n_readings == 2


class HalfBudget(Budget):
    """A budget with a rule of its own: no stream has more than half."""

    def allows(self, c: Array) -> bool:
        return super().allows(c) and bool(np.abs(c).max() <= 0.5 * self.limit * (1.0 + 1e-9))


def test_a_subclass_of_the_budget_keeps_its_rule(tmp_path: Path) -> None:
    problem = Problem(families.toeplitz(8, 0.5), shift=3.0, n_anomalies=1, measurements=HalfBudget(2.0))
    with pytest.raises(ValueError, match="cannot be saved"):
        make_policy("ecc-aht", problem).save(tmp_path / "policy")
    assert not (tmp_path / "policy").exists()
    with pytest.raises(ValueError, match="needs an L1 budget"):
        make_policy("random-sparse", problem)


class Careless(TwoBlocks):
    """Gives whatever it was made with."""

    def __init__(self, size: int, weights: Any) -> None:
        super().__init__(size)
        self.weights = weights

    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        return Design(covariance, indices, values, self.weights)


CARELESS: dict[str, tuple[Any, str]] = {
    "not allowed": (np.full(16, 9.0), r"Careless\(\) gave weights that it does not allow itself: mend its contrast"),
    "NaN": (np.full(16, np.nan), r"Careless\(\) must give 16 finite weights, not all 0: mend its contrast"),
    "zeros": (np.zeros(16), r"Careless\(\) must give 16 finite weights, not all 0"),
    "too few": (np.ones(15), r"Careless\(\) must give 16 finite weights, not all 0"),
    "a list": ([1.0] + [0.0] * 15, r"Careless\(\) must give 16 finite weights, not all 0"),
}


@pytest.mark.parametrize("policy", ABLE)
@pytest.mark.parametrize("name", CARELESS)
def test_a_careless_constraint_is_one_clear_line(name: str, policy: str) -> None:
    weights, message = CARELESS[name]
    with pytest.raises(ValueError, match=message) as error:
        make_policy(policy, own().replace(measurements=Careless(16, weights))).ask()
    assert "\n" not in str(error.value)


def test_the_page_about_own_parts_runs_as_printed() -> None:
    page = "docs/how-to/own-covariance-and-constraint.md"
    exec(compile(code_of(page), page, "exec"), {"__name__": "__main__"})
