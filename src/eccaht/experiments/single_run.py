"""One run of one policy: the true anomalies in its set after each measurement."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.environments import Simulator
from eccaht.episode import settled
from eccaht.policies import make_policy
from eccaht.problem import Problem


def hits_of_run(
    problem: Problem, name: str, horizon: int, seed: tuple[int, int], options: dict[str, Any]
) -> NDArray[np.int32]:
    """Hits after each measurement; the seeds are those of `comparison.compare`.

    The exact policies cost a hundred times as much a measurement as the others and need a few dozen of them. Their runs
    end once the set is right and leads every swap by 50 nats; the rest of the horizon counts as right.
    """
    policy = make_policy(name, problem, seed=seed, stopping=None, **options)
    world = Simulator(problem, seed=seed, names=[name])
    truth = np.zeros(problem.size, dtype=bool)
    truth[world.anomalies] = True
    hits = np.empty(horizon, dtype=np.int32)
    try:
        for step in range(horizon):
            c = policy.ask()
            policy.tell(c, world.measure(c))
            hits[step] = np.count_nonzero(truth[policy.decision])
            if settled(policy, world.anomalies):
                hits[step:] = hits[step]
                break
    except (ValueError, ArithmeticError) as error:
        raise type(error)(f"{name}, run {seed[1]}, after {policy.n_told} measurements: {error}") from None
    return hits
