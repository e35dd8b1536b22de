"""The reported confidence of an announced set, against enumeration."""

from math import comb, log

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht import Problem, Simulator, UnknownShift, families, make_policy
from eccaht.streams.posterior.confidence import (
    close_rivals,
    differences,
    share_of,
    weight_two_away,
    weight_unseen,
)
from eccaht.streams.posterior.enumeration import Enumeration
from eccaht.streams.posterior.gibbs import neighbourhood
from eccaht.streams.posterior.likelihood import Likelihood, likelihood_of
from eccaht.streams.posterior.population import Population
from eccaht.streams.posterior.protocol import Confidence
from eccaht.streams.posterior.statistics import SufficientStatistics
from eccaht.streams.sets import SetPrior
from eccaht.streams.shifts import Shift


def measured(covariance: str, readings: int, seed: int, shift: Shift = 3.0) -> Likelihood:
    """Evidence of random measurements of a world in which streams 2, 5 and 11 are moved by 3."""
    rng = np.random.default_rng(seed)
    noise = families.rbf(14, rho=0.8) if covariance == "rbf" else getattr(families, covariance)(14, 0.8)
    evidence = SufficientStatistics(Problem(noise, shift=shift, n_anomalies=3, budget=3.0))
    for _ in range(readings):
        c = noise.solve(rng.standard_normal(14))  # cancels what noise there is in common
        y = 3.0 * c[[2, 5, 11]].sum() + np.sqrt(evidence.problem.noise_variance(c)) * rng.standard_normal()
        evidence.add(c, float(y))
    return likelihood_of(evidence)


@pytest.mark.parametrize("prior", [SetPrior(14, 3, 3), SetPrior(14, 0, 4)], ids=["three", "up to four"])
@pytest.mark.parametrize("covariance", ["toeplitz", "equicorrelation", "rbf"])
def test_estimates_do_not_exceed_the_exact_probability(prior: SetPrior, covariance: str) -> None:
    """They err on the low side where few searches find the set again, and high only where nothing is claimed."""
    differences, claimed = [], []
    for seed in range(4):
        for readings in (2, 4, 7):
            likelihood = measured(covariance, readings, seed)
            rng = np.random.default_rng(seed)
            exact = Enumeration(likelihood, prior, rng)
            exact.update()
            population = Population(likelihood, prior, rng)
            for _ in range(10):
                population.update()
            around = neighbourhood(likelihood, prior, exact.sets[exact.log_posterior.argmax()])
            truth = exact.confidence(around)
            found = population.confidence(around)
            assert (truth.how, found.how) == ("exact", "estimated")
            differences.append(found.probability - truth.probability)
            if found.probability > 0.9:
                claimed.append(differences[-1])
    assert max(differences) < 0.2
    assert max(claimed, default=0.0) < 0.03
    assert np.mean(differences) > -0.25


def test_independent_searches_find_what_the_population_has_not_seen() -> None:
    """A population that knows one fitting set only must not be believed where others fit as well."""
    c = np.array([1.0, 2.0, 4.0, 0.5, 3.2, 3.3, 10.3, 11.9, 14.2, 17.7])
    problem = Problem(1e-8 * np.eye(10), shift=1.0, n_anomalies=3, budget=3.0)
    evidence, prior, rng = SufficientStatistics(problem), SetPrior(10, 3, 3), np.random.default_rng(0)
    evidence.add(c, 7.0)
    likelihood, first, second = likelihood_of(evidence), np.array([0, 1, 2]), np.array([3, 4, 5])
    assert_allclose(likelihood.log_likelihood(first[None]), likelihood.log_likelihood(second[None]))
    population = Population(likelihood, prior, rng)
    population.recent = np.tile(first, (64, 1))
    around = neighbourhood(likelihood, prior, first)
    assert share_of(likelihood, prior, population.recent, around) > 0.999
    assert population.confidence(around).probability < 0.6


def test_a_set_that_does_not_fit_its_readings_has_no_probability() -> None:
    likelihood, prior = measured("rbf", 6, 1), SetPrior(14, 3, 3)
    population = Population(likelihood, prior, np.random.default_rng(0))
    wrong = np.array([0, 1, 3])
    population.recent = np.tile(wrong, (64, 1))
    assert not likelihood.fit(wrong).holds
    assert likelihood.fit(wrong).refuted
    assert likelihood.fit(np.array([2, 5, 11])).holds
    assert population.confidence(neighbourhood(likelihood, prior, wrong)).probability < 1e-9


def test_with_unknown_shifts_a_set_fits_what_some_shifts_explain() -> None:
    likelihood = measured("rbf", 8, 1, UnknownShift(1.0))
    assert likelihood.fit(np.array([2, 5, 11])).holds
    assert not likelihood.fit(np.array([2, 5, 6])).holds
    few = measured("rbf", 3, 1, UnknownShift(1.0))
    assert not few.fit(np.array([2, 5, 11])).holds  # three shifts explain any three readings
    assert not few.fit(np.array([2, 5, 11])).refuted


