"""One run of one policy: the true anomalies in its set after each measurement."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.policies import make_policy
from eccaht.problem import Problem
from eccaht.run.loop import stays_right, steps
from eccaht.run.recorders import Hits
from eccaht.run.simulator import Simulator


class Run(NamedTuple):
    """The true anomalies in the set after each measurement, and the seconds that a measurement took."""

    hits: NDArray[np.int32]
    seconds_per_step: float


def hits_of_run(
    problem: Problem, name: str, horizon: int, seed: tuple[int, int], options: dict[str, Any]
) -> NDArray[np.int32]:
    """Hits after each measurement."""
    return run_policy(problem, name, horizon, seed, options).hits


def run_policy(problem: Problem, name: str, horizon: int, seed: tuple[int, int], options: Mapping[str, Any]) -> Run:
    """Run a policy against a simulated world; both are drawn from the seed and the name.

    The exact policies cost a hundred times as much a measurement as the others and need a few dozen of them. Their runs
    end once the set is right and leads every swap by 50 nats; the rest of the horizon counts as right.
    """
    policy = make_policy(name, problem, seed=seed, stopping=None, **options)
    world = Simulator(problem, seed=seed, names=[name])
    hits = Hits(world.anomalies)
    start = perf_counter()
    try:
        for _ in steps(policy, world, horizon, obey_stopping=False, recorders=[hits]):
            if stays_right(policy, world.anomalies):
                break
    except (ValueError, ArithmeticError) as error:
        raise type(error)(f"{name}, run {seed[1]}, after {policy.n_told} measurements: {error}") from None
    return Run(hits.over(horizon), (perf_counter() - start) / policy.n_told)
