"""What the readings say about each stream and about sets of streams."""

from eccaht.streams.posterior.enumeration import Enumeration as Enumeration, LocalSearch as LocalSearch
from eccaht.streams.posterior.gibbs import Neighbourhood as Neighbourhood, neighbourhood as neighbourhood
from eccaht.streams.posterior.joint import Joint as Joint
from eccaht.streams.posterior.likelihood import (
    Likelihood as Likelihood,
    likelihood_of as likelihood_of,
    robust_likelihood as robust_likelihood,
)
from eccaht.streams.posterior.population import Effort as Effort, Population as Population
from eccaht.streams.posterior.protocol import (
    Belief as Belief,
    Capabilities as Capabilities,
    Confidence as Confidence,
    Posterior as Posterior,
    Ranker as Ranker,
    Ranking as Ranking,
)
from eccaht.streams.posterior.pseudo_likelihood import (
    EmpiricalMeans as EmpiricalMeans,
    PseudoLikelihood as PseudoLikelihood,
)
from eccaht.streams.posterior.statistics import SufficientStatistics as SufficientStatistics
from eccaht.streams.posterior.wide import Wide as Wide
