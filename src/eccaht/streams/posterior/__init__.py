"""What the readings say about each stream and about sets of streams."""

from eccaht.streams.posterior.enumeration import Enumeration, LocalSearch
from eccaht.streams.posterior.gibbs import Neighbourhood, neighbourhood
from eccaht.streams.posterior.joint import Joint
from eccaht.streams.posterior.likelihood import Likelihood, likelihood_of, robust_likelihood
from eccaht.streams.posterior.population import Population
from eccaht.streams.posterior.protocol import Belief, Capabilities, Confidence, Posterior, Ranker, Ranking
from eccaht.streams.posterior.pseudo_likelihood import EmpiricalMeans, PseudoLikelihood
from eccaht.streams.posterior.statistics import SufficientStatistics
from eccaht.streams.posterior.wide import Wide

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
