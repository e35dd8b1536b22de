"""What the readings say about each stream and about sets of them."""

from eccaht.posterior.confidence import Confidence
from eccaht.posterior.contaminated import robust_likelihood
from eccaht.posterior.empirical_means import EmpiricalMeans
from eccaht.posterior.enumeration import Enumeration
from eccaht.posterior.joint import Joint
from eccaht.posterior.likelihood import Likelihood, likelihood_of
from eccaht.posterior.local_search import LocalSearch
from eccaht.posterior.population import Population
from eccaht.posterior.pseudo_likelihood import PseudoLikelihood
from eccaht.posterior.ranking import Ranker, Ranking
from eccaht.posterior.statistics import SufficientStatistics

__all__ = [
    "Confidence",
    "EmpiricalMeans",
    "Enumeration",
    "Joint",
    "Likelihood",
    "LocalSearch",
    "Population",
    "PseudoLikelihood",
    "Ranker",
    "Ranking",
    "SufficientStatistics",
    "likelihood_of",
    "robust_likelihood",
]
