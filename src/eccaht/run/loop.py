"""One policy against one world: the loop, as a generator of records and as a single call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from eccaht.arrays import Array, Index, as_count
from eccaht.policies import Policy
from eccaht.posterior import Confidence
from eccaht.run.simulator import Simulator
from eccaht.stopping import Never

EXACT = ("joint", "joint-pair", "exact")  # their lead is the exact log-likelihood ratio of the weakest swap
SETTLED = 50.0  # nats


class Step(NamedTuple):
    """What one measurement did. Flat, so that a list of steps is a table.

    `champion` and `challenger` are the pair that was measured (-1 without one); `hits` counts the true anomalies in
    the decision after the reading, of which F1 and every delay are functions.
    """

    step: int
    champion: int
    challenger: int
    reading: float
    lead: float
    hits: int


def run_episode(policy: Policy, world: Simulator, horizon: int) -> Iterator[Step]:
    """Measure until the policy stops or `horizon` readings were told, yielding one record a reading.

    >>> from eccaht import Problem, families, make_policy
    >>> problem = Problem(families.identity(8), shift=6.0, n_anomalies=1, budget=1.0)
    >>> steps = list(run_episode(make_policy("ecc-aht", problem, stopping=None), Simulator(problem), horizon=10))
    >>> len(steps), steps[-1].hits
    (10, 1)
    """
    truth = np.zeros(policy.problem.size, dtype=bool)
    truth[world.anomalies] = True
    for step in range(1, as_count(horizon, "horizon", least=1) + 1):
        if policy.should_stop():
            return
        c, pair = policy.ask(), policy.pair or (-1, -1)
        reading = world.measure(c)
        policy.tell(c, reading)
        yield Step(step, *pair, reading, policy.lead, int(truth[policy.decision].sum()))


class ShiftEstimates(NamedTuple):
    """Estimated shifts of the named streams and the interval in which each lies with probability `level`.

    They hold if the named set is the right one.
    """

    values: Array
    low: Array
    high: Array
    level: float


def settled(policy: Policy, anomalies: Index) -> bool:
    """Is the set right, and will it stay so? For simulations, where the truth is known and time is short.

    The likelihood of a wrong set over that of the true one is a martingale: one that trails by 50 nats ever catches up
    with probability exp(-50). Only the exact policies know how far a swap trails, and only where they
    believe the covariance of the world.
    """
    made = policy.recipe
    exact = made is not None and made.name in EXACT and not made.options.get("regularize")
    return exact and policy.lead >= SETTLED and np.array_equal(policy.decision, anomalies)


@dataclass(frozen=True)
class Identification:
    """The streams named, after how many measurements, and why the search ended there.

    confidence: the posterior probability of the set and how it was found; None where the policy cannot tell.
    fit: the probability of readings as bad as these if the set is right; near 0 the model does not hold and the
        confidence means nothing. None where the policy cannot tell.
    shifts: where their sizes were not known.
    """

    anomalies: Index
    n_measurements: int
    reason: Literal["stopped", "max_measurements"]
    names: tuple[str, ...] | None = None
    confidence: Confidence | None = None
    fit: float | None = None
    shifts: ShiftEstimates | None = None


def identify(policy: Policy, measure: Callable[[Array], float], max_measurements: int | None = None) -> Identification:
    """Run the loop: ask, measure, tell, until the policy stops or the measurements are used up.

    measure(c) returns the reading of the weights c, from a simulator, a replay or an instrument. The result's reason is
    "stopped" if the policy's stopping rule ended the search.

    >>> from eccaht import Problem, Simulator, families, make_policy
    >>> problem = Problem(families.toeplitz(20, 0.5), shift=5.0, n_anomalies=1, budget=2.0)
    >>> world = Simulator(problem, anomalies=[7])
    >>> identify(make_policy("ecc-aht", problem), world.measure, max_measurements=200).anomalies
    array([7])
    """
    if max_measurements is None:
        if isinstance(policy.stopping, Never):
            raise ValueError("the policy has no stopping rule: give max_measurements, or make it with stopping=...")
        limit = np.inf
    else:
        limit = as_count(max_measurements, "max_measurements", least=0)
    count = 0
    while not (stopped := policy.should_stop()) and count < limit:
        c = policy.ask()
        policy.tell(c, measure(c))
        count += 1
    decision, names = policy.decision, policy.problem.names
    return Identification(
        anomalies=decision,
        n_measurements=count,
        reason="stopped" if stopped else "max_measurements",
        names=None if names is None else tuple(names[k] for k in decision),
        confidence=policy.confidence,
        fit=policy.fit,
        shifts=estimated_shifts(policy) if policy.problem.unknown_shift else None,
    )


def estimated_shifts(policy: Policy, level: float = 0.95) -> ShiftEstimates | None:
    """Estimates of the decided streams' shifts, where the policy keeps a joint belief."""
    if policy.shifts is None:
        return None
    mean, deviation = policy.shifts
    reach = ndtri(0.5 + 0.5 * level) * deviation
    return ShiftEstimates(mean, mean - reach, mean + reach, level)
