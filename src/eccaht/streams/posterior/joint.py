"""Belief over whole sets: the exact likelihood, the MAP set, and the log-odds against its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index, frozen
from eccaht.base.codec import Field, Part, Sizes
from eccaht.streams.posterior.gibbs import Neighbourhood, climb_steepest, log_posterior, neighbourhood
from eccaht.streams.posterior.likelihood import Fit, Likelihood
from eccaht.streams.posterior.protocol import Belief, Confidence, Posterior, Ranker, Ranking
from eccaht.streams.sets import Hypotheses, SetPrior


class Joint(Belief):
    """The exact joint belief; `posterior` finds the sets that matter.

    The MAP set is the most probable one found, improved by single changes until none helps. Scores are log-odds given
    that set, half of what separates it from its nearest neighbour: a member's is half the log-likelihood ratio
    against the best change that drops it, an outsider's minus half that of the best change that takes it in. So members
    are above 0, outsiders below, and the lead is the exact log-likelihood ratio of the weakest change.

    >>> from eccaht import Problem
    >>> from eccaht.streams.posterior import Enumeration, SufficientStatistics, likelihood_of
    >>> problem = Problem(np.eye(3), shift=2.0, n_anomalies=1, budget=1.0)
    >>> likelihood, prior = likelihood_of(SufficientStatistics(problem)), SetPrior(3, 1, 1)
    >>> rng = np.random.default_rng(0)
    >>> belief = Joint(likelihood, prior, Enumeration(likelihood, prior, rng), rng)
    >>> belief.update(np.array([1.0, 0.0, 0.0]), 2.0)
    >>> belief.scores, belief.beliefs.round(3)
    (array([ 1., -1., -1.]), array([0.787, 0.107, 0.107]))
    """

    FIELDS = (
        Part("_evidence"),
        Part("posterior"),
        Field("_order", ("K+1",), int, high="K"),
        Field("_slots", ("n",), int, high="K"),
    )
    likelihood: Likelihood

    def __init__(self, likelihood: Likelihood, prior: SetPrior, posterior: Posterior, rng: np.random.Generator) -> None:
        self.likelihood, self._evidence = likelihood, likelihood.evidence
        self.problem, self.can = likelihood.evidence.problem, posterior.can
        if likelihood.evidence.robust:
            self.can = replace(self.can, shared_noise=False)
        self._prior, self.posterior = prior, posterior
        self._order = np.append(rng.permutation(prior.n_streams), prior.n_streams)  # breaks ties
        self._slots = np.argsort(self._order)[: prior.most]  # the MAP set
        if not prior.fixed:
            self._slots[prior.least :] = prior.n_streams
        self._around: Neighbourhood | None = None

    def update(self, c: Array, y: float) -> None:
        self._evidence.add(c, y)
        self._refresh()

    def update_together(self, C: Array, y: Array) -> None:
        self._evidence.add_together(C, y)
        self._refresh()

    def update_whitened(self, rows: Array, residuals: Array) -> None:
        """Take independent readings beyond the mean of noise 1, of any number of moments."""
        self._evidence.add_whitened(rows, residuals)
        self._refresh()

    def twin(self) -> Joint:
        shared = (self.problem, self._evidence.vectors)
        return deepcopy(self, {id(part): part for part in shared})

    def expecting(self, pending: Sequence[Array]) -> Joint:
        """The belief if each of these measurements reads what is expected of it now; for known shifts.

        What is expected lies between two sets that are equally probable and decides nothing, while the reading will. So
        changes of the MAP set count by what the readings leave of them: by exp(-d^2 / 4), whichever is right, for means
        that differ by d noise deviations (docs/explanation/search.md).
        """
        twin = self.twin()
        for c in pending:
            twin._evidence.add(c, self.expected(c))
        twin._refresh()
        members, slots, change = twin._now
        for c in pending:
            h = np.append(c * self.problem.shift, 0.0) / np.sqrt(self.problem.noise_variance(c))
            change -= 0.25 * (h - h[members[slots], None]) ** 2
        return twin

    def observe(self, x: Array) -> None:
        self._evidence.add_vector(x)
        self._refresh()

    @property
    def n_sets(self) -> int:
        """How many sets are possible."""
        return self._prior.count

    @property
    def map_set(self) -> Index:
        """The most probable set, sorted."""
        return np.sort(self._slots[self._slots < self._prior.n_streams])

    @property
    def scores(self) -> Array:
        K, (_, slots, change) = self._prior.n_streams, self._now
        scores = 0.5 * change[:, :K].max(axis=0)
        filled = self._slots[slots]
        held = filled < K
        scores[filled[held]] = -0.5 * change.max(axis=1)[held]
        return frozen(scores)

    @property
    def beliefs(self) -> Array:
        """Posterior probability of each stream; where no marginals are known, that of its score."""
        marginals = self.posterior.marginals()
        if marginals is None:
            return np.asarray(1.0 / (1.0 + np.exp(-np.clip(2.0 * self.scores, -700.0, 700.0))))
        return marginals

    @property
    def lead(self) -> float:
        """Log-posterior ratio of the MAP set to its best neighbour."""
        return -self._now.best

    def ranking(self, rank: Ranker | None = None) -> Ranking:  # noqa: ARG002
        """The MAP set and the swap of a member for an outsider that costs it least; -1 where there is none."""
        return self._ranking(None)

    def ranking_among(self, rank: Ranker, available: NDArray[np.bool_]) -> Ranking:
        """The swap of two streams that can be measured; by their scores where no such swap is left."""
        ranking = self._ranking(available)
        return ranking if ranking.champion >= 0 else ranking.among(rank, self.scores, available)

    def _ranking(self, available: NDArray[np.bool_] | None) -> Ranking:
        K = self._prior.n_streams
        _, slots, change = self._now
        members = self._slots[slots]
        held = members < K
        if available is not None:
            held[held] = available[members[held]]
        swaps, members = change[held, :K], members[held]
        if available is not None:
            swaps = np.where(available, swaps, -np.inf)
        if not np.isfinite(swaps).any():
            return Ranking(self.map_set, -1, -1, self.lead)
        at, streams = np.nonzero(swaps == swaps.max())
        first = np.lexsort((self._order[members[at]], self._order[streams]))[0]
        return Ranking(self.map_set, int(members[at[first]]), int(streams[first]), self.lead)

    def in_doubt(self) -> Hypotheses:
        return self.posterior.in_doubt(self._now)

    def confidence(self, needed: float = 0.0) -> Confidence | None:
        return self.posterior.confidence(self._now, needed)

    def confidence_of(self, members: Index) -> Confidence | None:
        """The posterior probability of any set."""
        best = self.confidence()
        if best is None:
            return None
        slots = np.full(self._prior.most, self._prior.n_streams)
        slots[: members.size] = members
        heights = log_posterior(self.likelihood, self._prior, np.vstack([self._slots, slots]))
        return Confidence(best.probability * float(np.exp(min(heights[1] - heights[0], 0.0))), best.how)

    def advantage(self, needed: float = -np.inf) -> float:
        return self.posterior.advantage(self._now, needed)

    def fit(self) -> Fit:
        return self.likelihood.fit(self.map_set)

    def shifts(self) -> tuple[Array, Array]:
        """Mean and standard deviation of the shifts of the MAP set, in its order."""
        return self.likelihood.shifts_of(self.map_set)

    def check_restored(self, sizes: Sizes) -> None:
        self._check_counts(sizes["t"])
        self._prior.check(self._slots[None])
        if not np.array_equal(np.sort(self._order), np.arange(self._prior.n_streams + 1)):
            raise ValueError("its order of ties is damaged")
        self._around = None
        self._check_map_set()

    def _check_counts(self, n_readings: int) -> None:
        """Check the counts: a whole vector is one reading for the policy, and one number read for each stream in it."""
        read, vectors = self._evidence.n_readings, self._evidence.n_vectors
        if vectors > n_readings or not n_readings <= read <= n_readings + vectors * (self._prior.n_streams - 1):
            raise ValueError("the number of its readings is not n_readings")

    def _check_map_set(self) -> None:
        """After a reading the MAP set is the most probable one found, and no single change improves it."""
        if not self._evidence.n_readings:
            return
        _, heights = self._found()
        rounding = 1e-7 * max(1.0, self._evidence.misfit) + 1e-9 * float(self._evidence.half_diagonal.max())
        if not (np.isfinite(heights).all() and max(float(heights.max() - heights[0]), self._now.best) <= rounding):
            raise ValueError("its MAP set is not the one that its readings speak for")

    def _found(self) -> tuple[Index, Array]:
        """The MAP set so far and all candidates, with their log-posteriors."""
        found = np.vstack([self._slots, self.posterior.candidates()])
        return found, log_posterior(self.likelihood, self._prior, found)

    def _refresh(self) -> None:
        self.posterior.update()
        found, heights = self._found()
        self._around = climb_steepest(self.likelihood, self._prior, found[heights.argmax()])
        self._slots = self._around.members

    @property
    def _now(self) -> Neighbourhood:
        if self._around is None:
            self._around = neighbourhood(self.likelihood, self._prior, self._slots)
        return self._around