@pytest.mark.parametrize("prior", [SetPrior(14, 3, 3), SetPrior(14, 0, 4)], ids=["three", "up to four"])
def test_the_advantage_is_the_smallest_over_all_sets(prior: SetPrior) -> None:
    likelihood = measured("toeplitz", 14, 3)
    rng = np.random.default_rng(0)
    exact = Enumeration(likelihood, prior, rng)
    exact.update()
    best = exact.sets[exact.log_posterior.argmax()]
    around, mine = neighbourhood(likelihood, prior, best), set(best[best < 14].tolist())
    own = likelihood.log_likelihood(best[None])[0]
    kinds = prior.most if prior.fixed else (prior.most + 1) ** 2 - 1
    leads = []
    for row, value in zip(exact.sets, likelihood.log_likelihood(exact.sets), strict=True):
        rival = set(row[row < 14].tolist())
        if rival != mine:
            alike = comb(len(rival), len(rival - mine)) * comb(14 - len(rival), len(mine - rival))
            leads.append(own - value - log(kinds * alike))
    assert_allclose(exact.advantage(around), min(leads), atol=1e-9)
    population = Population(likelihood, prior, rng)
    population.update()
    assert_allclose(population.advantage(around), min(leads), atol=1e-9)
    assert min(leads) > 0.0


@pytest.mark.parametrize("prior", [SetPrior(9, 3, 3), SetPrior(9, 0, 3), SetPrior(9, 1, 3)], ids=["3", "0-3", "1-3"])
def test_neighbours(prior: SetPrior) -> None:
    problem = Problem(families.toeplitz(9, 0.5), shift=2.0, n_anomalies=3, budget=3.0)
    likelihood = likelihood_of(SufficientStatistics(problem))
    likelihood.evidence.add(np.arange(9.0) - 3.0, 2.0)
    members = np.array([4, 7, 1]) if prior.fixed else np.array([4, 9, 1])
    mine = set(members[members < 9].tolist())
    rows = prior.all_sets()
    others = [set(row[row < 9].tolist()) for row in rows]
    near = [len(mine - o) <= 1 and len(o - mine) <= 1 and o != mine for o in others]
    posterior = likelihood.log_likelihood(rows) + prior.log_prior_of(rows)
    own = posterior[[o == mine for o in others]][0]
    around = neighbourhood(likelihood, prior, members)
    assert_allclose(around.weight, np.exp(posterior[near] - own).sum(), rtol=1e-9)
    two = differences(prior, rows, members) == 2
    assert two.sum() > 40
    weight = weight_two_away(likelihood, prior, around)
    assert weight is not None
    assert_allclose(weight, np.exp(posterior[two] - own).sum(), rtol=1e-9)
    found = {frozenset(row[row < 9].tolist()) for row in close_rivals(likelihood, prior, around)}
    assert {frozenset(o) for o, n in zip(others, near, strict=True) if n} <= found
    assert frozenset(mine) not in found


@pytest.mark.parametrize("prior", [SetPrior(22, 4, 4), SetPrior(22, 0, 5)], ids=["four", "up to five"])
def test_what_cannot_be_seen_is_weighed_as_if_gaussian(prior: SetPrior) -> None:
    """Two precise readings: the sum over all sets, by enumeration, on average over worlds."""
    problem = Problem(1e-3 * np.eye(22), shift=1.0, n_anomalies=4, budget=3.0)
    sets, errors = prior.all_sets(), []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        evidence = SufficientStatistics(problem)
        truth = prior.random_sets(rng, 1)[0]
        for _ in range(2):
            c = rng.standard_normal(22)
            evidence.add(c, float(c[truth[truth < 22]].sum() + 0.03 * np.linalg.norm(c) * rng.standard_normal()))
        likelihood = likelihood_of(evidence)
        height = likelihood.log_likelihood(sets) + prior.log_prior_of(sets)
        own = likelihood.log_likelihood(truth[None])[0] + prior.log_prior_of(truth[None])[0]
        errors.append(np.log(weight_unseen(likelihood, prior, truth)) - np.log(np.exp(height - own).sum() - 1.0))
    assert abs(np.median(errors)) < 0.7
    if not prior.fixed:  # there is one empty set
        assert (
            weight_unseen(likelihood_of(SufficientStatistics(problem)), SetPrior(22, 0, 0), np.zeros(0, dtype=np.intp))
            == 0.0
        )
    assert np.mean(np.abs(errors)) < 1.5


def test_a_set_that_no_independent_search_finds_again_is_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    likelihood, prior = measured("toeplitz", 14, 3), SetPrior(14, 3, 3)
    population = Population(likelihood, prior, np.random.default_rng(0))
    for _ in range(10):
        population.update()
    best = population.recent[likelihood.log_likelihood(population.recent).argmax()]
    around = neighbourhood(likelihood, prior, best)
    assert population.confidence(around).how == "estimated"
    others = np.setdiff1d(np.arange(14), best)[None, :3]
    monkeypatch.setattr(population, "_found", others)
    assert population.confidence(around) == Confidence(0.0, "unsettled")


@pytest.mark.parametrize("seed", [0, 1])
def test_beliefs_never_contradict_the_confidence_beside_them(seed: int) -> None:
    problem = Problem(families.toeplitz(24, 0.9), shift=3.0, n_anomalies=(0, 8), budget=10.0)
    world, policy = Simulator(problem, seed=seed, anomalies=[]), make_policy("joint", problem, seed=seed)
    for _ in range(12):
        c = policy.ask()
        policy.tell(c, world.measure(c))
        confidence, beliefs, inside = policy.confidence, policy.beliefs, np.isin(np.arange(24), policy.decision)
        assert confidence is not None
        assert (beliefs[inside] >= confidence.probability - 1e-9).all()
        assert (beliefs[~inside] <= 1.0 - confidence.probability + 1e-9).all()
        assert beliefs[~inside].sum() <= 8.0 * (1.0 - confidence.probability) + 1e-9
