"""Policies that judge whole sets by their exact likelihood."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eccaht.measure import InformationDesign, PairDesign
from eccaht.naming import did_you_mean
from eccaht.policies.choosers import Pair, champion_challenger
from eccaht.policies.parts import Choice, Chooser, Parts, View
from eccaht.posterior import (
    Enumeration,
    Joint,
    Likelihood,
    LocalSearch,
    Population,
    Posterior,
    SufficientStatistics,
    likelihood_of,
    robust_likelihood,
)
from eccaht.posterior.enumeration import LARGEST
from eccaht.problem import Problem
from eccaht.sets import SetPrior

BuildPosterior = Callable[[Likelihood, SetPrior, np.random.Generator], Posterior]

ENUMERATED = 10_000  # up to this many possible sets posterior="auto" looks at all of them
POSTERIORS: dict[str, BuildPosterior] = {"enumeration": Enumeration, "population": Population}


class MostInformative(Chooser):
    """The measurement that tells most about the sets that are in doubt."""

    def __init__(self, belief: Joint, design: InformationDesign) -> None:
        self._belief, self._design = belief, design

    def choose(self, view: View) -> Choice:
        """Return it."""
        return Choice(self._design(self._belief.in_doubt(), view.rng))


def compose_joint(
    problem: Problem,
    *,
    rng: np.random.Generator,
    outliers: float = 0.0,
    posterior: str | BuildPosterior = "auto",
) -> Parts:
    """Measure what tells most about the sets in doubt.

    outliers: the share of outlying readings.
    posterior: "enumeration", "population", "auto" (all sets where they are few, else a population), or a function
        (likelihood, prior, rng) -> Posterior of your own.
    """
    likelihood, prior = robust_likelihood(problem, outliers), SetPrior(problem.size, *problem.sizes)
    made = _builder(posterior, prior)(likelihood, prior, rng)
    missing = [name for name in vars(Posterior) if not name.startswith("_") and not hasattr(made, name)]
    if missing:
        raise ValueError(f"posterior= built a {type(made).__name__} without {', '.join(missing)}")
    if not made.can.posterior:
        raise ValueError(f"{type(made).__name__} keeps no posterior: joint measures what is in doubt and needs one")
    belief = Joint(likelihood, prior, made, rng)
    return Parts(belief, MostInformative(belief, InformationDesign(problem)))


def compose_exact(problem: Problem, *, rng: np.random.Generator, outliers: float = 0.0) -> Parts:
    """Joint with every set."""
    return compose_joint(problem, rng=rng, outliers=outliers, posterior=Enumeration)


def compose_joint_pair(problem: Problem, *, rng: np.random.Generator) -> Parts:
    """The MAP set by local search, and its weakest swap measured by the paper's design."""
    likelihood, prior = likelihood_of(SufficientStatistics(problem)), SetPrior(problem.size, *problem.sizes)
    belief = Joint(likelihood, prior, LocalSearch(likelihood, prior, rng), rng)
    return Parts(belief, Pair(champion_challenger, PairDesign(problem)))


def _builder(option: str | BuildPosterior, prior: SetPrior) -> BuildPosterior:
    """What `posterior=` names."""
    if callable(option):
        return option
    if option == "auto":
        return Enumeration if prior.count <= ENUMERATED else Population
    if option == "enumeration" and prior.count > LARGEST:
        raise ValueError(f"posterior='enumeration' takes up to {LARGEST:,} sets, not {prior.count:,}: use 'population'")
    if isinstance(option, str) and option in POSTERIORS:
        return POSTERIORS[option]
    known = ["auto", *POSTERIORS]
    hint = did_you_mean(option, known, otherwise=f": use {', '.join(known)}, or a function that builds one", cutoff=0.5)
    raise ValueError(f"unknown posterior {option!r}{hint}")
