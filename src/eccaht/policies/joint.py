"""Policies that judge whole sets by their exact likelihood."""

from __future__ import annotations

import math

import numpy as np

from eccaht.measure import InformationDesign, PairDesign
from eccaht.policies.choosers import Pair, champion_challenger
from eccaht.policies.parts import Choice, Memoryless, Parts, View
from eccaht.posterior import (
    Enumeration,
    Joint,
    LocalSearch,
    Population,
    SufficientStatistics,
    likelihood_of,
    robust_likelihood,
)
from eccaht.posterior.joint import Posterior
from eccaht.problem import Problem
from eccaht.sets import SetPrior

ENUMERATED = 10_000  # up to this many possible sets `joint` looks at all of them


class MostInformative(Memoryless):
    """The measurement that tells most about the sets that are in doubt."""

    def __init__(self, belief: Joint, design: InformationDesign) -> None:
        self._belief, self._design = belief, design

    def choose(self, view: View) -> Choice:
        """Return it."""
        return Choice(self._design(self._belief.in_doubt(), view.rng))


def compose_joint(problem: Problem, *, rng: np.random.Generator, outliers: float = 0.0) -> Parts:
    """A tempered population, or every set where there are few; `outliers` is the share of outlying readings."""
    return _informative(problem, rng, ENUMERATED, outliers)


def compose_exact(problem: Problem, *, rng: np.random.Generator, outliers: float = 0.0) -> Parts:
    """Every set."""
    return _informative(problem, rng, math.inf, outliers)


def compose_joint_pair(problem: Problem, *, rng: np.random.Generator) -> Parts:
    """The best set by local search, and its weakest swap measured by the paper's design."""
    likelihood, sizes = likelihood_of(SufficientStatistics(problem)), SetPrior(problem.size, *problem.sizes)
    belief = Joint(likelihood, sizes, LocalSearch(likelihood, sizes, rng), rng)
    return Parts(belief, Pair(champion_challenger, PairDesign(problem)))


def _informative(problem: Problem, rng: np.random.Generator, enumerated: float, outliers: float) -> Parts:
    likelihood, sizes = robust_likelihood(problem, outliers), SetPrior(problem.size, *problem.sizes)
    search: Posterior = (Enumeration if sizes.count <= enumerated else Population)(likelihood, sizes, rng)
    belief = Joint(likelihood, sizes, search, rng)
    return Parts(belief, MostInformative(belief, InformationDesign(problem)))
