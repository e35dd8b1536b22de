"""Policies that judge whole sets by their exact likelihood."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eccaht.base.naming import did_you_mean
from eccaht.streams.designs import InformationDesign, PairDesign, SpreadDesign, alone
from eccaht.streams.policies.choosers import Pair, champion_challenger
from eccaht.streams.policies.parts import Choice, Chooser, Parts, View
from eccaht.streams.posterior import (
    Enumeration,
    Joint,
    Likelihood,
    LocalSearch,
    Population,
    Posterior,
    SufficientStatistics,
    Wide,
    likelihood_of,
    robust_likelihood,
)
from eccaht.streams.posterior.enumeration import LARGEST
from eccaht.streams.problem import Problem
from eccaht.streams.sets import SetPrior

BuildPosterior = Callable[[Likelihood, SetPrior, np.random.Generator], Posterior]

WIDE = 512  # more streams than this are searched by their marginals first, where posterior="auto"
ENUMERATED = 10_000  # up to this many possible sets posterior="auto" looks at all of them
POSTERIORS: dict[str, BuildPosterior] = {"enumeration": Enumeration, "population": Population, "wide": Wide}


class MostInformative(Chooser):
    """The most informative measurement about the sets that are in doubt."""

    foresees = True

    def __init__(self, belief: Joint, design: InformationDesign, spread: SpreadDesign) -> None:
        self._belief, self._design, self._spread = belief, design, spread

    def choose(self, view: View) -> Choice:
        if view.available is not None and view.ranking.challenger < 0:
            return Choice(alone(self._belief.problem, view.ranking.champion))
        moments = self._belief.posterior.moments()
        if moments is not None:
            return Choice(self._spread(moments, view.rng, view.pending, view.available))
        return Choice(self._design(self._belief.in_doubt(), view.rng, view.pending, view.available))


def compose_joint(
    problem: Problem,
    *,
    rng: np.random.Generator,
    outliers: float = 0.0,
    posterior: str | BuildPosterior = "auto",
) -> Parts:
    """Measure what is most informative about the sets in doubt.

    outliers: the share of outlying readings.
    posterior: "enumeration", "population", "wide" (marginals first, a population later), "auto" (all sets where they
        are few, "wide" for more than 512 streams if shifts and number are known and weights may have any sign and
        level, else a population), or a function (likelihood, prior, rng) -> Posterior of your own.
    """
    likelihood, prior = robust_likelihood(problem, outliers), SetPrior(problem.size, *problem.sizes)
    made = _builder(posterior, likelihood, prior, free=not problem.designing.reshapes)(likelihood, prior, rng)
    missing = [name for name in vars(Posterior) if not name.startswith("_") and not hasattr(made, name)]
    if missing:
        raise ValueError(f"posterior= built a {type(made).__name__} without {', '.join(missing)}")
    if not made.can.posterior:
        raise ValueError(f"{type(made).__name__} keeps no posterior: joint measures what is in doubt and needs one")
    belief = Joint(likelihood, prior, made, rng)
    return Parts(belief, MostInformative(belief, InformationDesign(problem), SpreadDesign(problem)))


def compose_exact(problem: Problem, *, rng: np.random.Generator, outliers: float = 0.0) -> Parts:
    return compose_joint(problem, rng=rng, outliers=outliers, posterior=Enumeration)


def compose_joint_pair(problem: Problem, *, rng: np.random.Generator) -> Parts:
    """The MAP set by local search, and its weakest swap measured by the paper's design."""
    likelihood, prior = likelihood_of(SufficientStatistics(problem)), SetPrior(problem.size, *problem.sizes)
    belief = Joint(likelihood, prior, LocalSearch(likelihood, prior, rng), rng)
    return Parts(belief, Pair(champion_challenger, PairDesign(problem)))


def _builder(option: str | BuildPosterior, likelihood: Likelihood, prior: SetPrior, *, free: bool) -> BuildPosterior:
    """What `posterior=` names; free: whether weights near S^-1 D are allowed for any contrast D."""
    if callable(option):
        return option
    if option == "auto":
        wide = prior.n_streams > WIDE and prior.fixed and likelihood.quadratic and free
        return Enumeration if prior.count <= ENUMERATED else Wide if wide else Population
    if option == "wide" and not (prior.fixed and likelihood.quadratic):
        needed = "known shifts, a known number of anomalies and no outliers"
        raise ValueError(f"posterior='wide' needs {needed}: use 'population'")
    if option == "enumeration" and prior.count > LARGEST:
        raise ValueError(f"posterior='enumeration' takes up to {LARGEST:,} sets, not {prior.count:,}: use 'population'")
    if isinstance(option, str) and option in POSTERIORS:
        return POSTERIORS[option]
    known = ["auto", *POSTERIORS]
    hint = did_you_mean(option, known, otherwise=f": use {', '.join(known)}, or a function that builds one", cutoff=0.5)
    raise ValueError(f"unknown posterior {option!r}{hint}")
