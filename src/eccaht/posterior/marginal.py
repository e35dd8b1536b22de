"""What all beliefs that score one stream at a time have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

from eccaht.arrays import Array
from eccaht.posterior.likelihood import Fit, Likelihood
from eccaht.posterior.protocol import Capabilities, Confidence
from eccaht.posterior.ranking import Ranker, Ranking
from eccaht.problem import Problem


class PerStream(ABC):
    """One score a stream: the n largest are the set, and nothing is known of whole sets."""

    can = Capabilities()
    takes_inflation = True
    likelihood: Likelihood | None = None

    def __init__(self, problem: Problem) -> None:
        self._problem, self._n = problem, problem.known_number

    @property
    @abstractmethod
    def scores(self) -> Array:
        """What streams are ranked by, read-only."""

    def ranking(self, rank: Ranker) -> Ranking:
        """The streams of the n largest scores."""
        return rank(self.scores, self._n)

    def observe(self, x: Array, excess: Array | None = None) -> None:  # noqa: ARG002
        """Refuse whole vectors."""
        raise ValueError("only joint, joint-pair and exact take whole vectors: others score weighted sums alone")

    def confidence(self) -> Confidence | None:
        """Not known."""
        return None

    def fit(self) -> Fit | None:
        """Not known."""
        return None

    def shifts(self) -> tuple[Array, Array] | None:
        """Not known."""
        return None
