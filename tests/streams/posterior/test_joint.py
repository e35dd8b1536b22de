"""The posterior over sets against enumeration."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht import Problem, Simulator, families, make_policy, search
from eccaht.streams.posterior.enumeration import Enumeration, LocalSearch
from eccaht.streams.posterior.gibbs import climb, neighbourhood
from eccaht.streams.posterior.joint import Joint
from eccaht.streams.posterior.likelihood import Likelihood, likelihood_of
from eccaht.streams.posterior.population import Effort, Population
from eccaht.streams.posterior.statistics import SufficientStatistics
from eccaht.streams.sets import SetPrior


def measured(problem: Problem, readings: int, seed: int, scale: float = 1.0) -> Likelihood:
    """Evidence of random measurements of a world with random anomalies."""
    rng = np.random.default_rng(seed)
    evidence, K = SufficientStatistics(problem), problem.size
    mean = problem.mean.copy()
    anomalies = rng.choice(K, problem.n_anomalies, replace=False)
    mean[anomalies] += problem.shift[anomalies]
    for _ in range(readings):
        c = rng.standard_normal(K)
        evidence.add(c, float(c @ mean + scale * np.sqrt(problem.noise_variance(c)) * rng.standard_normal()))
    return likelihood_of(evidence)


@pytest.mark.parametrize("family", ["toeplitz", "rbf", "equicorrelation"])
@pytest.mark.parametrize("prior", [SetPrior(14, 3, 3), SetPrior(14, 0, 3)], ids=["three", "up to three"])
def test_the_population_is_at_the_posterior(family: str, prior: SetPrior) -> None:
    """Marginals of many independent populations average to the exact ones, near-noiseless readings included."""
    covariance = families.rbf(14, rho=0.8) if family == "rbf" else getattr(families, family)(14, 0.8)
    problem = Problem(covariance, shift=1.5, n_anomalies=3, budget=3.0)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        likelihood = measured(problem, 3 if family != "rbf" else 1, seed)
        exact = Enumeration(likelihood, prior, rng)
        exact.update()
        marginals = []
        for _ in range(6):
            population = Population(likelihood, prior, rng)
            for _ in range(15):
                population.update()
            for _ in range(10):
                population.update()
                marginals.append(population.marginals())
        assert np.abs(np.mean(marginals, axis=0) - exact.marginals()).max() < 0.03


def test_a_caller_sets_how_many_sets_a_population_holds() -> None:
    problem = Problem(families.toeplitz(40, 0.8), shift=3.0, n_anomalies=2, budget=3.0)
    few = Effort(cold=12, hot=4, levels=3, checkers=9)
    policy, world = make_policy("joint", problem, posterior=partial(Population, effort=few)), Simulator(problem, seed=1)
    assert search(policy, world.measure, 40).anomalies.tolist() == sorted(world.anomalies.tolist())
    population = policy._belief.posterior  # type: ignore[attr-defined]
    assert len(population._found) == 9
    assert np.bincount(population.level).tolist() in ([12, 4], [12, 4, 4])
    for wrong in ({"hot": 65}, {"levels": 1}, {"ratio": 1.0}, {"checkers": 0}):
        with pytest.raises(ValueError, match=r"levels|checkers"):
            Effort(**wrong)


def test_exact_marginals_are_sums_over_sets() -> None:
    problem = Problem(families.toeplitz(6, 0.5), shift=2.0, n_anomalies=2, budget=2.0)
    likelihood, prior = measured(problem, 2, 0), SetPrior(6, 2, 2)
    exact = Enumeration(likelihood, prior, np.random.default_rng(0))
    exact.update()
    weights = np.exp(likelihood.log_likelihood(exact.sets))
    weights /= weights.sum()
    assert_allclose(np.exp(exact.log_posterior), weights)
    assert_allclose(exact.marginals(), [weights[(exact.sets == k).any(axis=1)].sum() for k in range(6)])
    assert_allclose(exact.marginals().sum(), 2.0)


@pytest.mark.parametrize("prior", [SetPrior(8, 3, 3), SetPrior(8, 0, 3), SetPrior(8, 1, 3)], ids=["3", "0-3", "1-3"])
def test_changes_are_differences_of_log_posteriors(prior: SetPrior) -> None:
    problem = Problem(families.toeplitz(8, 0.5), shift=2.0, n_anomalies=3, budget=2.0)
    likelihood = measured(problem, 4, 1)
    for members in (np.array([1, 4, 6]), np.array([2, 8, 8]), np.array([8, 8, 8]), np.array([0, 8, 5])):
        held = int((members < 8).sum())
        if not prior.least <= held or (prior.fixed and held < 3):
            continue
        here = likelihood.log_likelihood(members[None])[0] + prior.log_prior_of(members[None])[0]
        _, slots, change = neighbourhood(likelihood, prior, members)
        for row, slot in enumerate(slots.tolist()):
            for k in range(9):
                other = members.copy()
                other[slot] = k
                streams = other[other < 8]
                repeated, short = len(set(streams.tolist())) < len(streams), len(streams) < prior.least
                if k == members[slot] or repeated or short or (prior.fixed and k == 8):
                    expected = -np.inf
                else:
                    changed = other[None]
                    expected = likelihood.log_likelihood(changed)[0] + prior.log_prior_of(changed)[0] - here
                assert_allclose(change[row, k], expected, atol=1e-9)


def test_climbing_ends_where_no_swap_helps() -> None:
    problem = Problem(families.equicorrelation(12, 0.7), shift=2.0, n_anomalies=3, budget=2.0)
    likelihood, prior = measured(problem, 5, 2), SetPrior(12, 3, 3)
    sets = prior.random_sets(np.random.default_rng(0), 30)
    before = likelihood.log_likelihood(sets)
    climb(likelihood, prior, sets)
    assert (likelihood.log_likelihood(sets) >= before).all()
    assert all(neighbourhood(likelihood, prior, row).best <= 1e-6 for row in sets)


@pytest.mark.parametrize("search", [Enumeration, LocalSearch, Population])
def test_scores_are_half_the_exact_ratios_to_the_nearest_neighbours(search: type[Enumeration]) -> None:
    problem = Problem(families.toeplitz(9, 0.5), shift=3.0, n_anomalies=2, budget=2.0)
    rng, prior, likelihood = np.random.default_rng(0), SetPrior(9, 2, 2), likelihood_of(SufficientStatistics(problem))
    belief = Joint(likelihood, prior, search(likelihood, prior, rng), rng)
    world = np.array([2, 7])
    for _ in range(12):
        c = rng.standard_normal(9)
        belief.update(c, float(c[world] @ problem.shift[world] + np.sqrt(problem.noise_variance(c)) * rng.normal()))
    exact = Enumeration(likelihood, prior, rng)
    exact.update()
    best = np.sort(exact.sets[exact.log_posterior.argmax()])
    assert np.array_equal(belief.map_set, best)
    i, j = belief.ranking().champion, belief.ranking().challenger
    others = likelihood.log_likelihood(exact.sets)
    one_swap = np.array([len(set(best.tolist()) & set(row.tolist())) == 1 for row in exact.sets])
    assert_allclose(belief.lead, others.max() - others[one_swap].max(), atol=1e-9)
    assert_allclose(belief.scores[i] - belief.scores[j], belief.lead, atol=1e-9)
    assert (belief.scores[best] >= 0).all()
    assert (np.delete(belief.scores, best) <= 0).all()
