"""Policies that judge whole sets by their exact likelihood."""

from __future__ import annotations

import numpy as np

from eccaht.beliefs import Enumeration, Evidence, Joint, LocalSearch, Population
from eccaht.beliefs.joint import Posterior
from eccaht.design import InformationDesign, PairDesign
from eccaht.policies.choosers import Pair, champion_challenger
from eccaht.policies.parts import Choice, Memoryless, Parts, View
from eccaht.problem import Problem
from eccaht.sets import Sizes

ENUMERATED = 10_000  # up to this many possible sets `joint` looks at all of them


class MostInformative(Memoryless):
    """The measurement that tells most about the sets that are in doubt."""

    def __init__(self, posterior: Posterior, design: InformationDesign) -> None:
        self._posterior, self._design = posterior, design

    def choose(self, view: View) -> Choice:
        """Return it."""
        return Choice(self._design(self._posterior.in_doubt(), view.rng))


def compose_joint(problem: Problem, *, rng: np.random.Generator) -> Parts:
    """A tempered population, or every set where there are few."""
    evidence, sizes = Evidence(problem), _sizes(problem)
    enumerable = sizes.count <= ENUMERATED
    posterior = Enumeration(evidence, sizes, rng) if enumerable else Population(evidence, sizes, rng)
    return Parts(Joint(evidence, sizes, posterior, rng), MostInformative(posterior, InformationDesign(problem)))


def compose_exact(problem: Problem, *, rng: np.random.Generator) -> Parts:
    """Every set."""
    evidence, sizes = Evidence(problem), _sizes(problem)
    posterior = Enumeration(evidence, sizes, rng)
    return Parts(Joint(evidence, sizes, posterior, rng), MostInformative(posterior, InformationDesign(problem)))


def compose_joint_pair(problem: Problem, *, rng: np.random.Generator) -> Parts:
    """The best set by local search, and its weakest swap measured by the paper's design."""
    evidence, sizes = Evidence(problem), _sizes(problem)
    belief = Joint(evidence, sizes, LocalSearch(evidence, sizes, rng), rng)
    return Parts(belief, Pair(champion_challenger, PairDesign(problem)))


def _sizes(problem: Problem) -> Sizes:
    return Sizes(problem.size, problem.n_anomalies, problem.n_anomalies)
