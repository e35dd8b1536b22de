"""How the stopping time of ECC-AHT grows as alpha falls, beside 1/Gamma*, which the paper's second theorem promises."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from eccaht.arrays import Array
from eccaht.limits.action import best_action
from eccaht.paper.spec import Setting
from eccaht.paper.stopping_errors import EXPERIMENT, LONGEST, POLICY
from eccaht.policies import make_policy
from eccaht.run.loop import steps
from eccaht.run.simulator import Simulator
from eccaht.stopping import Gap

RUNS, SEED = 20, 0
ALPHAS = (1e-20, 1e-80)  # so small that what comes before the last stretch of a search does not count
SETTINGS = EXPERIMENT.settings


@cache
def slopes(setting: int, runs: int = RUNS, seed: int = SEED) -> tuple[Array, int]:
    """Measurements for each nat of log(1/alpha) under the gap rule, times Gamma* of the true set, one a run.

    1 is what the theorem says. Gamma* is the best single measurement with all anomalous streams on one side of the
    others (docs/limits.md), a proven lower bound. Runs whose lead stays behind for the whole horizon have no slope;
    the second number counts them.
    """
    with threadpool_limits(1):
        found = [_slope(SETTINGS[setting], (seed, run)) for run in range(runs)]
    ended = [slope for slope in found if slope is not None]
    return np.array(ended), runs - len(ended)


def _slope(setting: Setting, seed: tuple[int, int]) -> float | None:
    problem = setting.problem()
    world = Simulator(problem, seed=seed, names=[POLICY])
    policy = make_policy(POLICY, problem, seed=seed, stopping=None)
    search, times = steps(policy, world, LONGEST, obey_stopping=False), []
    for alpha in ALPHAS:
        rule = Gap(alpha, rivals=setting.n_anomalies * (problem.size - setting.n_anomalies))
        while not rule.met(policy.lead, policy.n_told):
            if next(search, None) is None:
                return None
        times.append(policy.n_told)
    nats = math.log(ALPHAS[0] / ALPHAS[1])
    return (times[1] - times[0]) / nats * best_action(problem, world.anomalies, limited=True).rate
