"""Any finite number anywhere is refused in one line, or the search is sound: no warning, no NaN, no endless loop."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eccaht import Problem, Simulator, UnknownShift, make_policy, policy_names
from eccaht.base.arrays import Array
from eccaht.checks.policy import require_sound

NAMES = [name for name in policy_names() if name != "oracle-design"]  # which is told the true set
PLAIN: dict[str, Any] = {"shift": 2.0, "n_anomalies": 1, "budget": 2.0}


def magnitudes(lowest: int, highest: int) -> st.SearchStrategy[float]:
    return st.builds(lambda digits, power: digits * 10.0**power, st.floats(1.0, 9.0), st.integers(lowest, highest))


FINITE = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.one_of(magnitudes(-3, 3), magnitudes(-40, 40), st.floats(min_value=0, max_value=1e308))
ANY = st.one_of(POSITIVE, POSITIVE.map(lambda x: -x), FINITE)


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, Any]:
    """Of a Problem with four streams, one or two of its numbers odd."""
    odd = {
        "covariance": st.lists(POSITIVE, min_size=4, max_size=4).map(np.diag),
        "shift": st.one_of(ANY, st.lists(ANY, min_size=4, max_size=4), POSITIVE.map(_unknown)),
        "budget": POSITIVE,
        "mean": st.one_of(ANY, st.lists(ANY, min_size=4, max_size=4)),
        "readout_noise": POSITIVE,
    }
    chosen = draw(st.lists(st.sampled_from(sorted(odd)), min_size=1, max_size=3, unique=True))
    noise = np.eye(4) + 0.5 * (draw(st.booleans()) - np.eye(4) * 0.0)
    return {"covariance": noise, **PLAIN} | {name: draw(odd[name]) for name in chosen}


def _unknown(scale: float) -> UnknownShift | float:
    return UnknownShift(scale) if scale > 0 else 1.0


def search(parameters: dict[str, Any], name: str, readings: list[float], options: dict[str, Any]) -> None:
    problem = Problem(parameters.pop("covariance"), **parameters)
    policy, world = make_policy(name, problem, **options), Simulator(problem)
    for extra in readings:
        require_sound(policy)
        c = policy.ask()
        policy.tell(c, world.measure(c) + extra)
    require_sound(policy)


@settings(max_examples=150, deadline=None)
@given(arguments(), st.sampled_from(NAMES), st.lists(st.one_of(st.just(0.0), ANY), max_size=4))
def test_any_problem_and_reading(parameters: dict[str, Any], name: str, readings: list[float]) -> None:
    refused_or_sound(lambda: search(parameters, name, readings, {}))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["alpha", "regularize", "outliers"]), ANY, st.sampled_from(["joint", "ecc-aht", "exact"]))
def test_any_option(option: str, value: float, name: str) -> None:
    refused_or_sound(lambda: search({"covariance": np.eye(4), **PLAIN}, name, [0.0, 0.0, 1e8], {option: value}))


@settings(max_examples=100, deadline=None)
@given(st.lists(ANY, min_size=4, max_size=4), ANY, st.sampled_from(NAMES))
@pytest.mark.filterwarnings("ignore::eccaht.streams.policies.BudgetWarning")
def test_any_measurement(weights: list[float], reading: float, name: str) -> None:
    policy = make_policy(name, Problem(np.eye(4), **PLAIN))

    def run() -> None:
        policy.tell(weights, reading)
        require_sound(policy)

    refused_or_sound(run)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(ANY, st.just(np.nan)), min_size=4, max_size=4), st.sampled_from(["joint", "joint-pair"]))
def test_any_vector(x: list[float], name: str) -> None:
    policy = make_policy(name, Problem(np.eye(4) + 0.5, **PLAIN))

    def run() -> None:
        policy.observe(x)
        require_sound(policy)

    refused_or_sound(run)


def refused_or_sound(run: Any) -> None:
    try:
        run()
    except (ValueError, ArithmeticError) as error:
        assert "\n" not in str(error)  # noqa: PT017


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "budget": ({"budget": 1e308}, r"budget = 1e\+308 is not between 1e-30 and 1e\+30: use other units"),
    "mean": ({"mean": 1e17}, "mean .*: subtract the mean"),
    "shift": ({"shift": 1e200}, r"the shift of stream 0 is 1e\+200, above 1e\+30"),
    "variance": ({"covariance": np.eye(4) * 1e-200}, "the variance of stream 0 is 1e-200, below 1e-60"),
    "ratio": ({"shift": [1.0, 1e20, 1.0, 1.0]}, "the ratio of shift to noise deviation of stream 1"),
    "noise": ({"readout_noise": 1e200}, "readout_noise = .* use other units"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_computed_with_is_refused_with_its_limit(name: str) -> None:
    changes, words = REFUSED[name]
    parameters = {"covariance": np.eye(4), **PLAIN} | changes
    with pytest.raises(ValueError, match=words):
        Problem(parameters.pop("covariance"), **parameters)


@pytest.mark.parametrize("name", NAMES)
def test_a_reading_far_off_is_taken_and_an_absurd_one_refused(name: str) -> None:
    policy = make_policy(name, Problem(np.eye(4), **PLAIN))
    for k, far in enumerate((1e8, -1e8, 1e8, 1e12)):
        policy.tell(2.0 * np.eye(4)[k], far)
        require_sound(policy)
    with pytest.raises(ValueError, match=r"1e\+15 noise deviations"):
        policy.tell(policy.ask(), 1e160)
    assert policy.n_readings == 4


@pytest.mark.parametrize("weights", [np.full(4, 1e300), np.full(4, 1e-200)])
def test_weights_whose_noise_cannot_be_computed_are_refused(weights: Array) -> None:
    with pytest.raises(ValueError, match="largest weight"):
        make_policy("joint", Problem(np.eye(4), **PLAIN)).tell(weights, 0.0)
