"""After an alarm: since when, which streams, and whether it is over."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.base.codec import Field, Part
from eccaht.base.randomness import rng_for
from eccaht.streams.policies.choosers import compose_joint
from eccaht.streams.posterior.joint import Joint
from eccaht.streams.problem import Problem
from eccaht.streams.stopping import stopping_rule
from eccaht.streams.watch.readings import Step

COVERED = 0.9  # probability of the onset's interval
ERROR = 0.05  # probability that a set which is called certain is wrong
FALSELY_OVER = 1000.0  # steps: mean time until a fault that goes on is called over, at least
STILL_THERE = 0.7  # of its estimated size: a fault that is as large at least goes on
_LEAST, _MEMBER = 1e-4, 0.01  # variance of an indicator: what is certain is read from time to time, members more often


class Onset(NamedTuple):
    """The most likely step, and an interval of probability COVERED, counted in steps back from the last one."""

    best: int
    first: int
    last: int


class Suspects:
    """The joint posterior of sets from the readings since the onset."""

    FIELDS = (Part("_belief"), Field("rows", (), int), Field("_over", low=-math.inf))

    def __init__(self, problem: Problem) -> None:
        least, most = problem.sizes
        some = most if least == most else (max(least, 1), most)
        gaussian = problem.replace(n_anomalies=some, degrees_of_freedom=None, estimated_from=None)
        belief = compose_joint(gaussian, rng=rng_for(0, "watch")).belief
        assert isinstance(belief, Joint)
        self._belief, self._freedom = belief, problem.degrees_of_freedom
        self._rule = stopping_rule("posterior", ERROR, gaussian, can=belief.can, belief=belief)
        self._scale = problem.shift**2 + problem.shift_spread**2
        self.rows = 0  # readings taken
        self._over = -math.inf  # log evidence that the fault is over

    def take(self, steps: Sequence[Step]) -> None:
        """Take the readings of these steps, which belong to the fault."""
        rows, rests = zip(*map(self._weighed, steps), strict=True)
        self.rows += sum(map(len, rows))
        self._belief.update_whitened(np.concatenate(rows), np.concatenate(rests))

    def _weighed(self, step: Step) -> tuple[Array, Array]:
        """Far readings of heavy tails count less, as the likelihood of t noise weighs them."""
        W, w = step.noise.weights, step.w
        if self._freedom is None:
            return W, w
        weight = math.sqrt((self._freedom + len(w)) / (self._freedom - 2.0 + float(w @ w)))
        return weight * W, weight * w

    def passes(self, step: Step) -> bool:
        """Has the fault ended? The likelihood of no shift against a share of the known shifts of the set.

        The exponential of a step's log ratio has a mean of at most 1 while the fault goes on, so that the sum over
        onsets of its end reaches FALSELY_OVER after as many steps in the mean, at the earliest.
        """
        members, sizes = self.members
        moved = step.noise.weights[:, members] @ (STILL_THERE * sizes)
        self._over = float(np.logaddexp(0.0, self._over) - moved @ step.w + 0.5 * moved @ moved)
        return self._over >= math.log(FALSELY_OVER)

    @property
    def members(self) -> tuple[Index, Array]:
        """The most probable set, sorted, and the shifts of its streams."""
        members = self._belief.map_set
        return members, self._belief.likelihood.shifts_of(members)[0]

    @property
    def beliefs(self) -> Array:
        return np.clip(self._belief.beliefs, 0.0, 1.0)

    @property
    def confidence(self) -> float | None:
        found = self._belief.confidence()
        return None if found is None or found.how == "unsettled" else min(max(found.probability, 0.0), 1.0)

    @property
    def certain(self) -> bool:
        return self._rule.met(self._belief.lead, self.rows)

    def variance(self) -> Array:
        """Of the shifts, (K,)."""
        chance = self.beliefs
        return np.asarray((chance * (1.0 - chance) + _LEAST + _MEMBER * (chance > 0.5)) * self._scale)


def onset_of(steps: Sequence[Step], members: Index, sizes: Array) -> Onset:
    """Since when these streams have these shifts."""
    ratios = np.zeros(len(steps))
    for t, step in enumerate(steps):
        moved = step.noise.weights[:, members] @ sizes
        ratios[t] = moved @ step.w - 0.5 * moved @ moved
    logs = np.cumsum(ratios[::-1])[::-1]
    chances = np.exp(logs - logs.max())
    reached = np.cumsum(chances) / chances.sum()
    best = len(logs) - 1 - int(logs[::-1].argmax())  # the last one of those between which nothing was read of them
    first, last = np.searchsorted(reached, [0.5 - 0.5 * COVERED, 0.5 + 0.5 * COVERED]).tolist()
    back = len(steps) - 1
    return Onset(back - best, back - min(first, best), back - max(min(last, back), best))
