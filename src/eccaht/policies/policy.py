"""A policy is a belief, a way to choose the next measurement, and a stopping rule."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.arrays import Array, Index, as_floats, as_number, as_positive, check_finite, frozen
from eccaht.beliefs import Confidence, Joint, Ranker, Ranking
from eccaht.policies.parts import Belief, Choice, Chooser, Parts, View
from eccaht.problem import Problem
from eccaht.stopping import StoppingRule

if TYPE_CHECKING:
    from eccaht.policies.catalogue import Recipe


class Policy:
    """Ask for a measurement, tell its reading, until it is time to stop.

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
        self.problem = problem
        self.recipe: Recipe | None = None  # set by make_policy; what a file needs to build the policy again
        self.n_told = 0
        self._belief, self._chooser, self._stopping, self._rng = parts.belief, parts.chooser, stopping, rng
        self._rank = Ranker(rng.permutation(problem.size))  # ties in random order: index order would bias the search
        self._ranking: Ranking | None = None
        self._choice: Choice | None = None

    def ask(self) -> Array:
        """Return the next measurement, (K,), read-only; the same one until something is told."""
        return self._chosen.weights

    def tell(self, c: ArrayLike, y: float, *, inflation: float = 1.0) -> None:
        """Take the reading y of any measurement c, asked for or not.

        inflation: its noise variance over that of the problem, where a reading is noisier than usual.
        """
        weights, reading = self._checked(c), as_number(y, "reading")
        inflation = as_positive(inflation, "inflation")
        if inflation != 1.0 and not self._belief.takes_inflation:
            raise ValueError("this policy takes all readings for equally noisy: leave out inflation, or use joint")
        self._belief.update(weights, reading, inflation)
        self._chooser.told(weights)
        self.n_told += 1
        self._ranking = self._choice = None

    def observe(self, x: ArrayLike) -> None:
        """Take a complete reading of all streams, one number each, instead of a weighted sum (joint policies)."""
        if not isinstance(self._belief, Joint):
            raise ValueError("only joint, joint-pair and exact take whole vectors: others score weighted sums alone")
        vector = as_floats(x, "reading")
        if vector.shape != (self.problem.size,):
            raise ValueError(f"a complete reading has shape ({self.problem.size},), not {vector.shape}")
        check_finite(vector, "reading")
        self._belief.observe(vector)
        self.n_told += 1
        self._ranking = self._choice = None

    @property
    def takes_inflation(self) -> bool:
        """Can it weigh readings that are noisier than usual?"""
        return self._belief.takes_inflation

    def should_stop(self) -> bool:
        """Does the stopping rule hold?"""
        return self._stopping.met(self.lead, self.n_told)

    @property
    def decision(self) -> Index:
        """The streams believed anomalous, sorted."""
        return self._ranked.members.copy()

    @property
    def scores(self) -> Array:
        """What the streams are ranked by, (K,)."""
        return self._belief.scores

    @property
    def beliefs(self) -> Array:
        """The probability of being anomalous that each score stands for, (K,)."""
        return self._belief.beliefs

    @property
    def pair(self) -> tuple[int, int] | None:
        """The (champion, challenger) that the next measurement separates, if it is chosen for a pair."""
        return self._chosen.pair

    @property
    def lead(self) -> float:
        """Score of the weakest member minus that of the strongest stream outside; for joint policies, the exact
        log-likelihood ratio of the announced set to the best set one change away."""
        if isinstance(self._belief, Joint):
            return self._belief.lead
        scores, ranked = self.scores, self._ranked
        return float(scores[ranked.champion] - scores[ranked.challenger])

    @property
    def confidence(self) -> Confidence | None:
        """The posterior probability of the decision and how it was found; None where the policy cannot tell."""
        return self._belief.confidence() if isinstance(self._belief, Joint) else None

    @property
    def shifts(self) -> tuple[Array, Array] | None:
        """Posterior mean and standard deviation of the decided streams' shifts, given that they are the anomalous ones.

        In the order of `decision`; None where the policy keeps no joint belief.
        """
        return self._belief.shifts() if isinstance(self._belief, Joint) else None

    @property
    def stopping(self) -> StoppingRule:
        """The rule in force."""
        return self._stopping

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on bit for bit; `load_policy` reads it."""
        from eccaht.policies.storage import save_policy

        save_policy(self, path)

    @property
    def _ranked(self) -> Ranking:
        if self._ranking is None:
            if isinstance(self._belief, Joint):
                self._ranking = self._belief.ranking()
            else:
                self._ranking = self._rank(self.scores, self.problem.known_number)
        return self._ranking

    @property
    def _chosen(self) -> Choice:
        if self._choice is None:
            view = View(self._belief, self._ranked, self._rank, self.n_told, self._rng)
            weights, pair = self._chooser.choose(view)
            self._choice = Choice(frozen(weights), pair)
        return self._choice

    def _checked(self, c: ArrayLike) -> Array:
        if self._choice is not None and c is self._choice.weights:
            return self._choice.weights
        return self.problem.checked_measurement(c)

    def _state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays and plain values of the state, for `storage`."""
        parts: dict[str, Belief | Chooser] = {"belief": self._belief, "chooser": self._chooser}
        arrays = {f"{part}.{key}": a for part, kept in parts.items() for key, a in kept.state().items()}
        plain: dict[str, Any] = {"n_told": self.n_told, "rng": self._rng.bit_generator.state, "pair": None}
        if self._choice is not None:
            arrays["choice"] = self._choice.weights
            plain["pair"] = self._choice.pair
        return arrays, plain

    def _restore(self, arrays: dict[str, Array], plain: dict[str, Any]) -> None:
        for name, part in (("belief.", self._belief), ("chooser.", self._chooser)):
            part.restore({key.removeprefix(name): a for key, a in arrays.items() if key.startswith(name)})
        self.n_told = plain["n_told"]
        self._rng.bit_generator.state = plain["rng"]
        if "choice" in arrays:
            pair = plain["pair"]
            self._choice = Choice(frozen(arrays["choice"]), None if pair is None else (pair[0], pair[1]))

    def __repr__(self) -> str:
        name = "composed" if self.recipe is None else self.recipe.name
        return f"Policy({name!r}, {self.problem!r}, n_told={self.n_told})"
