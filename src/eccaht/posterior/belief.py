"""What a policy asks of its belief."""

from __future__ import annotations

from typing import Protocol

from scipy.special import expit

from eccaht.arrays import Array
from eccaht.posterior.likelihood import Fit, Likelihood
from eccaht.posterior.protocol import Capabilities, Confidence
from eccaht.posterior.ranking import Ranker, Ranking
from eccaht.problem import Problem


class Belief(Protocol):
    """What all readings say, changed by `update` and `observe` alone.

    A belief that inherits from this one has the answers of one score a stream: the n largest are the set, and of whole
    sets nothing is known. takes_inflation: can it weigh readings of unequal noise?
    """

    problem: Problem
    can: Capabilities = Capabilities()
    takes_inflation: bool = True
    likelihood: Likelihood | None = None  # of sets of streams, given all readings

    @property
    def scores(self) -> Array:
        """What streams are ranked by, read-only."""

    @property
    def beliefs(self) -> Array:
        """The probability of each stream of being anomalous: 1 / (1 + exp(-score)), scores being log-odds (eq. 4)."""
        beliefs: Array = expit(self.scores)
        return beliefs

    def update(self, c: Array, y: float, inflation: float = 1.0) -> None:
        """Add one reading, of so many times the usual noise variance."""

    def observe(self, x: Array, excess: Array | None = None) -> None:  # noqa: ARG002
        """Add a reading of all streams, NaN where one was not read."""
        raise ValueError("only joint, joint-pair and exact take whole vectors: others score weighted sums alone")

    def ranking(self, rank: Ranker) -> Ranking:
        """The set, its weakest swap and the lead of it; `rank` breaks ties."""
        return rank(self.scores, self.problem.known_number)

    def confidence(self) -> Confidence | None:
        """The posterior probability of the set."""
        return None

    def fit(self) -> Fit | None:
        """How well the readings fit the set."""
        return None

    def shifts(self) -> tuple[Array, Array] | None:
        """Posterior mean and standard deviation of the shifts of the set."""
        return None

    def state(self) -> dict[str, Array]:
        """What a file must keep."""

    def restore(self, state: dict[str, Array], n_told: int) -> None:
        """Go on from a state kept after so many readings; one that no readings lead to is a ValueError."""
