"""A search as an environment of gymnasium, and an agent that measures at random."""

import gymnasium
import numpy as np

from eccaht import Problem, Simulator, families, make_policy

problem = Problem(families.toeplitz(8, rho=0.8), shift=3.0, n_anomalies=2, budget=4.0)


class Search(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (problem.size,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (problem.size,), np.float32)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 -- of gymnasium
        super().reset(seed=seed)
        world, belief = self.np_random.integers(1 << 31, size=2).tolist()
        self.world, self.policy = Simulator(problem, seed=world), make_policy("joint", problem, seed=belief)
        return self.beliefs(), {}

    def step(self, action):
        if action.any():
            c = problem.measurements.scaled(action.astype(float))  # the largest allowed multiple
            self.policy.tell(c, self.world.measure(c))
        over = bool(self.policy.should_stop())
        wrong = over and not np.array_equal(self.policy.decision, self.world.anomalies)
        return self.beliefs(), -1.0 - 100.0 * wrong, over, False, {"decision": self.policy.decision}

    def beliefs(self):
        return np.clip(self.policy.beliefs, 0.0, 1.0).astype(np.float32)


environment = gymnasium.wrappers.TimeLimit(Search(), max_episode_steps=200)
environment.reset(seed=1)
environment.action_space.seed(1)
over = cut = False
while not (over or cut):
    _, _, over, cut, info = environment.step(environment.action_space.sample())
print("right:", np.array_equal(info["decision"], environment.unwrapped.world.anomalies))
