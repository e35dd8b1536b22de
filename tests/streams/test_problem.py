"""A Problem is checked once and never changes."""

import pickle
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, Simulator, make_policy
from eccaht.streams.limits.rates import check_limits

GOOD: dict[str, Any] = {"covariance": np.eye(4), "shift": 2.0, "n_anomalies": 2, "budget": 1.0}

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "nan in matrix": ({"covariance": np.full((4, 4), np.nan)}, "covariance has a non-finite value"),
    "asymmetric": ({"covariance": np.triu(np.ones((4, 4)))}, "not symmetric"),
    "indefinite": ({"covariance": -np.eye(4)}, "not positive definite"),
    "zero shift": ({"shift": 0.0}, "shift of stream 0 is 0"),
    "a zero among shifts": ({"shift": [1.0, 1.0, 0.0, 1.0]}, "shift of stream 2 is 0"),
    "nan shift": ({"shift": np.nan}, "shift has a non-finite value"),
    "infinite shift": ({"shift": [1.0, np.inf, 1.0, 1.0]}, "non-finite value at index 1"),
    "short shift": ({"shift": [1.0, 2.0]}, "shift has shape .* 4 streams"),
    "n too large": ({"n_anomalies": 4}, "smaller than the number of streams, 4"),
    "n zero": ({"n_anomalies": 0}, "at least 1"),
    "n not whole": ({"n_anomalies": 1.5}, "whole number"),
    "n boolean": ({"n_anomalies": True}, "whole number"),
    "negative budget": ({"budget": -1.0}, "budget must be positive"),
    "zero budget": ({"budget": 0.0}, "budget must be positive"),
    "nan budget": ({"budget": float("nan")}, "budget must be finite"),
    "text budget": ({"budget": "5"}, "budget must be a real number"),
    "no covariance": ({"degrees_of_freedom": 2.0}, "degrees_of_freedom must be above 2"),
    "text degrees of freedom": ({"degrees_of_freedom": "5"}, "degrees_of_freedom must be a real number"),
    "too few windows": ({"estimated_from": 5}, "4 streams needs at least 6 vectors"),
    "windows not whole": ({"estimated_from": 50.5}, "whole number"),
    "long mean": ({"mean": np.zeros(5)}, "mean has shape"),
    "nan mean": ({"mean": [0.0, 0.0, 0.0, np.nan]}, "mean has a non-finite value at index 3"),
    "few names": ({"names": ["a", "b"]}, "2 names for 4 streams"),
    "twice a name": ({"names": ["a", "b", "a", "c"]}, "'a' is used twice"),
    "names not text": ({"names": [1, 2, 3, 4]}, "list of strings"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_one_line(name: str) -> None:
    changes, message = BAD[name]
    arguments = GOOD | changes
    with pytest.raises(ValueError, match=message) as error:
        Problem(arguments.pop("covariance"), **arguments)
    assert "\n" not in str(error.value)


def test_it_is_immutable_and_owns_its_values() -> None:
    shift = np.array([1.0, -2.0, 3.0, 4.0])
    problem = Problem(np.eye(4), shift=shift, n_anomalies=1, budget=1.0)
    shift[0] = 99.0
    assert problem.shift[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        problem.shift[0] = 5.0
    with pytest.raises(AttributeError, match="immutable"):
        problem.budget = 3.0  # type: ignore[misc]
    with pytest.raises(AttributeError, match="immutable"):
        del problem.budget


def test_replace_changes_only_what_is_named() -> None:
    problem = Problem(np.eye(3), shift=[1.0, -2.0, 3.0], n_anomalies=1, budget=1.0, mean=2.0, names=list("abc"))
    other = problem.replace(budget=7.0)
    assert (other.budget, other.n_anomalies, other.names) == (7.0, 1, ("a", "b", "c"))
    assert np.array_equal(other.shift, problem.shift)
    assert np.array_equal(other.mean, problem.mean)


def test_noise_that_is_not_gaussian_is_kept_and_refused_by_what_assumes_otherwise() -> None:
    problem = Problem(**GOOD, degrees_of_freedom=5, estimated_from=60)
    for copy in (problem.replace(budget=2.0), problem.with_ridge(0.5), pickle.loads(pickle.dumps(problem))):
        assert (copy.degrees_of_freedom, copy.estimated_from) == (5.0, 60)
    assert repr(problem).endswith("degrees_of_freedom=5, estimated_from=60)")
    for assumes in (make_policy, lambda _, given: Simulator(given), lambda _, given: check_limits(given)):
        with pytest.raises(ValueError, match="Gaussian"):
            assumes("ecc-aht", problem)
        assumes("ecc-aht", problem.replace(degrees_of_freedom=None))


def test_a_sample_covariance_is_inflated_once() -> None:
    raw = Problem(**GOOD, estimated_from=8)
    factor = 7 / 4 * 8 / 5
    for copy in (
        raw,
        raw.replace(budget=2.0),
        pickle.loads(pickle.dumps(raw)),
        Problem(**GOOD).replace(estimated_from=8),
    ):
        np.testing.assert_allclose(copy.covariance.dense(), factor * np.eye(4))
    np.testing.assert_allclose(raw.with_ridge(0.5).covariance.dense(), (factor + 0.5) * np.eye(4))
    np.testing.assert_array_equal(Problem(**GOOD, estimated_from=8, calibrated=True).covariance.dense(), np.eye(4))


def test_expected_reading() -> None:
    problem = Problem(np.eye(3), shift=[1.0, -2.0, 3.0], n_anomalies=2, budget=1.0, mean=[10.0, 20.0, 30.0])
    c = np.array([0.5, -1.0, 0.0])
    assert problem.expected(c) == -15.0
    assert problem.expected(c, [1, 2]) == -13.0
