"""After an alarm: the onset by its definition, and the set from all readings since."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from eccaht import Problem
from eccaht.streams import Enumeration, SetPrior, SufficientStatistics, likelihood_of
from eccaht.streams.posterior.joint import Joint
from eccaht.streams.watch.readings import Readings, Step, margin
from eccaht.streams.watch.suspects import Suspects, onset_of
from tests.streams.watch.worlds import quiet, toeplitz

SIZE = 6
NOISE = toeplitz(SIZE, 0.7)
PROBLEM = Problem(NOISE, shift=1.0, n_anomalies=(1, 2), budget=1.0)


def steps(count: int) -> list[Step]:
    """Of whole vectors and of some sums, in turn."""
    readings, C = Readings(PROBLEM), np.random.default_rng(1).standard_normal((2, SIZE))
    for t, x in enumerate(quiet(NOISE, count)):
        moved = x + (t >= 4) * np.array([0.0, 1.0, 0.0, 0.0, 1.0, 0.0])
        readings.take(None, moved) if t % 2 else readings.take(C, C @ moved)
    return readings.last(count)


def test_the_onset_is_that_of_the_largest_likelihood() -> None:
    some, members, sizes = steps(9), np.array([1, 4]), np.array([1.0, 0.8])
    logs = []
    for first in range(9):
        total = 0.0
        for step in some[first:]:
            C = np.eye(SIZE) if step.C is None else step.C
            noise = multivariate_normal(np.zeros(len(C)), C @ NOISE @ C.T)
            total += noise.logpdf(step.rest - C[:, members] @ sizes) - noise.logpdf(step.rest)
        logs.append(total)
    assert onset_of(some, members, sizes).best == 8 - int(np.argmax(logs))


def test_the_onset_is_the_last_one_where_none_of_its_streams_was_read() -> None:
    readings = Readings(PROBLEM)
    for k, y in ((0, 0.0), (1, 0.0), (2, 0.5), (1, 3.0)):
        readings.take(np.eye(1, SIZE, k), np.array([y]))
    assert onset_of(readings.last(4), np.array([1]), np.array([1.0])).best == 0


def test_the_set_is_that_of_the_readings_since() -> None:
    suspects, some = Suspects(PROBLEM), steps(12)[4:]
    suspects.take(some[:3])
    suspects.take(some[3:])
    prior, evidence = SetPrior(SIZE, 1, 2), SufficientStatistics(PROBLEM)
    likelihood, rng = likelihood_of(evidence), np.random.default_rng(0)
    belief = Joint(likelihood, prior, Enumeration(likelihood, prior, rng), rng)
    for step in some:
        if step.C is None:
            belief.observe(step.rest)
        else:
            belief.update_together(step.C, step.rest)
    np.testing.assert_allclose(suspects.beliefs, belief.beliefs, atol=1e-9)
    np.testing.assert_array_equal(suspects.members[0], belief.map_set)


def test_an_estimate_is_worth_less_than_the_truth() -> None:
    """Weights S^-1 e_k of a sample covariance have more noise than it says; with the margin few have."""
    m, rng, found = 60, np.random.default_rng(2), []
    for _ in range(300):
        problem = PROBLEM.replace(covariance=np.cov(rng.standard_normal((m, SIZE)).T), estimated_from=m)
        c = problem.covariance.solve(np.eye(SIZE)[0])
        found.append((c @ c) / problem.noise_variance(c))
    assert np.mean(found) < 1.1
    assert np.mean(np.array(found) > margin(problem)) < 0.1
    assert margin(PROBLEM) == 1.0
    assert margin(PROBLEM.replace(estimated_from=100_000)) == pytest.approx(1.0, abs=0.02)
