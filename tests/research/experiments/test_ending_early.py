"""Runs of the exact policies end early only where nothing would change."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eccaht import Problem, Simulator, families, make_policy
from eccaht.research.experiments import comparison
from eccaht.research.experiments.comparison import run_policy
from eccaht.streams.policies import Policy
from eccaht.streams.run import loop
from eccaht.streams.run.loop import Hits

HORIZON = 60
PROBLEM = Problem(families.rbf(12, 1.5), shift=3.0, n_anomalies=2, budget=4.0)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Policy]:
    """The policies that are made."""
    made: list[Policy] = []

    def watched(*arguments: Any, **options: Any) -> Policy:
        made.append(make_policy(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(comparison, "make_policy", watched)
    return made


@pytest.mark.parametrize("name", ["joint", "joint-pair", "exact", "ecc-aht"])
def test_hits_are_those_of_the_whole_run(name: str) -> None:
    for run in range(4):
        policy = make_policy(name, PROBLEM, seed=(2, run), stopping=None)
        world = Simulator(PROBLEM, seed=(2, run), names=[name])
        whole = Hits(world.anomalies)
        for _ in loop.steps(policy, world, HORIZON):
            whole.count(policy)
        assert len(whole.counts) == HORIZON
        assert_array_equal(run_policy(PROBLEM, name, HORIZON, (2, run), {})[0], whole.counts)


def test_a_settled_search_ends_and_others_do_not(asked: list[Policy], monkeypatch: pytest.MonkeyPatch) -> None:
    hits, _ = run_policy(PROBLEM, "joint", HORIZON, (2, 0), {})
    (policy,) = asked
    assert policy.n_readings < HORIZON
    assert policy.lead >= loop.SAFE_LEAD
    assert set(hits[policy.n_readings - 1 :]) == {2}
    run_policy(PROBLEM, "joint", HORIZON, (2, 0), {"regularize": 0.01})
    run_policy(PROBLEM, "ecc-aht", HORIZON, (2, 0), {})
    hopeless = PROBLEM.replace(shift=0.3)
    run_policy(hopeless, "joint", 20, (2, 0), {})
    assert [made.n_readings for made in asked[1:]] == [HORIZON, HORIZON, 20]
    monkeypatch.setattr(loop, "SAFE_LEAD", -np.inf)  # only a right set ends a run
    hits, _ = run_policy(hopeless, "joint", 20, (2, 0), {})
    assert asked[-1].n_readings == (1 + int(np.argmax(hits == 2)) if (hits == 2).any() else 20)
