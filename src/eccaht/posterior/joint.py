"""Belief over whole sets: the exact likelihood, the set announced, and the evidence against its neighbours."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from eccaht.arrays import Array, Index, frozen
from eccaht.posterior.confidence import Confidence, fits
from eccaht.posterior.likelihood import Fit, Likelihood
from eccaht.posterior.ranking import Ranking
from eccaht.posterior.slots import Neighbourhood, neighbourhood
from eccaht.problem import Problem
from eccaht.sets import Hypotheses, SetPrior
from eccaht.stored import whole_numbers


class Search(Protocol):
    """Keeps plausible sets up to date with the evidence."""

    def update(self) -> None:
        """Take account of what was added to the evidence."""

    def candidates(self) -> Index:
        """Sets among which the most likely one is looked for."""

    def marginals(self) -> Array | None:
        """Posterior probability of each stream, if the search knows it."""

    def state(self) -> dict[str, Array]:
        """What a file must keep."""

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a kept state."""


@runtime_checkable
class Posterior(Search, Protocol):
    """A search that knows how probable its sets are."""

    def in_doubt(self, around: Neighbourhood) -> Hypotheses:
        """Sets and their probabilities, for the next measurement to separate; `around` the announced one."""

    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence:
        """The posterior probability of a set; where it is below `needed` a rough figure will do."""

    def advantage(self, around: Neighbourhood, needed: float = -np.inf) -> float:
        """How far the likelihood of a set is above that of every other, less what their number costs."""


