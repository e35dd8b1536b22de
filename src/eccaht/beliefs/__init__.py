"""What the readings say about each stream."""

from eccaht.beliefs.pseudo_likelihood import PseudoLikelihood
from eccaht.beliefs.ranking import Ranking, rank

__all__ = ["PseudoLikelihood", "Ranking", "rank"]
