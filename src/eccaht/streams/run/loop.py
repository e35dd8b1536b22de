"""The loop of every search, `steps`: the policy asks for a measurement, the world gives its reading."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from eccaht.base.arrays import Array, Index, as_count
from eccaht.base.randomness import rng_for
from eccaht.streams.policies import Policy
from eccaht.streams.policies.choosers import compose_joint
from eccaht.streams.posterior import Confidence, Joint
from eccaht.streams.run.world import NO_TIME, World, as_world
from eccaht.streams.stopping import Horizon, Never

SAFE_LEAD = 50.0  # nats
_JUDGED = 512  # streams up to which a policy without a posterior of sets is judged by one

Pair = tuple[int, int]  # champion and challenger
_NO_PAIR: Pair = (-1, -1)


class Step(NamedTuple):
    """One measurement: what was read, and where. Flat, so that a list of steps is a table.

    What the policy concludes (`decision`, `lead`, `scores`) can be asked of the policy.
    """

    number: int  # from 1
    weights: Array  # really used, (K,) and read-only
    reading: float
    champion: int = -1  # the pair that was measured, -1 without one
    challenger: int = -1
    window: int = -1  # counted from 0, -1 where readings come from no window
    time: np.datetime64 = NO_TIME  # start of the window


class Hits:
    """Counts the true anomalies in the decision after each step, of which F1 and every delay are functions.

    >>> from eccaht import Problem, Simulator, families, make_policy
    >>> problem = Problem(families.identity(8), shift=6.0, n_anomalies=1, budget=1.0)
    >>> policy, world = make_policy("ecc-aht", problem, stopping=None), Simulator(problem)
    >>> hits = Hits(world.anomalies)
    >>> for step in steps(policy, world, limit=10):
    ...     hits.count(policy)
    >>> len(hits.counts), hits.counts[-1]
    (10, 1)
    """

    def __init__(self, anomalies: Sequence[int] | Index) -> None:
        self.counts: list[int] = []
        self._truth = frozenset(np.asarray(anomalies).tolist())

    def count(self, policy: Policy) -> None:
        self.counts.append(len(self._truth.intersection(policy.decision.tolist())))

    def over(self, horizon: int) -> NDArray[np.int32]:
        """The counts after measurements 1 to `horizon`; the last count is repeated where the search ended earlier."""
        missing = horizon - len(self.counts)
        return np.pad(np.array(self.counts, dtype=np.int32), (0, missing), mode="edge")


def steps(
    policy: Policy,
    world: World | Callable[[Array], float],
    limit: int | None = None,
    *,
    obey_stopping: bool = True,
) -> Iterator[Step]:
    """Measure until the policy stops, the data end or `limit` measurements were made, yielding one step each.

    world: where readings come from; a function from weights to a reading will do.
    obey_stopping: whether the policy's stopping rule ends the search.

    >>> from eccaht import Problem, Simulator, families, make_policy
    >>> problem = Problem(families.identity(8), shift=6.0, n_anomalies=1, budget=1.0)
    >>> policy, world = make_policy("ecc-aht", problem), Simulator(problem, anomalies=[5])
    >>> for step in steps(policy, world, limit=100):
    ...     last = step.number, policy.lead > 0
    >>> policy.decision, last
    (array([5]), (1, True))
    """
    most = math.inf if limit is None else as_count(limit, "limit", least=0)
    source = as_world(world)
    number = 0
    while number < most and not (obey_stopping and policy.should_stop()):
        number += 1
        pair = policy.pair or _NO_PAIR
        reading = source.read(policy.ask())  # Algorithm 1, line 14
        if reading is None:
            return
        weights, value, window, time = reading
        policy.tell(weights, value)
        yield Step._make((number, weights, value, *pair, window, time))  # takes half the time of Step(...)


class ShiftEstimates(NamedTuple):
    """Estimated shifts of the named streams and the interval in which each lies with probability `level`.

    They hold if the named set is the right one.
    """

    values: Array
    low: Array
    high: Array
    level: float

    @classmethod
    def of(cls, values: Array, deviations: Array, level: float = 0.95) -> ShiftEstimates:
        reach = ndtri(0.5 + 0.5 * level) * deviations
        return cls(values, values - reach, values + reach, level)


def stays_right(policy: Policy, anomalies: Index) -> bool:
    """Is the set right, and will it stay so? Lets simulations, where the truth is known, end early.

    The likelihood of a wrong set over that of the true one is a martingale: one that trails by 50 nats ever catches up
    with probability exp(-50). Only policies whose lead is exact know how far a swap trails, and only where they
    believe the covariance of the world.
    """
    made = policy.recipe
    exact = policy.can.exact_lead and made is not None and not made.options.get("regularize")
    return exact and policy.lead >= SAFE_LEAD and np.array_equal(policy.decision, anomalies)


@dataclass(frozen=True)
class Identification:
    """The streams named, after how many measurements, and why the search ended there.

    confidence: the posterior probability of the set and how it was found; None where the policy cannot tell. Where a
        number of measurements ended the search it is worked out from all of them, so that the error of the set is known
        whatever chose the measurements.
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


def search(
    policy: Policy,
    measure: Callable[[Array], float],
    max_measurements: int | None = None,
) -> Identification:
    """Run the loop: ask, measure, tell, until the policy stops or the measurements are used up.

    measure(c) returns the reading of the weights c, from a simulator, a replay or an instrument. The result's reason is
    "stopped" if the policy's stopping rule ended the search.

    >>> from eccaht import Problem, Simulator, families, make_policy
    >>> problem = Problem(families.toeplitz(20, 0.5), shift=5.0, n_anomalies=1, budget=2.0)
    >>> world = Simulator(problem, anomalies=[7])
    >>> search(make_policy("ecc-aht", problem), world.measure, max_measurements=200).anomalies
    array([7])
    """
    if max_measurements is not None:
        as_count(max_measurements, "max_measurements", least=0)
    elif isinstance(policy.stopping, Never):
        raise ValueError("the policy has no stopping rule: give max_measurements, or make it with stopping=...")
    count, made, judged = 0, list[tuple[Array, float]](), isinstance(policy.stopping, Horizon)
    for step in steps(policy, measure, max_measurements):
        count += 1
        if judged:
            made.append((step.weights, step.reading))
    return Identification(
        anomalies=policy.decision,
        n_measurements=count,
        reason="stopped" if policy.should_stop() else "max_measurements",
        names=None if policy.problem.names is None else policy.decision_names,
        confidence=_judged(policy, made) if judged else policy.confidence,
        fit=policy.fit,
        shifts=estimated_shifts(policy) if policy.problem.unknown_shift else None,
    )


def _judged(policy: Policy, made: Sequence[tuple[Array, float]]) -> Confidence | None:
    """The probability of the set that was named when the readings were used up, by the exact likelihood of sets."""
    problem, confidence = policy.problem, policy.confidence
    if confidence is not None or not made or problem.size > _JUDGED:
        return confidence
    belief = compose_joint(problem, rng=rng_for(0, "judge")).belief
    assert isinstance(belief, Joint)
    scale = np.array([problem.noise_variance(c) for c, _ in made]) ** -0.5
    left = np.array([y - problem.mean_reading(c) for c, y in made])
    belief.update_whitened(np.array([c for c, _ in made]) * scale[:, None], left * scale)
    return belief.confidence_of(policy.decision)


def estimated_shifts(policy: Policy, level: float = 0.95) -> ShiftEstimates | None:
    """Estimates of the decided streams' shifts, where the policy keeps a joint belief."""
    return None if policy.shifts is None else ShiftEstimates.of(*policy.shifts, level)
