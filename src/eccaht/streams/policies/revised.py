"""The procedures of the paper's revision: decisions and stopping by the exact likelihood of all sets.

Four ways to choose measurements, one way to decide (`UnionBound`): Algorithm 1 with exploration, a pilot followed by
the mix of measurements that is best for the set it found, that mix for the most likely set so far, and that for the
true set, which no search knows.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eccaht.base.arrays import Array, Index, as_number
from eccaht.base.codec import Field, Sizes
from eccaht.base.presentation.text import unknown
from eccaht.streams.designs import Difference, PairDesign, PairToWeights, single_stream
from eccaht.streams.limits import MixtureDesign, mixture_design
from eccaht.streams.limits.rates import check_anomalies
from eccaht.streams.measurements import Unlimited
from eccaht.streams.policies.choosers import Pair
from eccaht.streams.policies.parts import Choice, Chooser, Parts, View
from eccaht.streams.posterior import Capabilities, Enumeration, Joint, SufficientStatistics, likelihood_of
from eccaht.streams.posterior.protocol import WHOLE_POSTERIOR
from eccaht.streams.problem import Problem
from eccaht.streams.sets import SetPrior
from eccaht.streams.stopping import UnionBound

VERIFIED = replace(WHOLE_POSTERIOR, open_number=False, unknown_shift=False)
TWO_STAGE = replace(VERIFIED, batches=False, order_matters=True)  # one way, stream by stream
CONTRASTS = ("precision", "plain")
PAIRS = ("champion", "random")
_ROUNDING = 1e-9


def compose_verified(
    problem: Problem,
    *,
    alpha: float,
    rng: np.random.Generator,
    explore: float = 0.1,
    contrast: str = "precision",
    pair: str = "champion",
) -> Parts:
    """Algorithm 1 of the revision.

    explore: the probability that a random stream is measured alone instead.
    contrast: "precision" measures S^-1 D for the pair, D its difference; "plain" measures D.
    pair: "champion" against challenger of the pseudo-likelihood, or a "random" pair.
    """
    if not 0.0 <= as_number(explore, "explore") <= 1.0:
        raise ValueError(f"explore is a probability from 0 to 1, not {explore!r}")
    for option, known, what in ((contrast, CONTRASTS, "contrast"), (pair, PAIRS, "pair")):
        if option not in known:
            raise unknown(option, known, what)
    belief = _belief(problem, rng, VERIFIED)
    free = problem.replace(measurements=Unlimited(problem.budget))  # the revision limits no contrast by the budget
    design = PairDesign(free) if contrast == "precision" else Difference(problem)
    return Parts(belief, _Exploring(problem, design, explore, pair), UnionBound(alpha, belief))


def compose_two_stage(problem: Problem, *, alpha: float, rng: np.random.Generator) -> Parts:
    """Every stream alone, q times; then, mostly, the mix that is best for the most likely set.

    With h = max(1, log((M - 1) / alpha)) of M sets: q = ceil(sqrt(h)), and a random stream is measured alone
    with probability min(1/2, h^(-1/4)).
    """
    belief = _belief(problem, rng, TWO_STAGE)
    h = max(1.0, UnionBound(alpha, belief).boundary)
    chooser = _TwoStage(belief, pilot=math.ceil(math.sqrt(h)), explore=min(0.5, h**-0.25))
    return Parts(belief, chooser, UnionBound(alpha, belief, after=chooser.length))


def compose_oracle(
    problem: Problem, *, alpha: float, rng: np.random.Generator, anomalies: Sequence[int] | None = None
) -> Parts:
    """The mix that is best for the true set, `anomalies`."""
    if anomalies is None:
        raise ValueError("oracle-design is told the true set: give anomalies=, or take chernoff, which is not")
    belief = _belief(problem, rng, TWO_STAGE)
    return Parts(belief, _BestMix(belief, check_anomalies(problem, anomalies)), UnionBound(alpha, belief))


def compose_chernoff(problem: Problem, *, alpha: float, rng: np.random.Generator) -> Parts:
    """The mix that is best for the most likely set so far (Chernoff 1959)."""
    belief = _belief(problem, rng, TWO_STAGE)
    return Parts(belief, _BestMix(belief, None), UnionBound(alpha, belief))


def compose_controlled(problem: Problem, *, alpha: float, rng: np.random.Generator, base: float = 2.0) -> Parts:
    """Chernoff's procedure, but readings ceil(base^l), l = 0, 1, ..., are of a random stream alone.

    So no two sets stay apart for ever that the mix for a wrong set does not tell apart, at a vanishing cost.
    """
    if not as_number(base, "base") > 1.0:
        raise ValueError(f"base must be above 1, not {base!r}: random streams are read at the powers of it")
    belief = _belief(problem, rng, TWO_STAGE)
    return Parts(belief, _BestMix(belief, None, base), UnionBound(alpha, belief))


def _belief(problem: Problem, rng: np.random.Generator, can: Capabilities) -> Joint:
    likelihood, prior = likelihood_of(SufficientStatistics(problem)), SetPrior(problem.size, *problem.sizes)
    posterior = Enumeration(likelihood, prior, rng)
    belief = Joint(likelihood, prior, posterior, rng)
    belief.can = can
    return belief


class _Exploring(Chooser):
    """A pair measured by its design or, now and then, one stream at random."""

    def __init__(self, problem: Problem, design: PairToWeights, explore: float, pair: str) -> None:
        self._problem, self._explore = problem, explore
        self._pair = Pair(_pseudo_pair if pair == "champion" else _random_pair, design)

    def choose(self, view: View) -> Choice:
        if view.rng.random() < self._explore or (view.available is not None and view.ranking.challenger < 0):
            return Choice(single_stream(self._problem, _random_stream(view)))
        return self._pair.choose(view)


def _pseudo_pair(view: View) -> tuple[int, int]:
    """Champion and challenger by the pseudo-likelihood, b_k - M_kk / 2 of the exact one's sufficient statistics."""
    problem, likelihood = view.belief.problem, view.belief.likelihood
    assert likelihood is not None
    evidence = likelihood.evidence
    scores = (evidence.linear - evidence.half_diagonal)[: problem.size]
    ranking = view.rank(scores, problem.known_number)
    if view.available is not None:
        ranking = ranking.among(view.rank, scores, view.available)
    return ranking.champion, ranking.challenger


