"""How sure one may be of an announced set, and how that was found out."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import gammaln

from eccaht.arrays import Array, Index
from eccaht.posterior.likelihood import Fit, KnownShifts, Likelihood
from eccaht.posterior.local_search import climb
from eccaht.posterior.slots import Neighbourhood, changes
from eccaht.sets import SetPrior

CHECKERS = 128  # independent searches that should find the announced set again
_SHARP = 30.0  # nats that any single change costs where readings are called precise
LEAST_FIT = 1e-6  # a set whose readings are less likely than this cannot be the right one
_TWO_AWAY = 1 << 22  # sets two changes away up to which they are summed up
_DOUBLES = 64  # best single changes that are changed once more in the search for rivals


class Confidence(NamedTuple):
    """The posterior probability of the announced set.

    It is a number within the model: `policy.fit` says whether the readings look as if the model held.

    how: "exact" if every possible set was looked at, "estimated" if sets drawn from the posterior and independent
    searches were, "unsettled" if independent samples or searches disagree with them: then it is not known.
    """

    probability: float
    how: Literal["exact", "estimated", "unsettled"]


def share_of(likelihood: Likelihood, sizes: SetPrior, sets: Index, around: Neighbourhood) -> float:
    """The share of the set in the middle of `around` among sets drawn from the posterior.

    Counted are sets more than one change away from it; among the others its probability is known exactly.
    """
    away = sets[differences(sizes, sets, around.members) > 1]
    return (1.0 - share_away(likelihood, sizes, away, len(sets), around)) / (1.0 + around.weight)


def share_away(likelihood: Likelihood, sizes: SetPrior, away: Index, drawn: int, around: Neighbourhood) -> float:
    """The probability of all sets more than one change away, of which `away` were among so many drawn.

    Not more than those seen weigh, or than single changes would weigh in pairs if they were independent: late in a
    search one stray set among 64 would stand for more than all that is really in doubt.
    """
    if not len(away):
        return 0.0
    near = around.weight
    further = max(_weight(likelihood, sizes, sizes.distinct(away)[0], around.members), 0.5 * near**2)
    return min(len(away) / drawn, further / (1.0 + near + further))


def _weight(likelihood: Likelihood, sizes: SetPrior, sets: Index, members: Index) -> float:
    """How probable some sets are together, relative to `members`; kept finite."""
    known = np.vstack([members[None], sets])
    height = likelihood.log_likelihood(known) + sizes.log_prior_of(known)
    return float(np.exp(np.minimum(height[1:] - height[0], 300.0)).sum())


def fits(fit: Fit) -> bool:
    """Do the readings look as if they came from this set? Not if there are too few to tell."""
    return fit.degrees > 0 and fit.chance > LEAST_FIT


def refuted(fit: Fit) -> bool:
    """Can the readings not come from this set?"""
    return fit.chance <= LEAST_FIT


def search_anew(likelihood: Likelihood, sizes: SetPrior, rng: np.random.Generator) -> Index:
    """Where independent searches end that climb from random sets."""
    sets = sizes.random_sets(rng, CHECKERS)
    climb(likelihood, sizes, sets)
    return sets


def estimate(likelihood: Likelihood, sizes: SetPrior, drawn: Index, found: Index, around: Neighbourhood) -> float:
    """The posterior probability of a set, as far as a population and independent searches can tell.

    The smaller of two figures, times 1 - exp(-k) where k independent searches found the set again: a rival that is as
    easy to find would have been missed with probability exp(-k). The first figure is the set's share of the
    population, the second its share of the weight of all sets seen, those one change away included, those two
    changes away where they can be summed up, and those that nobody can see one by one where readings are precise.
    """
    members = around.members
    known, _ = sizes.distinct(np.vstack([drawn, found]))
    two = weight_two_away(likelihood, sizes, around)
    seen = _weight(likelihood, sizes, known[differences(sizes, known, members) > (1 if two is None else 2)], members)
    again = int((sizes.keys(found) == sizes.keys(members[None])).sum())
    share = share_of(likelihood, sizes, drawn, around)
    unseen = weight_unseen(likelihood, sizes, members) if around.best < -_SHARP else 0.0
    return min(share, 1.0 / (1.0 + around.weight + (two or 0.0) + seen + unseen)) * -math.expm1(-again)


def weight_two_away(likelihood: Likelihood, sizes: SetPrior, around: Neighbourhood) -> float | None:
    """How probable all sets two changes away are together, relative to the set in the middle; None if too many.

    Two streams that are both missing, or both wrong, can explain the readings where neither does alone.
    """
    K, members = sizes.n_streams, around.members
    held, evidence = members < K, likelihood.evidence
    outside = np.setdiff1d(np.arange(K), members)
    pairs = list(combinations([*np.flatnonzero(held), *np.flatnonzero(~held)[:2]], 2))
    if not isinstance(likelihood, KnownShifts) or len(pairs) * outside.size**2 > _TWO_AWAY:
        return None
    penalty = evidence.entries(outside[:, None], outside[None])
    penalty[np.tril_indices(outside.size)] = np.inf  # each pair once
    own = float(likelihood.log_likelihood(members[None])[0]) + sizes.log_prior[held.sum()]
    total = 0.0
    for pair in pairs:
        rest = members.copy()
        rest[list(pair)] = K
        size, base = int((rest < K).sum()), float(likelihood.log_likelihood(rest[None])[0]) - own
        gain = (evidence.fields(rest[None])[0] - evidence.half_diagonal)[outside]
        heights = [gain[:, None] + gain - penalty + sizes.log_prior[size + 2]]
        if size + 2 == held.sum():  # two leave, and one or nobody comes
            heights += [gain + sizes.log_prior[size + 1], sizes.log_prior[[size]]]
        total += sum(float(np.exp(np.minimum(height + base, 300.0)).sum()) for height in heights)
    return total


def weight_unseen(likelihood: Likelihood, sizes: SetPrior, members: Index) -> float:
    """About how probable all other sets would be, relative to `members`, if streams were Gaussian under the prior.

    A few precise readings fit very few sets, which no search can find one from another; but there may be many of
    them. The readings' density averaged over all sets of a size is nearly that of a Gaussian with the same moments:

        log E[exp(b'z - z'M z / 2)],   z ~ N(m 1, s C),   C = I - 11'/K,   m = k/K,   s = m (1 - m) K / (K - 1).
    """
    evidence, K = likelihood.evidence, sizes.n_streams
    if not isinstance(likelihood, KnownShifts) or not evidence.has_matrix:
        return 0.0
    M, b = evidence.rows(np.arange(K))[:, :K], evidence.linear[:K]
    along = M.sum(axis=1)
    centred = M - along / K - (along / K)[:, None] + along.sum() / K**2
    values, vectors = np.linalg.eigh(centred)
    values = np.maximum(values, 0.0)
    heights = []
    for size in range(sizes.least, sizes.most + 1):
        m = size / K
        s = m * (1.0 - m) * K / max(K - 1, 1)
        residual = b - m * along
        parts = vectors.T @ (residual - residual.mean())
        explained = 0.5 * s * float((parts**2 / (1.0 + s * values)).sum()) - 0.5 * float(np.log1p(s * values).sum())
        heights.append(m * float(b.sum()) - 0.5 * m * m * float(along.sum()) + explained)
    held = int((members < K).sum())
    own = float(likelihood.log_likelihood(members[None])[0]) + sizes.log_prior[held]
    weights = np.exp(np.minimum(np.array(heights) - math.log(sizes.most - sizes.least + 1) - own, 300.0))
    weights[held - sizes.least] *= 1.0 - 1.0 / math.comb(K, held)  # one of that size is no other
    return float(weights.sum())


def differences(sizes: SetPrior, sets: Index, members: Index) -> Index:
    """How many slots of each row must change to make it the set `members`."""
    K = sizes.n_streams
    held = members[members < K]
    common = (np.isin(sets, held) & (sets < K)).sum(axis=1)
    return np.asarray(np.maximum((sets < K).sum(axis=1), held.size) - common)


def close_rivals(likelihood: Likelihood, sizes: SetPrior, around: Neighbourhood) -> Index:
    """All sets one change away, and the best ones two changes away."""
    n, (members, slots, change) = sizes.most, around
    at, streams = np.nonzero(np.isfinite(change))
    single = np.tile(members, (at.size, 1))
    single[np.arange(at.size), slots[at]] = streams
    best = single[np.argsort(-change[at, streams], kind="stable")[:_DOUBLES]]
    doubles = []
    for slot in range(n):
        again = changes(likelihood.gains(best, np.full(len(best), slot)), sizes, best, np.full(len(best), slot))
        again[np.arange(len(best)), best[:, slot]] = -np.inf
        changed = best.copy()
        changed[:, slot] = again.argmax(axis=1)
        doubles.append(changed[np.isfinite(again.max(axis=1))])
    rivals = np.vstack([single, *doubles])
    return rivals[sizes.keys(rivals) != sizes.keys(members[None])]


def advantage(likelihood: Likelihood, sizes: SetPrior, members: Index, rivals: Index) -> float:
    """The log-likelihood ratio of a set to its rivals, less what the number of rivals like each costs; the smallest.

    Stopping when this is at least log(1/alpha) errs with probability at most alpha for every true set, if
    no rival is overlooked (see `stopping.LikelihoodRatio`).
    """
    K = sizes.n_streams
    held, size = members < K, (rivals < K).sum(axis=1)
    common = (np.isin(rivals, members[held]) & (rivals < K)).sum(axis=1)
    gone, come = size - common, int(held.sum()) - common  # streams of the rival only, and of the set only
    kinds = sizes.most if sizes.fixed else (sizes.most + 1) ** 2 - 1
    alike = _log_binomial(size, gone) + _log_binomial(K - size, come) + math.log(kinds)
    own = float(likelihood.log_likelihood(members[None])[0])
    return float((own - likelihood.log_likelihood(rivals) - alike).min())


def _log_binomial(n: Index, k: Index) -> Array:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
