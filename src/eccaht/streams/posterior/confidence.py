"""How probable a set is, estimated from draws, independent searches and sums over its neighbours."""

import math
from itertools import combinations

import numpy as np
from scipy.special import gammaln

from eccaht.base.arrays import Array, Index
from eccaht.streams.posterior.gibbs import Neighbourhood, changes, finite_exp, log_posterior
from eccaht.streams.posterior.likelihood import Likelihood
from eccaht.streams.sets import SetPrior

_SHARP = 30.0  # nats that any single change costs where readings are called precise
_TWO_AWAY = 1 << 22  # sets two changes away up to which they are summed up
_DOUBLES = 64  # best single changes that are changed once more in the search for rivals


def share_of(likelihood: Likelihood, prior: SetPrior, sets: Index, around: Neighbourhood) -> float:
    """The share of the set of `around` among sets drawn from the posterior.

    Only draws more than one change away from it are counted; among the others its probability is known exactly.
    """
    away = sets[differences(prior, sets, around.members) > 1]
    return (1.0 - share_away(likelihood, prior, away, len(sets), around)) / (1.0 + around.weight)


def share_away(likelihood: Likelihood, prior: SetPrior, away: Index, drawn: int, around: Neighbourhood) -> float:
    """The probability of all sets more than one change away; of `drawn` draws, those in `away` were such sets.

    It is at most the larger of two figures: the summed probability of these draws, and that of all pairs of single
    changes if they were independent. Otherwise one stray draw among 64 would count for far too much late in a search.
    """
    if not len(away):
        return 0.0
    near = around.weight
    further = max(_weight(likelihood, prior, prior.once(away), around.members), 0.5 * near**2)
    return min(len(away) / drawn, further / (1.0 + near + further))


def _weight(likelihood: Likelihood, prior: SetPrior, sets: Index, members: Index) -> float:
    """The probability of some sets together, over that of `members`; kept finite."""
    height = log_posterior(likelihood, prior, np.vstack([members[None], sets]))
    return float(finite_exp(height[1:] - height[0]).sum())


def estimate(likelihood: Likelihood, prior: SetPrior, drawn: Index, found: Index, around: Neighbourhood) -> float:
    """The posterior probability of a set, as far as a population and independent searches can tell.

    The smaller of two figures, times 1 - exp(-k) where k independent searches found the set again: a rival that is as
    easy to find would have been missed with probability exp(-k). The first figure is the set's share of the
    population. The second is its share of the probability of all sets that were seen, all one change away, all two
    changes away where they can be summed up, and, where readings are precise, about all others (`weight_unseen`).
    """
    members = around.members
    known = prior.once(np.vstack([drawn, found]))
    two = weight_two_away(likelihood, prior, around)
    seen = _weight(likelihood, prior, known[differences(prior, known, members) > (1 if two is None else 2)], members)
    again = len(found) - len(prior.others(found, members))
    share = share_of(likelihood, prior, drawn, around)
    unseen = weight_unseen(likelihood, prior, members) if around.best < -_SHARP else 0.0
    return min(share, 1.0 / (1.0 + around.weight + (two or 0.0) + seen + unseen)) * -math.expm1(-again)


def weight_two_away(likelihood: Likelihood, prior: SetPrior, around: Neighbourhood) -> float | None:
    """The probability of all sets two changes away together, over that of the set; None if too many.

    Two streams that are both missing, or both wrong, can explain the readings where neither does alone.
    """
    K, members = prior.n_streams, around.members
    held, evidence = members < K, likelihood.evidence
    outside = np.setdiff1d(np.arange(K), members)
    pairs = list(combinations([*np.flatnonzero(held), *np.flatnonzero(~held)[:2]], 2))
    if not likelihood.quadratic or len(pairs) * outside.size**2 > _TWO_AWAY:
        return None
    penalty = evidence.entries(outside[:, None], outside[None])
    penalty[np.tril_indices(outside.size)] = np.inf  # each pair once
    own = float(log_posterior(likelihood, prior, members[None])[0])
    total = 0.0
    for pair in pairs:
        rest = members.copy()
        rest[list(pair)] = K
        size, base = int((rest < K).sum()), float(likelihood.log_likelihood(rest[None])[0]) - own
        gain = evidence.one_more(rest)[outside]
        both = gain[:, None] + gain
        both -= penalty
        both += prior.log_prior[size + 2]
        heights = [both]
        if size + 2 == held.sum():  # two leave, and one or none comes
            heights += [gain + prior.log_prior[size + 1], prior.log_prior[[size]]]
        for height in heights:  # in place: these are large
            height += base
            np.minimum(height, 300.0, out=height)
        total += sum(float(np.exp(height, out=height).sum()) for height in heights)
    return total


