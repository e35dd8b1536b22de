"""What the readings say about each stream and about sets of streams."""

from eccaht.posterior.contaminated import robust_likelihood
from eccaht.posterior.empirical_means import EmpiricalMeans
from eccaht.posterior.enumeration import Enumeration
from eccaht.posterior.gibbs import Neighbourhood, neighbourhood
from eccaht.posterior.joint import Joint
from eccaht.posterior.likelihood import Likelihood, likelihood_of
from eccaht.posterior.local_search import LocalSearch
from eccaht.posterior.population import Population
from eccaht.posterior.protocol import Belief, Capabilities, Confidence, Posterior
from eccaht.posterior.pseudo_likelihood import PseudoLikelihood
from eccaht.posterior.ranking import Ranker, Ranking
from eccaht.posterior.statistics import SufficientStatistics
from eccaht.posterior.wide import Wide

__all__ = [
    "Belief",
    "Capabilities",
    "Confidence",
    "EmpiricalMeans",
    "Enumeration",
    "Joint",
    "Likelihood",
    "LocalSearch",
    "Neighbourhood",
    "Population",
    "Posterior",
    "PseudoLikelihood",
    "Ranker",
    "Ranking",
    "SufficientStatistics",
    "Wide",
    "likelihood_of",
    "neighbourhood",
    "robust_likelihood",
]
