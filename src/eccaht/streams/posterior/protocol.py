"""The interfaces of a policy's belief and of a posterior over sets, what both declare, and the ranking of scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from eccaht.base.arrays import Array, Index
from eccaht.base.codec import Fields
from eccaht.streams.posterior.gibbs import Neighbourhood
from eccaht.streams.posterior.likelihood import Fit, Likelihood
from eccaht.streams.problem import Problem
from eccaht.streams.sets import Hypotheses, Moments

_SMALL = 512  # up to here sorting is faster than selecting


class Ranking(NamedTuple):
    """The n largest scores and the two streams on either side of the cut."""

    members: Index  # sorted
    champion: int  # weakest member
    challenger: int  # strongest stream outside
    lead: float  # what separates the two

    def among(self, rank: Ranker, scores: Array, available: NDArray[np.bool_]) -> Ranking:
        """The same set, with the weakest member and the strongest outsider that are available.

        Where all available streams are on one side of the cut, the two of them nearest to it; where only one is
        available, that one and -1.
        """
        streams = available.nonzero()[0]
        if streams.size == 1:
            return self._replace(champion=int(streams[0]), challenger=-1)
        inside = min(max(int(np.isin(streams, self.members).sum()), 1), streams.size - 1)
        nearest = Ranker(rank.order[streams].argsort().argsort())(scores[streams], inside)
        return self._replace(champion=int(streams[nearest.champion]), challenger=int(streams[nearest.challenger]))


class Ranker:
    """Splits off the n largest scores; among equal scores the one of smaller `order` is the stronger.

    order: a permutation, the rank of each stream among equals.

    >>> Ranker(np.array([0, 1, 3, 2]))(np.array([0.0, 2.0, 1.0, 1.0]), 2)
    Ranking(members=array([1, 3]), champion=3, challenger=2, lead=0.0)
    """

    def __init__(self, order: Index) -> None:
        self.order = order
        self._queue = np.empty_like(order)  # streams by their order
        self._queue[order] = np.arange(order.size)

    def __call__(self, scores: Array, n: int) -> Ranking:
        cut = scores.size - n
        parted = scores.copy()
        if parted.size <= _SMALL:
            parted.sort()
        else:
            parted.partition((cut - 1, cut))
        outside, inside = parted[cut - 1], parted[cut]
        if outside < inside:
            members = (scores >= inside).nonzero()[0]  # S_t, Algorithm 1, line 7
            champion = self._last(members[scores[members] == inside])  # i*, line 8
            challenger = self._first((scores == outside).nonzero()[0])  # j*, line 10
            return Ranking(members, champion, challenger, float(inside - outside))
        above = (scores > inside).nonzero()[0]
        chosen = self._first_in_queue(scores == inside, n - above.size + 1)
        members = np.sort(np.concatenate([above, chosen[:-1]]))
        return Ranking(members, int(chosen[-2]), int(chosen[-1]), 0.0)

    def _first_in_queue(self, waiting: NDArray[np.bool_], count: int) -> Index:
        """The first `count` waiting streams, looking no further down the queue than needed."""
        found, start, length = np.empty(0, dtype=np.intp), 0, 256
        while found.size < count:
            here = self._queue[start : start + length]
            found = np.concatenate([found, here[waiting[here]]])
            start, length = start + length, 2 * length
        return found[:count]

    def _first(self, streams: Index) -> int:
        return int(streams[0] if streams.size == 1 else streams[self.order[streams].argmin()])

    def _last(self, streams: Index) -> int:
        return int(streams[0] if streams.size == 1 else streams[self.order[streams].argmax()])


@dataclass(frozen=True)
class Capabilities:
    """What an algorithm can do; the defaults hold for one log-likelihood ratio per stream."""

    whole_vectors: bool = False  # takes readings of all streams at once
    open_number: bool = False  # takes n_anomalies=(least, most)
    unknown_shift: bool = False  # takes an UnknownShift
    posterior: bool = False  # knows the posterior of whole sets
    exact_lead: bool = False  # its lead is the exact log-likelihood ratio of the weakest swap
    log_odds: bool = True  # its scores are log-likelihood ratios
    uses_covariance: bool = True  # a ridge on the covariance makes a difference
    order_matters: bool = False  # which stream is beside which matters: relabelling changes the search
    batches: bool = True  # several measurements may be under way at once, and some streams unavailable
    shared_noise: bool = True  # takes readings of one moment, whose noise is correlated


WHOLE_POSTERIOR = Capabilities(
    whole_vectors=True, open_number=True, unknown_shift=True, posterior=True, exact_lead=True
)


class Confidence(NamedTuple):
    """The posterior probability of the MAP set.

    It is a number within the model: `policy.fit` says whether the readings look as if the model held.

    how: "exact" if it was computed over every possible set; "estimated" if from sets drawn from the posterior and from
    independent searches; "unsettled" if independent samples or searches disagree, so that the number is not reliable.
    """

    probability: float
    how: Literal["exact", "estimated", "unsettled"]


class Belief(Protocol):
    """What all readings say, changed by `update` and `observe` alone.

    The defaults here are those of a belief with one score for each stream: the set is that of the n largest scores, and
    there is no posterior of whole sets.

    FIELDS: what a file must keep. A method `check_restored(sizes)` says what is wrong with them together.
    """

    FIELDS: ClassVar[Fields] = ()
    problem: Problem
    can: Capabilities = Capabilities()
    likelihood: Likelihood | None = None  # of sets of streams, given all readings

    @property
    def scores(self) -> Array:
        """What streams are ranked by, read-only."""

    @property
    def beliefs(self) -> Array:
        """The probability of each stream of being anomalous; here scores are log-odds."""
        return expit(self.scores)  # eq. 4

    def update(self, c: Array, y: float) -> None:
        """Add one reading."""

    def observe(self, x: Array) -> None:  # noqa: ARG002
        raise ValueError("this belief takes no whole vectors: it scores weighted sums alone")

    def update_together(self, C: Array, y: Array) -> None:  # noqa: ARG002
        """Add readings of one moment, one a row of C, whose noise has the covariance C S C'."""
        raise ValueError("this belief takes no readings that share noise: it scores one reading at a time")

    def ranking(self, rank: Ranker) -> Ranking:
        """The set, its weakest swap and the lead of it; `rank` breaks ties."""
        return rank(self.scores, self.problem.known_number)

    def ranking_among(self, rank: Ranker, available: NDArray[np.bool_]) -> Ranking:
        """The same, with the weakest swap among the streams that can be measured; challenger -1 if only one can."""
        return self.ranking(rank).among(rank, self.scores, available)

    def twin(self) -> Self:
        return deepcopy(self, {id(self.problem): self.problem})

    def expecting(self, pending: Sequence[Array]) -> Belief:
        """The belief if each of these measurements reads what is expected of it: c'mean + sum_k h_k p_k."""
        twin = self.twin()
        for c in pending:
            twin.update(c, twin.expected(c))
        return twin

    def expected(self, c: Array) -> float:
        """The mean reading by the probabilities of the streams, scaled down where they add up to more than n."""
        problem, chance = self.problem, self.beliefs
        share = min(1.0, problem.sizes[1] / max(float(chance.sum()), 1e-300))
        return problem.mean_reading(c) + share * float((c * problem.shift) @ chance)

    def confidence(self) -> Confidence | None:
        return None

    def fit(self) -> Fit | None:
        """How well the readings fit the set."""
        return None

    def shifts(self) -> tuple[Array, Array] | None:
        """Posterior mean and standard deviation of the shifts of the set."""
        return None


