"""Very many streams: expectation propagation against enumeration, and the search that starts with it."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, Simulator, families, load_policy, make_policy
from eccaht.base.arrays import Array
from eccaht.checks import check_posterior
from eccaht.streams.designs import SpreadDesign
from eccaht.streams.designs.spread import share_left
from eccaht.streams.policies import Policy
from eccaht.streams.posterior import (
    Enumeration,
    Joint,
    Population,
    SufficientStatistics,
    Wide,
    likelihood_of,
    neighbourhood,
)
from eccaht.streams.posterior.propagation import Propagation
from eccaht.streams.posterior.wide import last_members
from eccaht.streams.sets import SetPrior
from eccaht.streams.shifts import UnknownShift

WIDE = Problem(families.toeplitz(600, 0.8), shift=4.0, n_anomalies=3, budget=5.0)


def after(problem: Problem, readings: int, seed: int) -> tuple[Propagation, Enumeration, SufficientStatistics]:
    """The same random readings, given to both."""
    rng, world = np.random.default_rng(seed), Simulator(problem, seed=seed)
    evidence, prior = SufficientStatistics(problem), SetPrior(problem.size, *problem.sizes)
    marginal, exact = Propagation(prior), Enumeration(likelihood_of(evidence), prior, rng)
    for _ in range(readings):
        c = problem.covariance.solve(rng.standard_normal(problem.size))
        evidence.add(c, world.measure(c))
        for h, r in evidence.newest or []:
            marginal.add(h[:-1], r)
    exact.update()
    return marginal, exact, evidence


@pytest.mark.parametrize("readings", [1, 4, 8, 16])
@pytest.mark.parametrize("sizes", [(80, 2), (30, 3)])
def test_marginals_are_near_those_of_all_sets(sizes: tuple[int, int], readings: int) -> None:
    problem = Problem(families.toeplitz(sizes[0], 0.6), shift=2.0, n_anomalies=sizes[1], budget=5.0)
    off, claimed, true = [], [], []
    for seed in range(12):
        marginal, exact, _ = after(problem, readings, seed)
        right = exact.marginals()
        off.append(np.abs(marginal.marginals - right).mean() * sizes[0] / sizes[1])
        claimed.append(marginal.marginals)
        true.append(right)
    assert np.mean(off) < 0.3  # moved probability of a member, on average
    low = np.concatenate(claimed) < 0.05
    assert np.concatenate(true)[low].mean() == pytest.approx(np.concatenate(claimed)[low].mean(), rel=0.35)
    assert np.sum(claimed) == pytest.approx(12 * sizes[1], rel=0.2)


def test_the_covariance_is_that_of_all_sets_where_the_readings_say_little() -> None:
    problem = Problem(families.toeplitz(40, 0.6), shift=0.4, n_anomalies=2, budget=5.0)
    marginal, exact, _ = after(problem, 6, seed=1)
    chance = np.exp(exact.log_posterior - exact.log_posterior.max())
    z = np.zeros((len(exact.sets), 40))
    np.put_along_axis(z, exact.sets, 1.0, axis=1)
    chance /= chance.sum()
    true = (z * chance[:, None]).T @ z - np.outer(chance @ z, chance @ z)
    log_odds, variance, times = marginal.moments()
    found = np.column_stack([times(unit) for unit in np.eye(40)])
    np.testing.assert_allclose(found.diagonal(), variance, rtol=1e-9)
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    assert np.abs(found - true).max() < 0.15 * true.max()
    assert np.abs(log_odds - np.log(chance @ z / (1 - chance @ z))).max() < 0.3


@pytest.mark.parametrize("count", [1, 2])
def test_the_last_members_are_weighed_exactly(count: int) -> None:
    problem = Problem(families.toeplitz(40, 0.6), shift=1.5, n_anomalies=count, budget=5.0)
    _, exact, evidence = after(problem, 3, seed=2)
    likelihood, prior = likelihood_of(evidence), SetPrior(40, count, count)
    moments = last_members(likelihood, neighbourhood(likelihood, prior, exact.candidates()[0]))
    assert moments is not None
    chance = np.exp(exact.log_posterior - exact.log_posterior.max())
    z = np.zeros((len(exact.sets), 40))
    np.put_along_axis(z, exact.sets, 1.0, axis=1)
    chance /= chance.sum()
    true = (z * chance[:, None]).T @ z - np.outer(chance @ z, chance @ z)
    found = np.column_stack([moments.times_covariance(unit) for unit in np.eye(40)])
    np.testing.assert_allclose(found, true, atol=1e-5)
    np.testing.assert_allclose(1.0 / (1.0 + np.exp(-moments.log_odds)), exact.marginals(), atol=1e-5)


def test_anomalies_side_by_side_are_found() -> None:
    """They cancel each other in weights of alternating signs."""
    for seed in range(2):
        world = Simulator(WIDE, anomalies=[100, 101, 400], seed=seed)
        policy = make_policy("joint", WIDE, seed=seed)
        while not policy.should_stop():
            assert policy.n_readings < 150
            policy.tell(policy.ask(), world.measure(policy.ask()))
        assert policy.decision.tolist() == [100, 101, 400]


def test_almost_noiseless_readings_are_taken() -> None:
    problem = Problem(families.rbf(60, rho=0.8), shift=3.0, n_anomalies=2, budget=5.0)
    marginal, _, _ = after(problem, 12, seed=3)
    assert np.isfinite(marginal.log_odds).all()
    assert (marginal.moments().variance > 0).all()


class FactoredAnew(Propagation):
    """All readings are factored after each reading, before the sites move as well."""

    def _extend(self, h: Array, r: float) -> None:  # noqa: ARG002
        self._refresh()


@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-6])
def test_one_reading_more_is_taken_as_if_all_were_factored_anew(noise: float) -> None:
    rng, prior = np.random.default_rng(4), SetPrior(300, 4, 4)
    marginal, anew = Propagation(prior), FactoredAnew(prior)
    for _ in range(40):
        h = rng.standard_normal(300) / noise
        r = float(h[:4].sum() + rng.standard_normal())
        marginal.add(h, r)
        anew.add(h, r)
        np.testing.assert_allclose(marginal.marginals, anew.marginals, rtol=0.0, atol=1e-6)


def test_more_readings_than_streams_are_kept_as_few_that_say_the_same() -> None:
    rng, marginal = np.random.default_rng(5), Propagation(SetPrior(60, 3, 3))
    for _ in range(300):
        h = 0.4 * rng.standard_normal(60)
        marginal.add(h, float(h[:3].sum() + rng.standard_normal()))
    assert len(marginal.rows) <= 76 < marginal.n_readings == 300
    few = deepcopy(marginal)
    few.rows = np.vstack([few.rows, 0.0 * few.rows])
    few._condense()
    few._refresh()
    marginal._refresh()
    assert len(few.rows) == 60
    np.testing.assert_allclose(few.log_odds, marginal.log_odds, rtol=0.0, atol=1e-8)


def test_a_search_of_more_readings_than_streams_goes_on_identically_from_a_file(tmp_path: Path) -> None:
    problem = Problem(families.identity(40), shift=0.3, n_anomalies=2, budget=5.0)
    policy, world = make_policy("joint", problem, seed=3, posterior="wide", stopping=None), Simulator(problem, seed=3)
    search(policy, world, 70)
    marginal = policy._belief.posterior.spread.marginal  # type: ignore[attr-defined]
    assert len(marginal.rows) < marginal.n_readings == 70
    policy.save(tmp_path / "policy")
    other = deepcopy(world)
    assert search(policy, world, 5) == search(load_policy(tmp_path / "policy"), other, 5)


def test_the_variance_left_is_that_of_the_mixture() -> None:
    """By integration over the reading, on a fine grid."""
    grid = np.linspace(-40.0, 60.0, 200_001)
    for log_odds, precision in ((0.0, 1.0), (-3.0, 4.0), (-5.0, 0.3), (2.0, 2.0)):
        p, root = 1 / (1 + np.exp(-log_odds)), np.sqrt(precision)
        one, none = np.exp(-0.5 * (grid - root) ** 2), np.exp(-0.5 * grid**2)
        both = p * one + (1 - p) * none
        left = (p * one * (1 - p) * none / np.maximum(both, 1e-300)).sum() / both.sum()
        assert share_left(np.array([log_odds]), np.array([precision]))[0] == pytest.approx(
            left / (p * (1 - p)), rel=5e-3
        )


def test_the_first_measurement_tells_nearly_the_most_that_one_can() -> None:
    """Streams are alike: the largest signal-to-noise ratio is that of the least noisy direction."""
    prior = SetPrior(600, 3, 3)
    moments = Propagation(prior).moments()
    c = SpreadDesign(WIDE)(moments, np.random.default_rng(0))
    ratio = 16.0 * float(c @ moments.times_covariance(c)) / WIDE.covariance.quad(c)
    assert ratio > 0.85 * 16.0 * moments.variance.max() * 9.0  # 1 / the smallest eigenvalue, (1 + 0.8) / (1 - 0.8)
    assert WIDE.measurements.allows(c)


def test_it_passes_the_checks_of_a_posterior() -> None:
    assert set(check_posterior(Wide)) == {"open number", "unknown shifts", "whole vectors"}


def kind(policy: Policy) -> type:
    assert isinstance(policy._belief, Joint)
    return type(policy._belief.posterior)


def test_more_than_128_streams_are_searched_by_marginals_first() -> None:
    assert kind(make_policy("joint", WIDE)) is Wide
    narrow = Problem(families.toeplitz(128, 0.8), shift=4.0, n_anomalies=3, budget=5.0)
    assert kind(make_policy("joint", narrow)) is Population
    for other in ({"n_anomalies": (0, 3)}, {"shift": UnknownShift(4.0)}):
        assert kind(make_policy("joint", WIDE.replace(**other))) is Population
        with pytest.raises(ValueError, match="known shifts"):
            make_policy("joint", WIDE.replace(**other), posterior="wide")
    assert kind(make_policy("joint", WIDE, outliers=0.05)) is Population


def search(policy: Policy, world: Simulator, steps: int) -> list[Any]:
    asked = []
    for _ in range(steps):
        c = policy.ask()
        asked.append(c.tolist())
        policy.tell(c, world.measure(c))
    return [asked, policy.decision.tolist(), policy.beliefs.tolist()]


def how(policy: Policy) -> str:
    assert policy.confidence is not None
    return policy.confidence.how


def test_it_finds_the_set_and_stops_by_its_confidence() -> None:
    for seed in range(3):
        policy, world = make_policy("joint", WIDE, seed=seed), Simulator(WIDE, seed=seed)
        assert how(policy) == "unsettled"
        while not policy.should_stop():
            assert policy.n_readings < 200
            policy.tell(policy.ask(), world.measure(policy.ask()))
        assert policy.decision.tolist() == sorted(world.anomalies.tolist())
        assert how(policy) == "estimated"


def test_relabelled_streams_are_found_where_they_went() -> None:
    order = np.random.default_rng(1).permutation(600)
    dense = WIDE.covariance.dense()[np.ix_(order, order)]
    moved, world = WIDE.replace(covariance=dense), Simulator(WIDE, seed=2)
    policy = make_policy("joint", moved, seed=2)
    while not policy.should_stop():
        c: Array = np.empty(600)
        c[order] = policy.ask()
        policy.tell(policy.ask(), world.measure(c))
    assert sorted(order[policy.decision].tolist()) == sorted(world.anomalies.tolist())


def test_batches_go_beyond_what_is_under_way_and_unavailable_streams_have_no_weight() -> None:
    policy, world = make_policy("joint", WIDE, seed=1), Simulator(WIDE, seed=1)
    available = np.random.default_rng(0).random(WIDE.size) < 0.7
    C = policy.ask(batch=4)
    design, moments = SpreadDesign(WIDE), Wide(*parts(WIDE)).moments()
    assert moments is not None
    h = C * WIDE.shift / np.sqrt([[WIDE.noise_variance(c)] for c in C])
    together = np.eye(4) + np.array([moments.times_covariance(row) for row in h]) @ h.T
    assert np.linalg.slogdet(together)[1] > 0.9 * np.log(together.diagonal()).sum()  # their information hardly overlaps
    again = design(moments, np.random.default_rng(1), [C[0]])
    assert not np.allclose(again, C[0])
    for c in C[::-1]:
        policy.tell(c, world.measure(c))
    masked = policy.ask(batch=2, available=available)
    assert not masked[:, ~available].any()
    assert (masked[:, available] != 0.0).any()
    while not policy.should_stop():
        for c in policy.ask(batch=4):
            policy.tell(c, world.measure(c))
    np.testing.assert_array_equal(policy.decision, world.anomalies)


def test_readings_of_one_moment_are_as_good_as_one_by_one() -> None:
    K = WIDE.size
    one, many = make_policy("joint", WIDE, seed=2), make_policy("joint", WIDE, seed=2)
    C = np.zeros((3, K))
    C[[0, 1, 2], [5, 200, 400]] = 5.0  # far apart: their noise is independent to 1e-19
    y = [20.0, 0.0, 0.0]
    many.tell_many(C, y)
    for c, reading in zip(C, y, strict=True):
        one.tell(c, reading)
    np.testing.assert_allclose(one.beliefs, many.beliefs, rtol=1e-6)
    assert kind(one) is kind(many) is Wide
    assert many.ask().any()


def parts(problem: Problem) -> tuple[Any, SetPrior, np.random.Generator]:
    return (
        likelihood_of(SufficientStatistics(problem)),
        SetPrior(problem.size, *problem.sizes),
        np.random.default_rng(0),
    )
