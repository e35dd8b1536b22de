"""The search as an environment of gymnasium, for agents that learn what to measure: `pip install 'eccaht[gym]'`.

>>> import gymnasium
>>> environment = gymnasium.make("eccaht.research.environment:eccaht/Search-v0", size=8)
>>> observation, _ = environment.reset(seed=1)
>>> observation.shape, environment.action_space.shape
((9,), (8,))
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from eccaht.base.arrays import Array, as_count, as_number
from eccaht.streams import DEFAULT_POLICY, Policy, Problem, Simulator, families, make_policy

ID = "eccaht/Search-v0"
_SEEDS = 1 << 31


class SearchEnvironment(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """Each episode is a search for a new anomalous set, and each step a measurement.

    Action: K weights from -1 to 1, whose direction counts: the largest allowed multiple is measured. Weights that are
    all 0, or of which no multiple is allowed, give no reading, and cost one.
    Observation: the probability of each stream of being anomalous, and the share of the readings that is used up.
    Reward: -1 a reading, and -penalty at the end if the set is wrong. The episode is over when the stopping rule holds,
    and cut short after `most` readings.

    problem: any, or none for `size` neighbouring streams with 2 anomalies. belief: the policy whose beliefs and
    stopping rule, with its options, are used; its choice of measurements is not.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 -- as gymnasium has it

    def __init__(
        self,
        problem: Problem | None = None,
        *,
        size: int = 16,
        belief: str = DEFAULT_POLICY,
        most: int = 200,
        penalty: float = 100.0,
        **options: Any,
    ) -> None:
        if problem is None:
            problem = Problem(families.toeplitz(size, rho=0.8), shift=3.0, n_anomalies=2, budget=4.0)
        self.problem, self._belief, self._options = problem, belief, options
        self._most, self._penalty = as_count(most, "most", least=1), as_number(penalty, "penalty")
        make_policy(belief, problem, **options)  # what is wrong is reported now
        K = problem.size
        self.observation_space = spaces.Box(0.0, 1.0, (K + 1,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (K,), np.float32)
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin another search; options may give the anomalous streams: {"anomalies": [3, 7]}."""
        super().reset(seed=seed)
        world, belief = self.np_random.integers(_SEEDS, size=2).tolist()
        self._world = Simulator(self.problem, seed=world, anomalies=(options or {}).get("anomalies"))
        self._policy: Policy = make_policy(self._belief, self.problem, seed=belief, **self._options)
        self._steps = 0
        return self._observation(), self._info()

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Measure in this direction."""
        c = self._allowed(np.asarray(action, dtype=np.float64))
        self._steps += 1
        if c is not None:
            self._policy.tell(c, self._world.measure(c))
        over = bool(self._policy.should_stop())
        short = not over and self._steps >= self._most
        wrong = (over or short) and not np.array_equal(self._policy.decision, self._world.anomalies)
        return self._observation(), -1.0 - self._penalty * wrong, over, short, self._info()

    def _allowed(self, direction: Array) -> Array | None:
        """The measurement in a direction, if one is allowed."""
        if not direction.any() or not np.isfinite(direction).all():
            return None
        try:
            return self.problem.measurements.scaled(direction)
        except ValueError:
            return None

    def _observation(self) -> NDArray[np.float32]:
        seen = np.append(self._policy.beliefs, self._steps / self._most)
        return np.clip(seen, 0.0, 1.0).astype(np.float32)

    def _info(self) -> dict[str, Any]:
        return {
            "decision": self._policy.decision,
            "anomalies": self._world.anomalies.copy(),
            "readings": self._policy.n_told,
        }


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point="eccaht.research.environment:SearchEnvironment")
