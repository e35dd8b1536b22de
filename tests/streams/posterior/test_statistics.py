"""The statistics b and M against the Gaussian likelihood written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm

from eccaht import Problem, families
from eccaht.base.arrays import Array
from eccaht.streams.posterior import statistics as evidence
from eccaht.streams.posterior.statistics import SufficientStatistics
from eccaht.streams.sets import SetPrior


def problem_with_mixed_shifts(K: int = 7, n: int = 3) -> Problem:
    rng = np.random.default_rng(K)
    shift = rng.choice([-1.0, 1.0], K) * rng.uniform(1.0, 4.0, K)
    return Problem(families.toeplitz(K, 0.6), shift=shift, n_anomalies=n, budget=3.0, mean=rng.standard_normal(K))


def mean_of(problem: Problem, row: list[int]) -> Array:
    mean = problem.mean.copy()
    members = [k for k in row if k < problem.size]
    mean[members] += problem.shift[members]
    return mean


@pytest.mark.parametrize("form", ["matrix", "measurements"])
def test_log_likelihoods_of_all_sets(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form == "measurements":
        monkeypatch.setattr(evidence, "_MATRIX", 0)
    problem = problem_with_mixed_shifts()
    sizes = SetPrior(7, 0, 3)
    sets = sizes.all_sets()
    summed, expected = SufficientStatistics(problem), np.zeros(len(sets))
    rng = np.random.default_rng(1)
    empty = problem.mean
    for _ in range(12):  # more readings than streams: measurements turn into the matrix on the way
        c, y = rng.standard_normal(7), float(rng.normal(0.0, 3.0))
        sd = np.sqrt(c @ problem.covariance.dense() @ c)
        summed.add(c, y)
        expected += [norm.logpdf(y, c @ mean_of(problem, r), sd) - norm.logpdf(y, c @ empty, sd) for r in sets.tolist()]
        assert_allclose(summed.log_likelihood(sets), expected, atol=1e-9)
        fields = summed.fields(sets)
        taken_out = fields + summed.coupling(sets[:, 0])
        for row in (5, 30, -1):  # what each outsider would add in the place of the first slot
            rest = sets[row].copy()
            rest[0] = 7
            base = summed.log_likelihood(rest[None])[0]
            for k in set(range(7)) - set(sets[row].tolist()):
                rest[0] = k
                assert_allclose(taken_out[row, k], summed.log_likelihood(rest[None])[0] - base, atol=1e-9)


def test_whole_vectors() -> None:
    problem = problem_with_mixed_shifts()
    sets = SetPrior(7, 0, 3).all_sets()
    summed, expected = SufficientStatistics(problem), np.zeros(len(sets))
    rng = np.random.default_rng(2)
    for _ in range(3):
        x = rng.normal(0.0, 3.0, 7)
        summed.add_vector(x)
        law = [multivariate_normal(mean_of(problem, r), problem.covariance.dense()) for r in sets.tolist()]
        quiet = multivariate_normal(problem.mean, problem.covariance.dense()).logpdf(x)
        expected += [d.logpdf(x) - quiet for d in law]
    assert_allclose(summed.log_likelihood(sets), expected, atol=1e-8)
    assert summed.n_readings == 21


def test_a_vector_is_worth_its_coordinates_read_one_after_the_other() -> None:
    """For independent streams a whole vector is K readings of single streams."""
    problem = Problem(np.diag([1.0, 2.0, 0.5]), shift=[1.0, -2.0, 3.0], n_anomalies=1, budget=1.0)
    whole, single = SufficientStatistics(problem), SufficientStatistics(problem)
    x = np.array([0.3, -1.0, 2.0])
    whole.add_vector(x)
    for k in range(3):
        single.add(np.eye(3)[k], float(x[k]))
    assert_allclose(whole.linear, single.linear)
    assert_allclose(whole.half_diagonal, single.half_diagonal)
    assert_allclose(whole.misfit, single.misfit)
