"""A policy is a belief, a way to choose the next measurement, and a stopping rule."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, Index, as_count, frozen
from eccaht.streams.designs import Mask
from eccaht.streams.measurements import Budget
from eccaht.streams.policies.parts import (
    Choice,
    Chooser,
    Parts,
    Pending,
    View,
    check_able,
    check_batches,
    check_whole_vectors,
)
from eccaht.streams.posterior import Belief, Capabilities, Confidence, Likelihood, Ranker, Ranking
from eccaht.streams.problem import Problem
from eccaht.streams.stopping import StoppingRule

if TYPE_CHECKING:
    from eccaht.streams.policies.catalogue import Recipe


class BudgetWarning(UserWarning):
    """A reading was given for weights beyond the budget."""


class Policy:
    """Ask for a measurement, give its reading, until it is time to stop.

    The caller owns the loop, so the same policy drives a simulator, a replay of data or real hardware:

    >>> from eccaht import Simulator, families, make_policy
    >>> problem = Problem(families.toeplitz(30, rho=0.8), shift=4.0, n_anomalies=2, budget=4.0)
    >>> policy = make_policy("ecc-aht", problem, seed=1, stopping=40)
    >>> world = Simulator(problem, anomalies=[4, 20], seed=1)
    >>> while not policy.should_stop():
    ...     c = policy.ask()
    ...     policy.tell(c, world.measure(c))
    >>> policy.decision
    array([ 4, 20])
    """

    def __init__(self, problem: Problem, parts: Parts, stopping: StoppingRule, rng: np.random.Generator) -> None:
        check_able(parts.belief.can, problem)
        self.problem = problem
        self.recipe: Recipe | None = None  # set by make_policy; what a file needs to build the policy again
        self.n_readings = 0
        self.stopping = stopping  # the rule in force
        self._belief, self._chooser, self._rng = parts.belief, parts.chooser, rng
        self._rank = Ranker(rng.permutation(problem.size))  # ties in random order: index order would bias the search
        self._ranking: Ranking | None = None
        self._choice: Choice | None = None
        self._available: Mask | None = None  # the streams that the choice is made among, where not all
        self._pending = Pending(problem.size)
        self._warned = False  # whether a BudgetWarning was given
        # do not trust the weights of other constraints, nor those of a policy that is not built in (make_policy)
        self._verify = type(problem.measurements) is not Budget

    def ask(self, *, batch: int | None = None, available: ArrayLike | None = None) -> Array:
        """Return the next measurement, (K,), read-only; the same one until the next reading is given.

        batch: how many new measurements are wanted, (batch, K): each is chosen for what it adds beyond those before
            it and all that are `pending`, and is itself pending until its reading is given or it is forgotten.
        available: K truth values; streams that cannot be measured now have weight 0. Another mask than before makes
            a new choice.
        """
        self._choose_among(available)
        if batch is None:
            return self._chosen.weights
        check_batches(self.can, f"ask(batch={batch})")
        count, chosen = as_count(batch, "batch", least=1), [self._chosen.weights]
        while len(chosen) < count:
            chosen.append(self._chosen_beyond(chosen).weights)
        self._pending.extend(chosen)
        self._choice = None
        return frozen(np.array(chosen))

    @property
    def pending(self) -> Array:
        """The measurements that were asked for in batches and neither read nor forgotten, (m, K), read-only."""
        return self._pending.matrix

    def forget(self, c: ArrayLike | Mapping[str, float]) -> None:
        """Give up a pending measurement: its reading will not come."""
        if not self._pending.remove(self.problem.checked_measurement(c)):
            raise ValueError("no measurement with these weights is pending: forget one of policy.pending")
        self._choice = None

    def tell(self, c: ArrayLike | Mapping[str, float], y: float) -> None:
        """Take the reading y of any measurement c, asked for or not; a dict or a labelled series goes by name."""
        choice = self._choice
        asked = choice.weights if choice is not None and c is choice.weights else None
        # read-only: its noise is worked out once
        weights = frozen(self.problem.checked_measurement(c).copy()) if asked is None else asked
        reading = self.problem.checked_reading(weights, y)
        if asked is None:
            self._warn_beyond_budget(weights)
        self._belief.update(weights, reading)
        self._took(weights)

    def tell_many(self, C: ArrayLike, y: ArrayLike) -> None:
        """Take readings of one moment, y (q,) of the measurements C (q, K), as q readings.

        They share the noise of that moment: its covariance is C S C', and the instrument's own on top. Readings of
        different moments are independent: pass them to `tell` one by one.
        """
        if not self.can.shared_noise:
            raise ValueError("this policy takes no readings that share noise: tell them one by one, or use joint")
        rows, readings = self.problem.checked_moment(C, y)
        for row in rows:
            self._warn_beyond_budget(row)
        self._belief.update_together(rows, readings)
        for row in rows:
            self._took(row)

    def observe(self, x: ArrayLike | Mapping[str, float]) -> None:
        """Take a reading of all streams, one number each, instead of a weighted sum (joint policies).

        NaN stands for a stream that was not read. A dict or a labelled series goes by name; names that it lacks were
        not read.
        """
        check_whole_vectors(self.can)
        self._belief.observe(self.problem.checked_vector(x))
        self.n_readings += 1
        self._ranking = self._choice = None

    @property
    def inside(self) -> tuple[Belief, Chooser, Ranker, np.random.Generator]:
        """Its belief, its chooser, what breaks ties and its generator, for policies composed of them."""
        return self._belief, self._chooser, self._rank, self._rng

    @property
    def can(self) -> Capabilities:
        """What the policy can do, as its parts declare."""
        return self._belief.can

    def should_stop(self) -> bool:
        """Does the stopping rule hold?"""
        return self.stopping.met(self.lead, self.n_readings)

    @property
    def decision(self) -> Index:
        """The streams believed anomalous, sorted."""
        return self._ranked.members.copy()

    @property
    def decision_names(self) -> tuple[str, ...]:
        """The names of the streams believed anomalous; their numbers, as text, where streams have no names."""
        names = self.problem.names
        return tuple(str(k) if names is None else names[k] for k in self._ranked.members.tolist())

    @property
    def scores(self) -> Array:
        """What the streams are ranked by, (K,)."""
        return self._belief.scores

    @property
    def beliefs(self) -> Array:
        """The probability of being anomalous that each score stands for, (K,).

        Where the probability of the decision is known too, beliefs are those of a distribution of sets that has it.
        """
        beliefs, confidence = self._belief.beliefs, self._belief.confidence()
        if confidence is None or confidence.how == "exact":
            return beliefs
        return _agreeing(beliefs, self._ranked.members, confidence.probability, self.problem.sizes)

    @property
    def pair(self) -> tuple[int, int] | None:
        """The (champion, challenger) that the next measurement separates, if it is chosen for a pair."""
        return self._chosen.pair

    @property
    def lead(self) -> float:
        """Score of the weakest member minus that of the strongest stream outside; for joint policies, the exact
        log-likelihood ratio of the decision to the best set one change away."""
        return self._ranked.lead

    @property
    def confidence(self) -> Confidence | None:
        """The posterior probability of the decision and how it was found; None where the policy cannot tell."""
        return self._belief.confidence()

    @property
    def fit(self) -> float | None:
        """The probability of readings as bad as these, or worse, if the decision is right; near 0 the model is wrong.

        1 while there are too few readings to tell; None where the policy keeps no joint belief.
        """
        fit = self._belief.fit()
        return None if fit is None else fit.chance

    @property
    def likelihood(self) -> Likelihood | None:
        """What all readings say about sets of streams; None where the policy keeps no joint belief."""
        return self._belief.likelihood

    @property
    def shifts(self) -> tuple[Array, Array] | None:
        """Posterior mean and standard deviation of the decided streams' shifts, given that they are the anomalous ones.

        In the order of `decision`; None where the policy keeps no joint belief.
        """
        return self._belief.shifts()

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on bit for bit; `load_policy` reads it."""
        from eccaht.streams.policies.storage import save_policy

        save_policy(self, path)

    def _took(self, weights: Array) -> None:
        if self._pending.awaited:
            self._pending.remove(weights, arrived=True)
        self._chooser.record(weights)
        self.n_readings += 1
        self._ranking = self._choice = None

    @property
    def _ranked(self) -> Ranking:
        if self._ranking is None:
            self._ranking = self._belief.ranking(self._rank)
        return self._ranking

    def _choose_among(self, available: ArrayLike | None) -> None:
        """Choose among these streams from now on; what was chosen among others is dropped."""
        mask = None if available is None else self.problem.checked_mask(available)
        if mask is not None:
            check_batches(self.can, "ask(available=...)")
            mask = None if mask.all() else mask
        same = mask is self._available or (
            mask is not None and self._available is not None and np.array_equal(mask, self._available)
        )
        if not same:
            self._available, self._choice = mask, None

    @property
    def _chosen(self) -> Choice:
        if self._choice is None:
            self._choice = self._chosen_beyond([])
        return self._choice

    def _chosen_beyond(self, batch: list[Array]) -> Choice:
        """Choose for what a measurement adds beyond those under way and these of the same batch."""
        pending = self._pending
        under_way = (*pending.expected, *batch) if batch or pending.awaited else ()
        view = self._view(under_way, self.n_readings + len(pending.awaited) + len(batch))
        weights, pair = self._chooser.choose(view)
        if self._verify:
            self._verify_allowed(weights)
        if self._available is not None and weights[~self._available].any():
            raise ValueError("this policy's chooser gave weight to a stream that is not available")
        return Choice(frozen(weights), pair)

    def _view(self, pending: tuple[Array, ...], asked: int) -> View:
        belief, ranking = self._belief, self._ranked
        if pending and not self._chooser.foresees:
            belief = belief.expecting(pending)
            ranking = belief.ranking(self._rank)
        if self._available is not None:
            ranking = belief.ranking_among(self._rank, self._available)
        return View(belief, ranking, self._rank, self.n_readings, self._rng, pending, self._available, asked)

    def _verify_allowed(self, weights: Array) -> None:
        within = self.problem.measurements
        good = isinstance(weights, np.ndarray) and weights.shape == (self.problem.size,) and weights.dtype == np.float64
        own = type(within) is Budget  # then they are not those of a constraint's design
        if not (good and np.isfinite(weights).all() and weights.any()):
            who, what = ("its chooser", "choose") if own else (repr(within), "contrast")
            raise ValueError(f"{who} must give {self.problem.size} finite weights, not all 0: mend its {what}")
        if own and not within.allows(weights):
            norm = float(np.abs(weights).sum())
            raise ValueError(f"its chooser gave weights of |c|_1 = {norm:.6g}, beyond {within!r}: scale them down")
        if not within.allows(weights):
            raise ValueError(f"{within!r} gave weights that it does not allow itself: mend its contrast or scaled")

    def _warn_beyond_budget(self, weights: Array) -> None:
        allowed = self.problem.measurements
        if not self._warned and not allowed.allows(weights):
            self._warned = True
            warnings.warn(
                f"{allowed.beyond(weights)}: they count, but no policy would ask for them",
                BudgetWarning,
                stacklevel=3,
            )

    def __repr__(self) -> str:
        name = "composed" if self.recipe is None else self.recipe.name
        return f"Policy({name!r}, {self.problem!r}, n_readings={self.n_readings})"


def _agreeing(beliefs: Array, members: Index, probability: float, sizes: tuple[int, int]) -> Array:
    """Marginals of a distribution in which the members are the set with this probability, the nearest to `beliefs`.

    Both are estimated, from different draws. `share` is the most that marginals leave to the set: no stream outside may
    be more probable than all other sets together, and their mean number is a possible one.

    >>> _agreeing(np.array([0.3, 0.2, 0.1]), np.array([], dtype=int), 0.9, (0, 3))
    array([0.1       , 0.06666667, 0.03333333])
    """
    (least, most), number, total = sizes, members.size, float(beliefs.sum())
    inside = np.zeros(beliefs.size, dtype=bool)
    inside[members] = True
    limits = [1.0 - float(beliefs[~inside].max()), float(beliefs[inside].min(initial=1.0))]
    if number < most:
        limits.append((most - total) / (most - number))
    if number > least:
        limits.append((total - least) / (number - least))
    share = max(min(limits), 0.0)
    if probability <= share or share >= 1.0:
        return beliefs
    others = np.clip((beliefs - share * inside) / (1.0 - share), 0.0, 1.0)
    return probability * inside + (1.0 - probability) * others
