"""The environment is one of gymnasium's, and an agent that asks a policy gets through it as a search does."""

from __future__ import annotations

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="pip install 'eccaht[gym]'")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from eccaht import Problem, families, make_policy  # noqa: E402
from eccaht.research.environment import ID, SearchEnvironment  # noqa: E402
from eccaht.streams import NonNegative  # noqa: E402

SMALL = Problem(families.toeplitz(6, 0.5), shift=4.0, n_anomalies=1, budget=3.0)


def test_it_passes_the_checks_of_gymnasium() -> None:
    check_env(SearchEnvironment(SMALL, most=20), skip_render_check=True)
    made = gymnasium.make(f"eccaht.research.environment:{ID}", size=5, most=10)
    observation, info = made.reset(seed=3)
    assert made.observation_space.contains(observation)
    assert info["readings"] == 0


def test_an_agent_that_asks_a_policy_searches() -> None:
    environment = SearchEnvironment(SMALL, most=100)
    observation, info = environment.reset(seed=5, options={"anomalies": [2]})
    assert info["anomalies"].tolist() == [2]
    assert np.allclose(observation, [1 / 6] * 6 + [0.0])
    policy, total, over = make_policy("joint", SMALL, seed=1), 0.0, False
    while not over:
        c = policy.ask()
        before = environment._policy.n_told
        observation, reward, over, short, info = environment.step((c / np.abs(c).max()).astype(np.float32))
        assert info["readings"] == before + 1
        assert not short
        total += reward
        policy = environment._policy  # knows the reading
    assert info["decision"].tolist() == [2]
    assert total == -info["readings"]
    assert observation[2] > 0.95


def test_what_cannot_be_measured_costs_and_teaches_nothing() -> None:
    environment = SearchEnvironment(SMALL.replace(measurements=NonNegative()), most=2, penalty=7.0)
    first, _ = environment.reset(seed=0)
    for action in (np.zeros(6), -np.ones(6)):
        observation, reward, over, short, info = environment.step(action.astype(np.float32))
        assert np.array_equal(observation[:6], first[:6])
        assert info["readings"] == 0
        assert not over
    assert short
    right = np.array_equal(info["decision"], info["anomalies"])
    assert reward == (-1.0 if right else -8.0)


def test_what_is_wrong_is_said_before_the_first_episode() -> None:
    with pytest.raises(ValueError, match="policy"):
        SearchEnvironment(SMALL, belief="guess")
    with pytest.raises(ValueError, match="most"):
        SearchEnvironment(SMALL, most=0)
