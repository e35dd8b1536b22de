"""The posterior over sets after whole vectors, computed from scratch.

One whole vector says as much as K readings at once, so that the posterior jumps: a population that moves along
reading by reading is left behind. So the posterior is sampled from scratch. The sets around every known mode are
summed up exactly (V, the vicinity). Sequential Monte Carlo moves sets from the prior to the posterior through
likelihood^beta, beta from 0 to 1; the share f of its draws that lie in V estimates the probability of V. Inside V
probabilities are exact up to the factor f, outside they are those of the draws. A posterior of a few sharp modes
lies in V, whatever weights the draws give them, and a diffuse one is easily drawn from.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.streams.posterior.gibbs import changes, log_posterior, sweep
from eccaht.streams.posterior.likelihood import Likelihood
from eccaht.streams.sets import SetPrior

DRAWS = 256  # of each of the two independent samples
_FURTHER = 4  # sweeps at the posterior itself, over which marginals are averaged
_BATCH = 64  # sets whose neighbours are looked at together
_MOST = 8192  # sets in the vicinity; beyond, the posterior is so diffuse that draws describe it better
_DEEP = 12.0  # nats below the most probable set from which on sets are left to the draws
_OPEN = 0.003  # share of the vicinity's probability whose neighbours may stay unexplored
MOST_DISAGREEMENT = 0.1  # of the marginals of two samples; the error of their mean is about half of it


class Vicinity(NamedTuple):
    """Sets around the modes with their log-posterior, but for a constant that all share."""

    sets: Index
    keys: Index  # sorted
    height: Array

    @property
    def log_weight(self) -> float:
        """Log of the sum of exp(height)."""
        top = float(self.height.max())
        return top + math.log(float(np.exp(self.height - top).sum()))

    def holds(self, keys: Index) -> Index:
        place = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return np.asarray(self.keys[place] == keys)


class Survey(NamedTuple):
    """Marginals, the log of the posterior's normalising constant, and whether two independent samples agreed."""

    marginals: Array
    log_total: float
    agreed: bool


def survey(
    likelihood: Likelihood, prior: SetPrior, vicinity: Vicinity, rng: np.random.Generator, draws: int = DRAWS
) -> Survey:
    """Weigh the vicinity against the rest by two independent samples of so many draws."""
    parts = [_sampled(likelihood, prior, vicinity, rng, draws) for _ in range(2)]
    shares = np.array([share for share, _ in parts])
    near = prior.marginals(vicinity.sets, np.exp(vicinity.height - vicinity.log_weight))
    marginals = [share * near + outside for share, outside in parts]
    disagreement = max(float(np.abs(marginals[0] - marginals[1]).max()), float(np.ptp(shares)))
    share = max(float(shares.mean()), 0.5 / draws)
    return Survey(np.mean(marginals, axis=0), vicinity.log_weight - math.log(share), disagreement <= MOST_DISAGREEMENT)


def explore(likelihood: Likelihood, prior: SetPrior, seeds: Index) -> Vicinity:
    """The sets around the seeds, best first, until the unexplored weight is negligible or the limit is reached."""
    known, _ = prior.distinct(seeds)
    height = log_posterior(likelihood, prior, known)
    keys, fresh = prior.keys(known), np.ones(len(known), dtype=bool)
    while len(known) < _MOST:
        weight = np.exp(np.minimum(height - height.max(), 0.0))
        if weight[fresh].sum() <= _OPEN * weight.sum():
            break
        chosen = np.flatnonzero(fresh)
        chosen = chosen[np.argsort(-height[chosen], kind="stable")[:_BATCH]]
        fresh[chosen] = False
        sets, found = _neighbours(likelihood, prior, known[chosen], height[chosen], float(height.max()) - _DEEP)
        new_keys, first = np.unique(prior.keys(sets), return_index=True)
        first = first[~np.isin(new_keys, keys)]
        known, height = np.vstack([known, sets[first]]), np.append(height, found[first])
        keys, fresh = np.append(keys, prior.keys(sets[first])), np.append(fresh, np.ones(first.size, dtype=bool))
    order = np.argsort(keys)
    return Vicinity(known[order], keys[order], height[order])


def _neighbours(
    likelihood: Likelihood, prior: SetPrior, sets: Index, height: Array, least: float
) -> tuple[Index, Array]:
    """All sets one change away from these whose log-posterior is at least `least`."""
    found, heights = [sets[:0]], [height[:0]]
    for slot in range(sets.shape[1]):
        slots = np.full(len(sets), slot)
        reached = changes(likelihood, prior, sets, slots) + height[:, None]
        row, stream = np.nonzero(reached >= least)
        changed = sets[row]
        changed[:, slot] = stream
        found.append(changed)
        heights.append(reached[row, stream])
    return np.vstack(found), np.concatenate(heights)


def _sampled(
    likelihood: Likelihood, prior: SetPrior, vicinity: Vicinity, rng: np.random.Generator, draws: int
) -> tuple[float, Array]:
    """The share of draws that lie in the vicinity, and what the others add to the marginals."""
    sets = drawn(likelihood, prior, rng, draws)
    inside, outside = 0, np.zeros(prior.n_streams + 1)
    for _ in range(_FURTHER):
        sweep(likelihood, prior, sets, np.ones(len(sets)), rng)
        held = vicinity.holds(prior.keys(sets))
        inside += int(held.sum())
        outside += np.bincount(sets[~held].ravel(), minlength=outside.size)
    total = _FURTHER * len(sets)
    return inside / total, outside[:-1] / total


def drawn(likelihood: Likelihood, prior: SetPrior, rng: np.random.Generator, count: int) -> Index:
    """Sets from the posterior by sequential Monte Carlo: from the prior, through likelihood^beta.

    Each step goes as far as it leaves weights that are worth half of the draws (Del Moral, Doucet & Jasra 2006).
    """
    sets, beta = prior.random_sets(rng, count), 0.0
    while beta < 1.0:
        fit = likelihood.log_likelihood(sets)
        fit = np.maximum(fit - fit.max(), -1e300)
        step = _step(fit, 1.0 - beta)
        beta = min(beta + step, 1.0)
        line = np.cumsum(np.exp(step * fit))
        places = np.searchsorted(line, (np.arange(count) + rng.random()) / count * line[-1])
        sets = sets[np.minimum(places, count - 1)]
        sweep(likelihood, prior, sets, np.full(count, beta), rng)
    return sets


def _step(fit: Array, most: float) -> float:
    """The largest step of beta, up to `most`, whose weights are worth half of the draws."""

    def worth(step: float) -> float:
        weights = np.exp(step * fit)
        return float(weights.sum() ** 2 / np.square(weights).sum())

    if worth(most) >= 0.5 * fit.size:
        return most
    low, high = math.log(most) - 700.0, math.log(most)
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if worth(math.exp(middle)) >= 0.5 * fit.size else (low, middle)
    return math.exp(low)