class Joint:
    """The exact joint belief; `search` finds the sets that matter.

    The announced set is the most probable one found, improved by single changes until none helps. Scores are evidence
    given that set, half of what separates it from its nearest neighbour: a member's is half the log-likelihood ratio
    against the best change that drops it, an outsider's minus half that of the best change that takes it in. So members
    are above 0, outsiders below, and the lead is the exact log-likelihood ratio of the weakest change.

    >>> from eccaht.posterior import Enumeration, SufficientStatistics, likelihood_of
    >>> problem = Problem(np.eye(3), shift=2.0, n_anomalies=1, budget=1.0)
    >>> likelihood, sizes = likelihood_of(SufficientStatistics(problem)), SetPrior(3, 1, 1)
    >>> rng = np.random.default_rng(0)
    >>> belief = Joint(likelihood, sizes, Enumeration(likelihood, sizes, rng), rng)
    >>> belief.update(np.array([1.0, 0.0, 0.0]), 2.0)
    >>> belief.scores, belief.beliefs.round(3)
    (array([ 1., -1., -1.]), array([0.787, 0.107, 0.107]))
    """

    takes_inflation = True

    def __init__(self, likelihood: Likelihood, sizes: SetPrior, search: Search, rng: np.random.Generator) -> None:
        self._likelihood, self._evidence = likelihood, likelihood.evidence
        self._sizes, self.search = sizes, search
        self._order = np.append(rng.permutation(sizes.n_streams), sizes.n_streams)  # breaks ties
        self._announced = np.argsort(self._order)[: sizes.most]
        if not sizes.fixed:
            self._announced[sizes.least :] = sizes.n_streams
        self._around: Neighbourhood | None = None

    @property
    def problem(self) -> Problem:
        """The problem that the evidence is about."""
        return self._evidence.problem

    def update(self, c: Array, y: float, inflation: float = 1.0) -> None:
        """Add one reading."""
        self._evidence.add(c, y, inflation)
        self._refresh()

    def observe(self, x: Array, excess: Array | None = None) -> None:
        """Add a reading of all streams, NaN where one was not read."""
        self._evidence.add_vector(x, excess)
        self._refresh()

    @property
    def announced(self) -> Index:
        """The most probable set, sorted."""
        return np.sort(self._announced[self._announced < self._sizes.n_streams])

    @property
    def scores(self) -> Array:
        """Evidence for each stream given the announced set."""
        K, (_, slots, change) = self._sizes.n_streams, self._now
        scores = 0.5 * change[:, :K].max(axis=0)
        filled = self._announced[slots]
        held = filled < K
        scores[filled[held]] = -0.5 * change.max(axis=1)[held]
        return frozen(scores)

    @property
    def beliefs(self) -> Array:
        """Posterior probability of each stream."""
        marginals = self.search.marginals()
        if marginals is None:
            scores = self.scores
            return np.asarray(1.0 / (1.0 + np.exp(-np.clip(2.0 * scores, -700.0, 700.0))))
        return marginals

    @property
    def lead(self) -> float:
        """Log-posterior ratio of the announced set to its best neighbour."""
        return -self._now.best

    def ranking(self) -> Ranking:
        """The announced set and the swap of a member for an outsider that costs it least; -1 where there is none."""
        K = self._sizes.n_streams
        _, slots, change = self._now
        members = self._announced[slots]
        held = members < K
        if not held.any():
            return Ranking(self.announced, -1, -1)
        swaps, members = change[held, :K], members[held]
        at, streams = np.nonzero(swaps == swaps.max())
        first = np.lexsort((self._order[members[at]], self._order[streams]))[0]
        return Ranking(self.announced, int(members[at[first]]), int(streams[first]))

    def in_doubt(self) -> Hypotheses:
        """Sets and their probabilities, for the next measurement to separate."""
        if not isinstance(self.search, Posterior):
            raise TypeError("this search keeps no posterior")
        return self.search.in_doubt(self._now)

    def confidence(self, needed: float = 0.0) -> Confidence | None:
        """The posterior probability of the announced set, if the search can tell."""
        return self.search.confidence(self._now, needed) if isinstance(self.search, Posterior) else None

    def advantage(self, needed: float = -np.inf) -> float:
        """How far the announced set is ahead of every other."""
        return self.search.advantage(self._now, needed) if isinstance(self.search, Posterior) else -np.inf

    @property
    def likelihood(self) -> Likelihood:
        """What all readings say about sets."""
        return self._likelihood

    def fit(self) -> Fit:
        """How well the readings fit the announced set."""
        return self._likelihood.fit(self.announced)

    def fits(self) -> bool:
        """Could the readings come from the announced set? Not if there are too few to tell."""
        return fits(self.fit())

    def shifts(self) -> tuple[Array, Array]:
        """Mean and standard deviation of the announced streams' shifts, in the order of `announced`."""
        return self._likelihood.shifts_of(self.announced)

    def state(self) -> dict[str, Array]:
        """What a file must keep."""
        kept = {f"evidence.{name}": array for name, array in self._evidence.state().items()}
        kept |= {f"search.{name}": array for name, array in self.search.state().items()}
        return kept | {"order": self._order.astype(float), "announced": self._announced[None].astype(float)}

    def restore(self, state: dict[str, Array], n_told: int) -> None:
        """Go on from a kept state."""
        for prefix, part in (("evidence.", self._evidence), ("search.", self.search)):
            part.restore({name.removeprefix(prefix): a for name, a in state.items() if name.startswith(prefix)})
        self._check_counts(n_told)
        if len(state["announced"]) != 1:
            raise ValueError("its announced set is damaged")
        self._announced = self._sizes.checked(state["announced"])[0]
        self._order = whole_numbers(state["order"], "ranks of streams", most=self._sizes.n_streams)
        if not np.array_equal(np.sort(self._order), np.arange(self._sizes.n_streams + 1)):
            raise ValueError("its order of ties is damaged")
        self._around = None
        self._check_announced()

    def _check_counts(self, n_told: int) -> None:
        """A whole vector counts as one reading told, and as one number read for each stream that is there."""
        read, vectors = self._evidence.n_readings, self._evidence.n_vectors
        if vectors > n_told or not n_told <= read <= n_told + vectors * (self._sizes.n_streams - 1):
            raise ValueError("its readings are not as many as were told")

    def _check_announced(self) -> None:
        """After a reading the announced set is the most probable one found, and no single change improves it."""
        if not self._evidence.n_readings:
            return
        found = np.vstack([self._announced, self.search.candidates()])
        fit = self._likelihood.log_likelihood(found) + self._sizes.log_prior_of(found)
        rounding = 1e-7 * max(1.0, self._evidence.misfit) + 1e-9 * float(self._evidence.half_diagonal.max())
        if not (np.isfinite(fit).all() and max(float(fit.max() - fit[0]), self._now.best) <= rounding):
            raise ValueError("its announced set is not the one that its readings speak for")

    def _refresh(self) -> None:
        """Find the most probable set again."""
        self.search.update()
        found = np.vstack([self._announced, self.search.candidates()])
        fit = self._likelihood.log_likelihood(found) + self._sizes.log_prior_of(found)
        self._announced = found[fit.argmax()]
        self._around = None
        while self._now.best > self._likelihood.tolerance:
            _, slots, change = self._now
            row, stream = np.unravel_index(change.argmax(), change.shape)
            self._announced = self._announced.copy()
            self._announced[slots[row]] = stream
            self._around = None

    @property
    def _now(self) -> Neighbourhood:
        if self._around is None:
            self._around = neighbourhood(self._likelihood, self._sizes, self._announced)
        return self._around
