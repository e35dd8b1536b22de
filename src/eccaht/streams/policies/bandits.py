"""Bandit algorithms for the best set of n streams: they pull one stream at a time and know nothing of correlation.

All work on `EmpiricalMeans`, whose scores are means in units of the shift: the anomalous streams are the n largest. A
set differs from another by some streams; the difference of their sums has variance sum of var_k over those streams.
"""

import math
from functools import partial
from typing import NamedTuple, cast

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtri_exp

from eccaht.base.arrays import Array, Index
from eccaht.streams.designs import single_stream
from eccaht.streams.policies.parts import Choice, Chooser, Parts, View
from eccaht.streams.posterior import EmpiricalMeans
from eccaht.streams.problem import Problem
from eccaht.streams.stopping import Own


class Rivals(NamedTuple):
    """Two sets, by the streams that only one of them has."""

    leaving: Index
    entering: Index


class _Unmeasured(Chooser):
    """Every stream once, in the policy's random order, before anything else."""

    def __init__(self, problem: Problem, belief: EmpiricalMeans) -> None:
        self.problem, self.belief = problem, belief

    def first_round(self, view: View) -> Choice | None:
        """The next stream of the first round, or None once all were measured.

        Where one that was never measured is not available, the available one of largest variance.
        """
        means = _means(view)
        waiting = means.unmeasured
        if waiting.size == 0:
            return None
        able = measurable(view, waiting)
        if not able.size:
            able = measurable(view, np.arange(self.problem.size))
            variances = means.variances[able]
            able = able[variances == variances.max()]
        return Choice(single_stream(self.problem, int(able[view.rank.order[able].argmin()])))


def measurable(view: View, streams: Index) -> Index:
    return streams if view.available is None else streams[view.available[streams]]


def _means(view: View) -> EmpiricalMeans:
    """The belief, which while readings are under way is the one expected after them."""
    return cast("EmpiricalMeans", view.belief)


class CombGapE(_Unmeasured):
    """Nakamura & Sugiyama's gap-based exploration, Algorithm 1, with the sets of n streams as actions.

    Empirical best set (line 4); the rival with the largest upper confidence bound on its advantage (line 5); stop if
    that bound is not positive (line 6); else pull the stream of their difference that shrinks the bound most, the
    largest var/(T (T+1)) (line 9). The bound is sum of mean differences + sqrt(2 V log(M pi^2 t^2 / (6 alpha))), V the
    variance of the difference and M the number of sets: Gaussian tails with a union bound over sets and times.
    """

    def __init__(self, problem: Problem, belief: EmpiricalMeans, alpha: float) -> None:
        super().__init__(problem, belief)
        n, K = problem.known_number, problem.size
        self._log_sets = float(gammaln(K + 1) - gammaln(n + 1) - gammaln(K - n + 1))
        self._alpha = alpha
        self._single = problem.covariance.diagonal() / problem.shift**2  # variance of a score after one reading

    def choose(self, view: View) -> Choice:
        first = self.first_round(view)
        if first is not None:
            return first
        rivals, _ = self.challenger(view.ranking.members, view.n_readings, _means(view))
        streams = measurable(view, np.concatenate(rivals))
        if not streams.size:  # none of those that the rivals differ by
            streams = measurable(view, np.arange(self.problem.size))
        variance = _means(view).variances[streams]
        gain = variance * variance / (self._single[streams] + variance)  # var/T - var/(T+1), with var/T = variance
        best = streams[gain >= gain.max() * (1.0 - 1e-9)]
        return Choice(single_stream(self.problem, int(best[view.rank.order[best].argmin()])), _as_pair(rivals))

    def challenger(self, members: Index, t: int, belief: EmpiricalMeans | None = None) -> tuple[Rivals, float]:
        """The rival set of largest upper confidence bound, and that bound; belief: another than the present one.

        The bound is a modular plus a submodular function of the swaps made. Single swaps are compared exactly; further
        swaps are added greedily while they raise the bound.
        """
        known = self.belief if belief is None else belief
        means, variances = known.scores, known.variances
        radius = 2.0 * (self._log_sets + math.log(math.pi**2 * max(t, 1) ** 2 / (6.0 * self._alpha)))
        outside = means.copy()
        outside[members] = -np.inf  # no candidates, here and below: their bounds are never the largest
        inside, spread_inside = means[members][:, None], variances[members][:, None]
        gap, spread, bound = 0.0, 0.0, -np.inf
        leaving: list[int] = []
        entering: list[int] = []
        for _ in range(min(members.size, means.size - members.size)):
            gaps = gap + outside - inside
            spreads = spread + variances + spread_inside
            bounds = np.sqrt(radius * spreads)
            bounds += gaps
            a, b = divmod(int(bounds.argmax()), means.size)
            if bounds[a, b] <= bound:
                break
            gap, spread, bound = gaps.item(a, b), spreads.item(a, b), bounds.item(a, b)
            leaving.append(members.item(a))
            entering.append(b)
            inside[a], outside[b] = np.inf, -np.inf
        return Rivals(np.array(leaving), np.array(entering)), bound

    def is_over(self, n_readings: int) -> bool:
        """Is no rival's upper confidence bound positive (Algorithm 1, line 6)?"""
        if self.belief.unmeasured.size:
            return False
        members = _best_set(self.belief.scores, self.problem.known_number)
        return self.challenger(members, n_readings)[1] <= 0.0


