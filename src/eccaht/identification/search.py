"""One policy over recorded windows: every measurement with what it was to tell apart and what it changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from eccaht.arrays import Array, Index, as_count
from eccaht.environments import Replay
from eccaht.policies import Policy
from eccaht.problem import Problem


@dataclass(frozen=True)
class Entry:
    """One measurement.

    Two hypotheses are compared: the set held before the reading, and the same set with its `champion` (weakest member)
    swapped for its `challenger` (strongest sensor outside). `expected` and `expected_swapped` are the
    mean readings under either.
    """

    number: int  # from 1
    window: int
    time: np.datetime64  # start of the window
    weights: Array
    reading: float
    noise: float  # standard deviation of the reading
    champion: int
    challenger: int
    expected: float
    expected_swapped: float
    held: Index  # the set before the reading
    decision: Index  # and after it
    moved: Array  # change of every score, (K,)
    scores: Array  # after the reading, (K,)
    lead: float

    @property
    def evidence(self) -> float:
        """Log-likelihood ratio of the held set against the swapped one, from this reading alone."""
        far, near = self.reading - self.expected_swapped, self.reading - self.expected
        return (far - near) * (far + near) / (2.0 * self.noise**2)


def search(
    policy: Policy, replay: Replay, max_measurements: int | None = None, done: Callable[[], bool] | None = None
) -> Iterator[Entry]:
    """Measure until the policy stops, the data end or the measurements are used up, yielding one entry a reading.

    done: decides in place of `policy.should_stop`.
    """
    done = done or policy.should_stop
    limit = np.inf if max_measurements is None else as_count(max_measurements, "max_measurements", least=1)
    number = 0
    while number < limit and not done():
        held, before = policy.decision, policy.scores.copy()
        champion, challenger = rivals(policy, held)
        reading = replay.read(policy.ask())
        if reading is None:
            return
        policy.tell(reading.weights, reading.value)
        number += 1
        problem, c, scores = policy.problem, reading.weights, policy.scores.copy()
        yield Entry(
            number=number,
            window=reading.window,
            time=reading.time,
            weights=c,
            reading=reading.value,
            noise=float(np.sqrt(problem.noise_variance(c))),
            champion=champion,
            challenger=challenger,
            expected=problem.expected(c, held),
            expected_swapped=problem.expected(c, swapped(held, champion, challenger)),
            held=held,
            decision=policy.decision,
            moved=scores - before,
            scores=scores,
            lead=policy.lead,
        )


def rivals(policy: Policy, decision: Index) -> tuple[int, int]:
    """The measured pair if it straddles the edge of the set, else the sensors of closest score on either side."""
    members = set(decision.tolist())
    if policy.pair is not None and policy.pair[0] in members and policy.pair[1] not in members:
        return policy.pair
    return edge(policy.problem, policy.scores, decision)


def edge(problem: Problem, scores: Array, decision: Index) -> tuple[int, int]:
    """The weakest member of the set and the strongest sensor outside it."""
    outside = np.setdiff1d(np.arange(problem.size), decision)
    return int(decision[scores[decision].argmin()]), int(outside[scores[outside].argmax()])


def swapped(decision: Index, out: int, into: int) -> Index:
    """The set with one sensor exchanged for another."""
    return np.sort(np.append(decision[decision != out], into))
