"""What the readings say about each stream."""

from eccaht.beliefs.empirical_means import EmpiricalMeans
from eccaht.beliefs.pseudo_likelihood import PseudoLikelihood
from eccaht.beliefs.ranking import Ranker, Ranking

__all__ = ["EmpiricalMeans", "PseudoLikelihood", "Ranker", "Ranking"]