def compose_combgape(problem: Problem, *, alpha: float) -> Parts:
    belief = EmpiricalMeans(problem)
    search = CombGapE(problem, belief, alpha)
    return Parts(belief, search, Own(search.is_over))


class _TopTwo(_Unmeasured):
    """Top-two sampling over sets: a leader drawn from the posterior, a challenger, and a coin between the two.

    Leader: the best set of one draw from the Gaussian posterior (flat prior, so every stream is measured once first).
    Challenger: for TTTS, posterior draws until another set is best (Russo 2016, section 3); for T3C, the set of
    smallest transportation cost to the leader (Shang et al. 2020, section 2). With probability 1/2 a stream that only
    the leader has is measured, else one that only the challenger has; which one, if there are several, is drawn
    uniformly.
    """

    def __init__(self, problem: Problem, belief: EmpiricalMeans, *, transport: bool) -> None:
        super().__init__(problem, belief)
        self._transport = transport

    def choose(self, view: View) -> Choice:
        first = self.first_round(view)
        if first is not None:
            return first
        means, variances, n = _means(view).scores, _means(view).variances, self.problem.known_number
        leader = _best_set(_draw(means, np.sqrt(variances), view.rng), n)
        if self._transport:
            rivals = cheapest_swap(means, variances, leader, view.rank.order)[0]
        else:
            rivals = another_set(means, variances, leader, view.rng)
        side = rivals.leaving if view.rng.random() < 0.5 else rivals.entering
        if view.available is not None:
            sides = side, np.concatenate(rivals), np.arange(self.problem.size)
            side = next(able for part in sides if (able := measurable(view, part)).size)
        return Choice(single_stream(self.problem, side.item(view.rng.integers(side.size))), _as_pair(rivals))


def cheapest_swap(means: Array, variances: Array, leader: Index, order: Index) -> tuple[Rivals, float]:
    """The set of smallest transportation cost to the leader, and that cost.

    For Gaussian means the cost of preferring another set is (sum of gaps)_+^2 / (2 sum of variances). A set several
    swaps away never costs less than the cheapest of its swaps: (a+b)^2/(u+v) >= min(a^2/u, b^2/v) for gaps a, b and
    variances u, v.
    """
    outside = np.delete(np.arange(means.size), leader)
    gaps = np.maximum(means[leader][:, None] - means[outside], 0.0)
    costs = gaps**2 / (2.0 * (variances[leader][:, None] + variances[outside]))
    ties = np.argwhere(costs <= costs.min())
    first = ties[(order[leader[ties[:, 0]]] * means.size + order[outside[ties[:, 1]]]).argmin()]
    return Rivals(leader[first[:1]], outside[first[1:]]), float(costs.min())


