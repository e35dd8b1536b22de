"""The last one or two members of a set, exactly: all other members taken for certain, every stream or pair weighed.

Correlated noise is cancelled by weights of alternating signs. Two anomalies side by side cancel each other in such
readings: each alone looks improbable, and marginals miss them. Among all pairs the two are found like any other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import softmax

from eccaht.base.arrays import Array
from eccaht.streams.posterior.gibbs import Neighbourhood
from eccaht.streams.posterior.likelihood import Likelihood
from eccaht.streams.sets import Moments

_SURE = 4.0  # nats that every change of a member costs which is taken for certain
_FARTHEST = 30.0  # log-odds


def last_members(likelihood: Likelihood, around: Neighbourhood) -> Moments | None:
    """Moments of all streams if all but the one or two weakest members are certain; None if they are not."""
    members, slots, change = around
    evidence, K = likelihood.evidence, likelihood.evidence.problem.size
    cost = -change.max(axis=1)
    weakest = np.argsort(cost, kind="stable")
    count = max(int((cost < _SURE).sum()), 1)
    if count > 2 or (count == 2 and not evidence.has_matrix):
        return None
    rest = members.copy()
    rest[slots[weakest[:count]]] = K
    alone = (evidence.fields(rest[None])[0] - evidence.half_diagonal)[:K]
    alone[rest[rest < K]] = -np.inf
    return _one(alone) if count == 1 else _two(alone, evidence.rows(np.arange(K))[:, :K])


def _one(alone: Array) -> Moments:
    """One stream more adds a_k to the log-likelihood."""
    chance = softmax(alone)
    return _moments(chance, lambda u: np.asarray(chance * u - chance * (chance @ u)))


def _two(alone: Array, coupling: Array) -> Moments:
    """Two more add a_k + a_l - M_kl."""
    height = (alone - coupling).astype(np.float32)
    height += alone.astype(np.float32)[:, None]
    np.fill_diagonal(height, -np.inf)
    height -= height.max()
    both = np.exp(height, out=height)
    both *= np.float32(2.0 / both.sum(dtype=float))
    chance = np.clip(both.sum(axis=1, dtype=float), 0.0, 1.0)

    def times_covariance(u: Array) -> Array:
        return np.asarray(both @ u.astype(np.float32) + chance * u - chance * (chance @ u))

    return _moments(chance, times_covariance)


def _moments(chance: Array, times_covariance: Callable[[Array], Array]) -> Moments:
    with np.errstate(divide="ignore"):
        log_odds = np.clip(np.log(chance) - np.log1p(-chance), -_FARTHEST, _FARTHEST)
    return Moments(log_odds, chance * (1.0 - chance), times_covariance)
