"""How the next measurement is chosen from what is believed, and the policies that believe in whole sets."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from eccaht.base.arrays import Array, Index, support_of
from eccaht.base.codec import Field
from eccaht.base.presentation.text import did_you_mean
from eccaht.streams.designs import InformationDesign, PairDesign, PairToWeights, SpreadDesign, alone, single_stream
from eccaht.streams.measurements import NotShown
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

Selector = Callable[[View], tuple[int, int]]
BuildPosterior = Callable[[Likelihood, SetPrior, np.random.Generator], Posterior]

WIDE = 128  # more streams than this are searched by their marginals first, where posterior="auto"
ENUMERATED = 10_000  # up to this many possible sets posterior="auto" looks at all of them
POSTERIORS: dict[str, BuildPosterior] = {"enumeration": Enumeration, "population": Population, "wide": Wide}
_TRIED = 16  # members, and streams outside, whose pairs are tried where the selected one cannot be measured


def champion_challenger(view: View) -> tuple[int, int]:
    """The weakest member of the set and the strongest stream outside (paper, Algorithm 1, lines 7 to 10)."""
    return view.ranking.champion, view.ranking.challenger


def thompson_pair(view: View) -> tuple[int, int]:
    """Champion and challenger of randomised beliefs, drawn from Beta(p N + 1, (1 - p) N + 1) with N = max(t, 2)."""
    p, N = view.belief.beliefs, max(view.n_readings, 2)
    scores = view.rng.beta(p * N + 1.0, (1.0 - p) * N + 1.0)
    drawn = view.rank(scores, view.ranking.members.size)
    if view.available is not None:
        drawn = drawn.among(view.rank, scores, view.available)
    return drawn.champion, drawn.challenger


class Pair(Chooser):
    """Select a pair, then design the measurement that separates it."""

    def __init__(self, select: Selector, design: PairToWeights) -> None:
        self._select, self._design = select, design

    def choose(self, view: View) -> Choice:
        i, j = self._select(view)
        if view.available is None:
            return Choice(self._design(i, j), (i, j))
        if j < 0:
            return Choice(alone(view.belief.problem, i))
        if not view.available[[i, j]].all():
            raise ValueError(f"streams {i} and {j} were selected, but not both are available: look at view.available")
        within = getattr(self._design, "within", None)  # a design without it may use streams i and j alone
        design = self._design if within is None else within(view.available)
        refused: NotShown | None = None
        for pair in _available_pairs(view, (i, j)):
            try:
                return Choice(design(*pair), pair)
            except NotShown as error:  # no allowed measurement of available streams tells these two apart
                refused = refused or error
        assert refused is not None
        raise refused


def _available_pairs(view: View, first: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The selected pair, then those of a member and an outsider that both are available, the closest first."""
    yield first
    assert view.available is not None
    scores, inside = view.belief.scores, np.zeros(view.available.size, dtype=bool)
    inside[view.ranking.members] = True
    members, outside = (np.flatnonzero(view.available & side) for side in (inside, ~inside))
    members = members[np.argsort(scores[members], kind="stable")[:_TRIED]]
    outside = outside[np.argsort(-scores[outside], kind="stable")[:_TRIED]]
    leads = scores[members][:, None] - scores[outside]
    for place in np.argsort(leads, axis=None, kind="stable").tolist():
        i, j = divmod(place, outside.size)
        yield int(members[i]), int(outside[j])


class LeastMeasured(Chooser):
    """Measure the champion or the challenger, whichever gains more from one more reading: 1 / (T (T + 1)).

    T counts the readings in which a stream had weight; the rule is that of CombGapE for a pair, as the paper's authors
    have it in their program. The champion wins a tie.
    """

    FIELDS = (Field("_counts", ("K",), int, high="t"),)

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._counts: Index = np.zeros(problem.size, dtype=np.intp)

    def choose(self, view: View) -> Choice:
        i, j = champion_challenger(view)
        if j < 0:
            return Choice(single_stream(self._problem, i))
        first, second = (self._counts[k] + sum(c[k] != 0.0 for c in view.pending) for k in (i, j))
        return Choice(single_stream(self._problem, i if first <= second else j), (i, j))

    def record(self, c: Array) -> None:
        self._counts[support_of(c)] += 1


class RoundRobin(Chooser):
    """One stream after the other."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def choose(self, view: View) -> Choice:
        """Return the budget on the stream whose turn it is, if it is neither under way nor unavailable."""
        K, first = self._problem.size, max(view.n_readings, view.n_asked)
        if not view.pending and view.available is None:
            return Choice(single_stream(self._problem, first % K))
        turn = (first + np.arange(K)) % K
        waiting = np.ones(K, dtype=bool) if view.available is None else view.available.copy()
        for c in view.pending:
            waiting[support_of(c)] = False
        free = turn[waiting[turn]]
        if not free.size:  # all are under way: once more
            free = turn if view.available is None else turn[view.available[turn]]
        return Choice(single_stream(self._problem, int(free[0])))


class RandomSparse(Chooser):
    """ceil(B) random streams with Gaussian weights, scaled to the budget (paper, Algorithm RSP)."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._count = min(math.ceil(problem.budget), problem.size)

    def choose(self, view: View) -> Choice:
        possible: int | Index = self._problem.size
        count = self._count
        if view.available is not None:
            possible = view.available.nonzero()[0]
            count = min(count, possible.size)
        streams = view.rng.choice(possible, count, replace=False)
        weights = view.rng.standard_normal(count)
        c = np.zeros(self._problem.size)
        c[streams] = weights * (self._problem.budget / np.add.reduce(np.abs(weights)))
        return Choice(c)


class _MostInformative(Chooser):
    """The most informative measurement about the sets that are in doubt."""

    foresees = True

    def __init__(self, belief: Joint) -> None:
        self._belief = belief
        self._design, self._spread = InformationDesign(belief.problem), SpreadDesign(belief.problem)

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
        are few, "wide" for more than 128 streams if shifts and number are known and weights may have any sign and
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
    return Parts(belief, _MostInformative(belief))


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