def weight_unseen(likelihood: Likelihood, prior: SetPrior, members: Index) -> float:
    """About the probability of all other sets, over that of `members`, if streams were Gaussian under the prior.

    A few precise readings fit very few sets, and no single changes lead from one to the next, but there may be many of
    them. The readings' density averaged over all sets of a size is nearly that of a Gaussian with the same moments:

        log E[exp(b'z - z'M z / 2)],   z ~ N(m 1, s C),   C = I - 11'/K,   m = k/K,   s = m (1 - m) K / (K - 1).
    """
    evidence, K = likelihood.evidence, prior.n_streams
    if not likelihood.quadratic or not evidence.has_matrix:
        return 0.0
    M, b = evidence.rows(np.arange(K))[:, :K], evidence.linear[:K]
    along = M.sum(axis=1)
    centred = M - along / K - (along / K)[:, None] + along.sum() / K**2
    values, vectors = np.linalg.eigh(centred)
    values = np.maximum(values, 0.0)
    heights = []
    for size in range(prior.least, prior.most + 1):
        m = size / K
        s = m * (1.0 - m) * K / max(K - 1, 1)
        residual = b - m * along
        parts = vectors.T @ (residual - residual.mean())
        explained = 0.5 * s * float((parts**2 / (1.0 + s * values)).sum()) - 0.5 * float(np.log1p(s * values).sum())
        heights.append(m * float(b.sum()) - 0.5 * m * m * float(along.sum()) + explained)
    held = int((members < K).sum())
    own = float(log_posterior(likelihood, prior, members[None])[0])
    weights = finite_exp(np.array(heights) - math.log(prior.most - prior.least + 1) - own)
    weights[held - prior.least] *= 1.0 - 1.0 / math.comb(K, held)  # the set itself is no other set
    return float(weights.sum())


def differences(prior: SetPrior, sets: Index, members: Index) -> Index:
    """How many slots of each row must change to make it the set `members`."""
    return np.maximum(*_differences(prior, sets, members))


def _differences(prior: SetPrior, sets: Index, members: Index) -> tuple[Index, Index]:
    """How many streams each row has that `members` lacks, and how many it lacks."""
    K = prior.n_streams
    held = np.zeros(K + 1, dtype=bool)
    held[members] = True
    held[K] = False
    common = held[sets].sum(axis=1)
    return (sets < K).sum(axis=1) - common, np.count_nonzero(held) - common


def close_rivals(likelihood: Likelihood, prior: SetPrior, around: Neighbourhood) -> Index:
    """All sets one change away, and the best ones two changes away."""
    n, (members, slots, change) = prior.most, around
    at, streams = np.nonzero(np.isfinite(change))
    single = np.tile(members, (at.size, 1))
    single[np.arange(at.size), slots[at]] = streams
    best = single[np.argsort(-change[at, streams], kind="stable")[:_DOUBLES]]
    doubles = []
    for slot in range(n):
        again = changes(likelihood, prior, best, np.full(len(best), slot))
        again[np.arange(len(best)), best[:, slot]] = -np.inf
        changed = best.copy()
        changed[:, slot] = again.argmax(axis=1)
        doubles.append(changed[np.isfinite(again.max(axis=1))])
    rivals = np.vstack([single, *doubles])
    return prior.others(rivals, members)


def advantage(likelihood: Likelihood, prior: SetPrior, members: Index, rivals: Index) -> float:
    """The log-likelihood ratio of a set to its rivals, less what the number of rivals like each costs; the smallest.

    Stopping when this is at least log(1/alpha) errs with probability at most alpha for every true set, if
    no rival is overlooked (see `stopping.LikelihoodRatio`).
    """
    size = (rivals < prior.n_streams).sum(axis=1)
    gone, come = _differences(prior, rivals, members)  # streams of the rival only, and of the set only
    kinds = prior.most if prior.fixed else (prior.most + 1) ** 2 - 1
    alike = _log_binomial(size, gone) + _log_binomial(prior.n_streams - size, come) + math.log(kinds)
    own = float(likelihood.log_likelihood(members[None])[0])
    return float((own - likelihood.log_likelihood(rivals) - alike).min())  # eq. 12, left side


def _log_binomial(n: Index, k: Index) -> Array:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
