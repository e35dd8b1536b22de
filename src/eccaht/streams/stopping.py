"""When to stop, and what each rule guarantees.

A rule looks at what separates the decision from its rivals and at the number of readings. `posterior` and `glr`
(docs/explanation/confidence.md) need the log-odds against every other set, any number of changes away; the posterior
of the joint policies gives them, the pseudo-likelihood cannot.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from eccaht.base.arrays import as_count
from eccaht.streams.posterior import Capabilities, Enumeration, Joint
from eccaht.streams.problem import Problem

__all__ = ["Gap", "LikelihoodRatio", "PosteriorProbability"]

StoppingOption = str | int | None
_LOG_ODDS = Capabilities()  # of a policy with one log-likelihood ratio a stream
_OPEN_MARGIN = 0.85  # of alpha, where the number of anomalies is open


class StoppingRule(Protocol):
    """Decides from the smallest lead of a member over an outsider and the number of readings so far."""

    def met(self, lead: float, n_readings: int) -> bool:
        """Is it time to stop?"""


@dataclass(frozen=True)
class Gap:
    """Stop when min over members l(i) - max over others l(j) >= beta (paper, appendix on stopping).

    beta(t, alpha) = log(N / alpha) with N = n (K - n), one term of the union bound for each single swap; for
    simple Gaussian hypotheses Ville's inequality covers all t at once, so beta does not grow with t.

    Bound: if l(i) - l(j) were the log-likelihood ratio of the swap, a given single-swap rival of the true set would
    ever pass the threshold with probability at most alpha / N. The pseudo-likelihood is that ratio only where no
    other anomalous stream carries weight in the measurements. So the error of the decision is NOT bounded by
    alpha, and measured errors are far larger on strongly correlated noise (docs/explanation/confidence.md).
    """

    alpha: float
    rivals: int

    @property
    def beta(self) -> float:
        return math.log(self.rivals / self.alpha)

    def met(self, lead: float, n_readings: int) -> bool:  # noqa: ARG002
        return lead >= self.beta  # eq. 12 over single swaps, with scores in place of L_t


@dataclass(frozen=True)
class PosteriorProbability:
    """Stop when the posterior probability of the MAP set reaches 1 - alpha.

    Guarantee: over anomalous sets drawn from the prior (all possible sizes equally likely, all sets of a size equally
    likely), and shifts drawn from theirs where they are unknown, the MAP set is wrong in at most a share
    alpha of all searches. Where all sets are enumerated this is a theorem; else the probability is an estimate,
    and docs/explanation/confidence.md says what protects it.

    It never stops on a set that its readings refute: there the model does not hold, nor does any probability in it.

    Where the number is open the rule asks for 1 - 0.85 alpha: nearly all doubt is then whether one more stream is
    anomalous, and given that it is, the error may exceed alpha although it is below alpha on average.
    """

    alpha: float
    belief: Joint
    margin: float = 1.0  # the rule works with margin * alpha

    def met(self, lead: float, n_readings: int) -> bool:
        """Is the set probable enough? Not if one rival one change away is more probable than alpha."""
        doubt = self.margin * self.alpha
        if not n_readings or lead < math.log1p(-doubt) - math.log(doubt) or not self.belief.fit().holds:
            return False
        confidence = self.belief.confidence(1.0 - doubt)
        return confidence is not None and confidence.how != "unsettled" and confidence.probability >= 1.0 - doubt


@dataclass(frozen=True)
class LikelihoodRatio:
    """Stop when the MAP set is log(N_d m / alpha) nats more likely than every rival that differs by d streams.

    N_d is the number of sets that differ from the rival as the MAP set does, m the number of ways to differ (the
    possible d). Guarantee: for any true set, the MAP set is wrong with probability at most alpha. If the
    true set is T, the likelihood ratio of any other set to T is a martingale that starts at 1, so it ever reaches
    N_d m / alpha with probability at most alpha / (N_d m) (Ville); summed over all others this is alpha. For a single
    swap of n among K that is log(n n (K - n) / alpha), far below the log of the number of all sets. With
    unknown shifts the guarantee is on average over their prior.
    """

    alpha: float
    belief: Joint

    def met(self, lead: float, n_readings: int) -> bool:
        needed = -math.log(self.alpha)
        if not n_readings or lead < needed or not self.belief.fit().holds:
            return False
        return self.belief.advantage(needed) >= needed  # eq. 12, with beta for each rival


@dataclass(frozen=True)
class UnionBound:
    """Stop when the most likely set is log((M - 1) / alpha) nats more likely than each of the M - 1 others.

    The boundary of the paper's revision: the same for every rival, where `LikelihoodRatio` asks less of near
    ones. Guarantee: for any true set, the decision is wrong with probability at most alpha (Ville's inequality for
    each rival, and their sum). All sets are enumerated.

    after: no reading up to this one stops the search.
    """

    alpha: float
    belief: Joint
    after: int = 0

    @property
    def boundary(self) -> float:
        return math.log((self.belief.n_sets - 1) / self.alpha)

    def met(self, lead: float, n_readings: int) -> bool:
        if n_readings <= self.after or lead < self.boundary:
            return False
        assert isinstance(self.belief.posterior, Enumeration)
        return self.belief.posterior.lead_over_all() >= self.boundary


@dataclass(frozen=True)
class Horizon:
    """Stop after a fixed number of readings. It gives no bound on the error."""

    n_measurements: int

    def met(self, lead: float, n_readings: int) -> bool:  # noqa: ARG002
        return n_readings >= self.n_measurements


@dataclass(frozen=True)
class Own:
    """Stop when the algorithm says that its search is over, by the rule of its source, where it says what that bounds.

    over: is it, after so many readings?
    """

    over: Callable[[int], bool] = field(compare=False, repr=False)

    def met(self, lead: float, n_readings: int) -> bool:  # noqa: ARG002
        return self.over(n_readings)


@dataclass(frozen=True)
class Never:
    """The caller decides."""

    def met(self, lead: float, n_readings: int) -> bool:  # noqa: ARG002
        return False


def stopping_rule(
    option: StoppingOption,
    alpha: float,
    problem: Problem,
    *,
    own: StoppingRule | None = None,
    can: Capabilities = _LOG_ODDS,
    belief: Any = None,
) -> StoppingRule:
    """Return the rule that `stopping=...` names.

    "posterior", "glr", "union", "gap", "own", a number of measurements, or None for never. own: the rule of the
    algorithm's own source; can: what the policy can do; belief: its belief, a `Joint` if it knows that of sets.

    >>> problem = Problem([[1.0, 0.0], [0.0, 1.0]], shift=1.0, n_anomalies=1, budget=1.0)
    >>> round(stopping_rule("gap", 0.05, problem).beta, 3)
    2.996
    """
    if option is None:
        return Never()
    if not isinstance(option, str):
        return Horizon(as_count(option, "stopping", least=1))
    fixed, rules = problem.sizes[0] == problem.sizes[1], dict[str, StoppingRule]()
    if can.posterior:
        rules["posterior"] = PosteriorProbability(alpha, belief, margin=1.0 if fixed else _OPEN_MARGIN)
        rules["glr"] = LikelihoodRatio(alpha, belief)
        if isinstance(belief.posterior, Enumeration):
            rules["union"] = UnionBound(alpha, belief)
    if can.log_odds and fixed:
        rules["gap"] = Gap(alpha, rivals=problem.known_number * (problem.size - problem.known_number))
    if own is not None:
        rules["own"] = own
    if option in rules:
        return rules[option]
    choices = f"use {', '.join([*map(repr, rules), 'a number of measurements'])} or None"
    if option == "gap" and can.log_odds:
        raise ValueError(f"stopping='gap' compares swaps and needs a known number of anomalies: {choices}")
    if option == "gap":
        raise ValueError(f"stopping='gap' needs scores that are log-likelihood ratios, not means: {choices}")
    if option == "own":
        raise ValueError(f"this policy has no stopping rule of its own: {choices}")
    if option == "union" and can.posterior:
        raise ValueError(f"stopping='union' needs all sets enumerated, as exact does: {choices}")
    if option in ("posterior", "glr", "union"):
        raise ValueError(
            f"stopping={option!r} needs the posterior of whole sets, which joint and exact keep: here {choices}"
        )
    raise ValueError(f"unknown stopping rule {option!r}: {choices}")