class Posterior(Protocol):
    """The posterior over sets, kept up to date with the sufficient statistics of a likelihood.

    `build(likelihood, prior, rng)` makes one, and `eccaht.checks.check_posterior` tests it. One that inherits from this
    class and overrides nothing else finds the MAP set only.

    FIELDS: what a file must keep; the statistics are restored before.
    """

    FIELDS: ClassVar[Fields] = ()
    can: Capabilities = Capabilities(whole_vectors=True, exact_lead=True)

    def update(self) -> None:
        """Take account of readings that were added to the statistics."""

    def candidates(self) -> Index:
        """Sets, one a row, among which the MAP set is looked for."""

    def marginals(self) -> Array | None:
        """Posterior probability of each stream, (K,)."""
        return None

    def in_doubt(self, around: Neighbourhood) -> Hypotheses:  # noqa: ARG002
        """Sets and their probabilities, for the next measurement to separate; `around` is that of the MAP set."""
        raise ValueError(f"{type(self).__name__} keeps no posterior")

    def moments(self) -> Moments | None:
        """Moments of all streams for the next measurement, where the posterior is too spread out for sets."""
        return None

    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence | None:  # noqa: ARG002
        """The posterior probability of the set of `around`; if it is below `needed` it may be rough."""
        return None

    def advantage(self, around: Neighbourhood, needed: float = -math.inf) -> float:  # noqa: ARG002
        """How far the log-likelihood of the set is above that of every other, less the cost of their number."""
        return -math.inf
