"""Figure 1: one search seen from inside, how it weighs streams and what it comes to believe.

`eccaht demo` shows the same search.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.statistics import reached_for_good
from eccaht.research.experiments.tables import Table
from eccaht.research.paper.catalogue import EXPERIMENTS
from eccaht.research.paper.experiment import Experiment
from eccaht.streams import Policy, Problem, Simulator, Step, make_policy, steps

ENTRY = EXPERIMENTS["fig1"]
(_SETTING,), (POLICY,), HORIZON = ENTRY.settings, ENTRY.policies, ENTRY.horizon
STREAMS, RHO = _SETTING.arguments["K"], _SETTING.arguments["rho"]
N_ANOMALIES, SHIFT, BUDGET = _SETTING.n_anomalies, _SETTING.shift, _SETTING.budget
CLOSE_UP = 5  # panel (f)


def problem() -> Problem:
    """15 streams in a line, correlated with their neighbours, 3 of them anomalous."""
    return _SETTING.problem()


def trace(seed: int, entry: Experiment = ENTRY) -> Table:
    """Run the search, ignoring its stopping rule; one row a (step, stream), what belongs to the whole step repeated.

    Before the first measurement (step 0) champion and challenger are -1, the reading is NaN and the weights are 0.
    """
    setting, (name,) = entry.settings[0].problem(), entry.policies
    policy = make_policy(name, setting, seed=seed, **entry.policy_options[name])
    world = Simulator(setting, seed=seed)
    states = [_state(policy, world, Step(0, np.zeros(setting.size), np.nan))]
    states += [_state(policy, world, step) for step in steps(policy, world, entry.horizon, obey_stopping=False)]
    streams = np.arange(setting.size)
    columns = {
        column: np.concatenate([np.broadcast_to(state[column], streams.size) for state in states])
        for column in states[0]
    }
    return {"step": columns.pop("step"), "stream": np.tile(streams, len(states)), **columns}


def _state(policy: Policy, world: Simulator, step: Step) -> dict[str, Any]:
    """What is believed after a step, and the measurement behind it."""
    streams = np.arange(policy.problem.size)
    return {
        "step": step.number,
        "belief": policy.beliefs.copy(),
        "score": policy.scores.copy(),
        "weight": step.weights,
        "correlation": policy.problem.covariance.column(step.champion) if step.number else np.zeros(streams.size),
        "champion": step.champion,
        "challenger": step.challenger,
        "reading": step.reading,
        "lead": policy.lead,
        "decided": np.isin(streams, policy.decision),
        "anomalous": np.isin(streams, world.anomalies),
    }


class Fig1Outcome(NamedTuple):
    decision: list[int]
    truth: list[int]
    right_from: int | None  # the measurement since which the decision is right for good

    @property
    def right(self) -> bool:
        return self.decision == self.truth


def outcome(table: Table) -> Fig1Outcome:
    decided, anomalous = by_step(table, "decided"), by_step(table, "anomalous")
    hits = (decided & anomalous).sum(axis=1)
    # row 0 is the state before the first measurement, which does not count
    return Fig1Outcome(
        decision=np.flatnonzero(decided[-1]).tolist(),
        truth=np.flatnonzero(anomalous[-1]).tolist(),
        right_from=reached_for_good(hits[1:] == anomalous.sum(axis=1)[1:], level=1.0),
    )


def by_step(table: Table, name: str) -> NDArray[Any]:
    return table[name].reshape(-1, int(table["stream"].max()) + 1)