def _random_pair(view: View) -> tuple[int, int]:
    i, j = view.rng.choice(_possible(view), 2, replace=False).tolist()
    return i, j


def _random_stream(view: View) -> int:
    return int(view.rng.choice(_possible(view)))


def _possible(view: View) -> Index:
    return np.arange(view.belief.problem.size) if view.available is None else np.flatnonzero(view.available)


class _BestMix(Chooser):
    """Measurements drawn from the mix that is best for a set, or for the most likely one so far."""

    def __init__(self, belief: Joint, truth: Index | None, base: float = math.inf) -> None:
        self._belief, self._truth, self._base = belief, truth, base
        self._designs: dict[bytes, MixtureDesign] = {}  # by set: it costs as much as a hundred readings

    def choose(self, view: View) -> Choice:
        number = view.n_readings + 1
        power = math.floor(math.log(number, self._base) + _ROUNDING)  # the largest up to the reading's number
        if self._base < math.inf and number == math.ceil(self._base**power - _ROUNDING):
            return Choice(single_stream(self._belief.problem, _random_stream(view)))
        return self.draw(self._belief.map_set if self._truth is None else self._truth, view)

    def draw(self, members: Index, view: View) -> Choice:
        key = members.tobytes()
        if key not in self._designs:
            self._designs[key] = mixture_design(self._belief.problem, members)
        design = self._designs[key]
        return Choice(design.measurements[view.rng.choice(design.shares.size, p=design.shares)])


class _TwoStage(Chooser):
    """A pilot of single streams, then the mix for the set that was the most likely at its end."""

    FIELDS = (
        Field("_read", (), int, high="t"),
        Field("_set", ("n",), int, high="K-1", optional=True),
    )

    def __init__(self, belief: Joint, *, pilot: int, explore: float) -> None:
        self._belief, self._pilot, self._explore = belief, pilot, explore
        self.length = pilot * belief.problem.size
        self._read = 0
        self._set: Index | None = None  # the pilot's
        self._best = _BestMix(belief, None)

    def choose(self, view: View) -> Choice:
        problem = self._belief.problem
        if self._read < self.length:
            return Choice(single_stream(problem, self._read // self._pilot))
        if view.rng.random() < self._explore:
            return Choice(single_stream(problem, _random_stream(view)))
        assert self._set is not None
        return self._best.draw(self._set, view)

    def record(self, c: Array) -> None:  # noqa: ARG002
        self._read += 1
        if self._read == self.length:
            self._set = self._belief.map_set

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        over = self._set is not None
        if over != (self._read >= self.length) or (self._set is not None and (np.diff(self._set) <= 0).any()):
            raise ValueError("the set of its pilot is damaged")
