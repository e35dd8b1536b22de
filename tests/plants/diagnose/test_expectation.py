"""The simulated search is the user's own."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eccaht import Simulator, make_policy
from eccaht.base.statistics import Delay
from eccaht.plants.diagnose.report import Expectation, diagnose, expect, judge
from tests.plants.diagnose.worlds import model_of, white


def test_runs_are_those_of_the_policy_on_the_model() -> None:
    model = model_of(white())
    expected = expect(model, n_anomalies=2, shift=3.0, budget=4.0, runs=3, horizon=60, seed=7)
    problem = model.problem(shift=3.0, n_anomalies=2, budget=4.0)
    for run, right in enumerate(expected.right.times):
        world = Simulator(problem, seed=(7, run), names=("joint",))
        policy = make_policy("joint", problem, seed=(7, run))
        last_wrong, stopped = 0, None
        for step in range(1, 61):
            c = policy.ask()
            policy.tell(c, world.measure(c))
            if not np.array_equal(policy.decision, world.anomalies):
                last_wrong = step
            if stopped is None and policy.should_stop():
                stopped = step
        assert right == (last_wrong + 1 if last_wrong < 60 else None)
        assert expected.stopped.times[run] == stopped


def test_a_hopeless_search_is_not_fit_and_a_lower_bound() -> None:
    diagnosis = diagnose(model_of(white()), n_anomalies=3, shift=0.05, budget=50.0, runs=4, horizon=10)
    found = diagnosis.checks[-1]
    assert found.verdict == diagnosis.verdict == "not fit"
    assert found.shown == "at least 10 measurements"
    assert "`--shift`" in found.action


def test_an_easy_search_is_ok() -> None:
    found = diagnose(model_of(white()), n_anomalies=1, shift=6.0, runs=6, horizon=40).checks[-1]
    assert found.verdict == "ok"
    assert found.number is not None
    assert found.number < 10


@pytest.mark.parametrize(
    ("late", "wrong", "verdict"), [(0, 0, "ok"), (0, 4, "ok"), (0, 5, "caution"), (1, 0, "caution"), (11, 0, "not fit")]
)
def test_verdicts_depend_on_searches_that_end_or_stop_wrong(late: int, wrong: int, verdict: str) -> None:
    right = Delay([5] * (20 - late) + [None] * late, 30.0, (20.0, 40.0))
    expected = Expectation("ecc-aht", 2, 3.0, 5.0, 20, 500, 0, 60.0, right, right, wrong, 3.0)
    found = judge(expected)
    assert found.verdict == verdict
    assert ("`--stopping 5`" in found.action) == (verdict == "caution" and late == 0)
    json.dumps(expected.as_dict(), allow_nan=False)


def test_a_search_that_does_not_fit_the_model_is_refused() -> None:
    model = model_of(white(200, 6))
    with pytest.raises(ValueError, match="must be smaller than the number of streams, 6"):
        diagnose(model, n_anomalies=6, shift=1.0)
    with pytest.raises(ValueError, match=r"budget 0\.1 cannot separate"):
        diagnose(model, n_anomalies=1, shift=1.0, budget=0.1)