def another_set(means: Array, variances: Array, leader: Index, rng: np.random.Generator) -> Rivals:
    """Draw from the posterior given that the best set is not the leader: the same law as endless resampling.

    A few plain draws first. If all give the leader again, another set has become rare and the draw is made directly.
    "Another set" means that some outsider j exceeds some member i. Draw a pair with probability proportional to that
    of its event, draw the means given the event, and accept with probability 1 / (number of pairs whose event
    happened): that undoes that draws in which several events happened are proposed more often.
    """
    n, deviations = leader.size, np.sqrt(variances)
    draws = rng.standard_normal((16, means.size))
    draws *= deviations
    draws += means
    # where more than n streams reach as far as the weakest of the leader, one of them is from outside
    reaching = draws >= draws[:, leader].min(axis=1)[:, None]
    if np.count_nonzero(reaching) > n * len(draws):
        first = (reaching.sum(axis=1) > n).argmax()
        return _difference(leader, _best_set(draws[first], n))
    within = np.zeros(means.size, dtype=bool)
    within[leader] = True
    outside = (~within).nonzero()[0]
    spread = variances[leader][:, None] + variances[outside]
    log_p = log_ndtr((means[outside] - means[leader][:, None]) / np.sqrt(spread))
    share = np.exp(log_p - log_p.max()).ravel().cumsum()
    while True:
        place = min(int(share.searchsorted(rng.random() * share.item(-1), side="right")), share.size - 1)
        a, b = divmod(place, outside.size)
        theta = _draw(means, deviations, rng)
        i, j = leader.item(a), outside.item(b)
        theta[i], theta[j] = _exceeding(means, variances, i, j, log_p.item(a, b), rng)
        happened = int(np.count_nonzero(theta[outside] > theta[leader][:, None]))
        if happened and rng.random() * happened < 1.0:
            return _difference(leader, _best_set(theta, n))


def _exceeding(
    means: Array, variances: Array, i: int, j: int, log_probability: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Draw (theta_i, theta_j) given theta_j > theta_i; log_probability is that of the event."""
    mean, variance, other = means.item(i), variances.item(i), variances.item(j)
    total = variance + other
    # the difference given that it is positive, by inverting its tail in logarithms
    tail = float(ndtri_exp(math.log1p(-rng.random()) + log_probability))
    excess = -tail * math.sqrt(total)  # theta_j - theta_i - (mean_j - mean_i)
    theta_i = mean - variance / total * excess
    theta_i += math.sqrt(variance * other / total) * rng.standard_normal()
    # given is that theta_j is the larger, which rounding must not undo
    return theta_i, max(theta_i + (means.item(j) - mean) + excess, math.nextafter(theta_i, math.inf))


def transportation_rule(problem: Problem, belief: EmpiricalMeans, alpha: float) -> Own:
    """Chernoff's rule for sets: the cheapest swap costs at least log(n (K-n) (1 + log t) / alpha).

    The generalised likelihood ratio of Garivier & Kaufmann (2016) with their practical threshold and a union
    bound over the single swaps; the cost is that of the empirical best set.
    """
    n = problem.known_number
    return Own(partial(_costs_enough, belief, n, math.log(n * (problem.size - n) / alpha)))


def _costs_enough(belief: EmpiricalMeans, n: int, log_rivals: float, n_readings: int) -> bool:
    if belief.unmeasured.size:
        return False
    order = np.arange(belief.scores.size)
    cost = cheapest_swap(belief.scores, belief.variances, _best_set(belief.scores, n), order)[1]
    return cost >= log_rivals + math.log1p(math.log(n_readings))


def compose_ttts(problem: Problem, *, alpha: float) -> Parts:
    return _compose_top_two(problem, alpha, transport=False)


def compose_t3c(problem: Problem, *, alpha: float) -> Parts:
    return _compose_top_two(problem, alpha, transport=True)


def _compose_top_two(problem: Problem, alpha: float, *, transport: bool) -> Parts:
    belief = EmpiricalMeans(problem)
    chooser = _TopTwo(problem, belief, transport=transport)
    return Parts(belief, chooser, transportation_rule(problem, belief, alpha))


def _draw(means: Array, deviations: Array, rng: np.random.Generator) -> Array:
    drawn = rng.standard_normal(means.size)
    drawn *= deviations
    drawn += means
    return drawn


def _best_set(values: Array, n: int) -> Index:
    return (-values).argpartition(n - 1)[:n]


def _difference(leader: Index, other: Index) -> Rivals:
    first, second = set(leader.tolist()), set(other.tolist())
    return Rivals(np.array(sorted(first - second)), np.array(sorted(second - first)))


def _as_pair(rivals: Rivals) -> tuple[int, int] | None:
    """The pair, where the two sets are one swap apart."""
    return (int(rivals.leaving[0]), int(rivals.entering[0])) if rivals.leaving.size == 1 else None
