"""Measurements of largest extrinsic Jensen-Shannon divergence (Naghshvar & Javidi 2012).

With p_i the posterior probability of set i and q_i = N(m_i, 1) the law of a reading under it,

    EJS(c) = sum_i p_i D(q_i || sum over j != i of p_j q_j / (1 - p_i)) :

how far a reading speaks for the right set against all others together. In the article the actions are finite in number;
here they are each stream alone and the design of each swap of the most likely set.
"""

import math
from typing import cast

import numpy as np

from eccaht.base.arrays import Array
from eccaht.streams.designs import PairDesign, single_stream
from eccaht.streams.policies.parts import Choice, Chooser, Parts, View
from eccaht.streams.policies.revised import TWO_STAGE
from eccaht.streams.policies.transductive import sets_of
from eccaht.streams.posterior import Enumeration, Joint
from eccaht.streams.problem import Problem

_WIDTH, _NARROWEST = 0.1, 1e-3  # of a bin of readings, in units of the noise
_FEWEST, _MOST = 64, 2048  # bins between the lowest and the highest mean, as far as their width allows
_REACH, _LEAST = 9.0, 1e-18  # deviations of the noise, and a density: a divergence counts up to about 40 nats
_GRID = 0.3  # of an integral over the noise, which is smooth
_RARE = 1e-3  # sets less probable than this are compared with the mixture of all: an error of that share


def compose_extrinsic(problem: Problem, *, rng: np.random.Generator) -> Parts:
    belief = sets_of("extrinsic-jensen-shannon", problem, rng)
    belief.can = TWO_STAGE
    return Parts(belief, _MostExtrinsic(belief))


class _MostExtrinsic(Chooser):
    def __init__(self, belief: Joint) -> None:
        self._belief, self._design = belief, PairDesign(belief.problem)
        self._alone = [single_stream(belief.problem, k) for k in range(belief.problem.size)]

    def choose(self, view: View) -> Choice:  # noqa: ARG002
        members, problem = self._belief.map_set, self._belief.problem
        outside = np.setdiff1d(np.arange(problem.size), members)
        actions = [*self._alone, *(self._design(i, j) for i in members.tolist() for j in outside.tolist())]
        sets = cast("Enumeration", self._belief.posterior)
        scaled = [np.append(problem.shift * c, 0.0) / problem.noise_variance(c) ** 0.5 for c in actions]
        values = [extrinsic(h[sets.sets].sum(axis=1), sets.log_posterior) for h in scaled]
        return Choice(actions[int(np.argmax(values))])


def extrinsic(means: Array, log_chance: Array) -> float:
    """EJS of a reading with these means under sets of these probabilities, its noise being 1.

    >>> round(extrinsic(np.array([0.0, 2.0]), np.log([0.5, 0.5])), 3)  # of two sets: their divergence, 2^2 / 2
    2.0
    """
    chance, low, span = np.exp(log_chance), means.min(), float(np.ptp(means))
    width = max(min(_WIDTH, span / _FEWEST), span / _MOST, _NARROWEST)
    step = min(width, 1.0)
    reach = math.ceil(_REACH / step)
    kernel = _normal(step * np.arange(-reach, reach + 1.0))
    place = np.round((means - low) / width).astype(np.intp)
    density = np.convolve(np.bincount(place, chance), kernel)
    expected = np.convolve(np.log(np.maximum(density, _LEAST)), kernel[::-1], mode="valid")[place]
    # Of the likely ones, over a grid that is fine enough for an integral over the noise.
    (likely,) = np.nonzero(chance > _RARE)
    grid = np.arange(0, kernel.size, max(1, int(_GRID / step)))
    p, at = chance[likely, None], place[likely, None] + grid
    others = (density[at] - p * kernel[grid]) / np.maximum(1.0 - p, _LEAST)
    top = int(log_chance.argmax())  # beside which the others may be too improbable for a difference
    rest = np.where(np.arange(means.size) == top, -np.inf, log_chance)
    rest = np.exp(rest - rest.max())
    others[likely == top] = np.convolve(np.bincount(place, rest / rest.sum()), kernel)[place[top] + grid]
    expected[likely] = np.log(np.maximum(others, _LEAST)) @ (kernel[grid] / kernel[grid].sum())
    return float(kernel @ np.log(kernel) - chance @ expected)


def _normal(y: Array) -> Array:
    density = np.exp(-0.5 * y * y)
    return np.asarray(density / density.sum())
