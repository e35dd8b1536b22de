"""What the readings say about each stream and about sets of them."""

from eccaht.beliefs.confidence import Confidence
from eccaht.beliefs.contaminated import robust_likelihood
from eccaht.beliefs.empirical_means import EmpiricalMeans
from eccaht.beliefs.enumeration import Enumeration
from eccaht.beliefs.evidence import Evidence
from eccaht.beliefs.joint import Joint
from eccaht.beliefs.likelihood import Likelihood, likelihood_of
from eccaht.beliefs.local_search import LocalSearch
from eccaht.beliefs.population import Population
from eccaht.beliefs.pseudo_likelihood import PseudoLikelihood
from eccaht.beliefs.ranking import Ranker, Ranking

__all__ = [
    "Confidence",
    "EmpiricalMeans",
    "Enumeration",
    "Evidence",
    "Joint",
    "Likelihood",
    "LocalSearch",
    "Population",
    "PseudoLikelihood",
    "Ranker",
    "Ranking",
    "likelihood_of",
    "robust_likelihood",
]
