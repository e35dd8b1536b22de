"""Shifts of unknown size, integrated out, against the Gaussian law of all readings together."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from eccaht import Problem, UnknownShift, families
from eccaht.base.arrays import Array, Index
from eccaht.streams.posterior import statistics
from eccaht.streams.posterior.likelihood import Likelihood, likelihood_of, robust_likelihood
from eccaht.streams.posterior.statistics import SufficientStatistics
from eccaht.streams.sets import SetPrior

K = 6
MIXED: list[float | UnknownShift] = [2.0, UnknownShift(3.0), -1.5]
MIXED += [UnknownShift(2.0, "positive"), UnknownShift(1.0, "negative"), 4.0]


def readings(count: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    return rng.standard_normal((count, K)), rng.normal(0.0, 3.0, count)


def joint_density(problem: Problem, C: Array, y: Array, members: Index) -> float:
    """All readings at once: independent noise each, shifts drawn once for all of them."""
    mean = problem.mean.copy()
    mean[members] += problem.shift[members]
    shared = (C[:, members] * problem.shift_spread[members] ** 2) @ C[:, members].T
    noise = np.diag([problem.noise_variance(c) for c in C])
    return float(multivariate_normal(C @ mean, noise + shared).logpdf(y))


@pytest.mark.parametrize("shift", [UnknownShift(2.0), UnknownShift(3.0, "positive"), MIXED, 2.0])
def test_log_likelihoods_and_gains(shift: object) -> None:
    problem = Problem(families.toeplitz(K, 0.5), shift=shift, n_anomalies=(0, 3), budget=2.0, mean=0.5)  # type: ignore[arg-type]
    sets = SetPrior(K, 0, 3).all_sets()
    C, y = readings(5)
    evidence = SufficientStatistics(problem)
    for c, reading in zip(C, y, strict=True):
        evidence.add(c, float(reading))
    likelihood = likelihood_of(evidence)
    nothing = joint_density(problem, C, y, np.empty(0, dtype=np.intp))
    expected = [joint_density(problem, C, y, row[row < K]) - nothing for row in sets]
    found = likelihood.log_likelihood(sets)
    assert_allclose(found, expected, atol=1e-9)
    by_set = {tuple(sorted(row[row < K].tolist())): value for row, value in zip(sets, found, strict=True)}
    gains = likelihood.gains(sets, np.ones(len(sets), dtype=np.intp))
    for row, gain in zip(sets, gains, strict=True):
        rest = [k for k in np.delete(row, 1).tolist() if k < K]
        for k in set(range(K)) - set(rest):
            assert_allclose(gain[k], by_set[tuple(sorted([*rest, k]))] - by_set[tuple(sorted(rest))], atol=1e-9)
        assert gain[K] == 0.0


def test_shifts_have_their_gaussian_posterior() -> None:
    problem = Problem(families.toeplitz(K, 0.5), shift=MIXED, n_anomalies=3, budget=2.0)
    C, y = readings(7)
    evidence = SufficientStatistics(problem)
    for c, reading in zip(C, y, strict=True):
        evidence.add(c, float(reading))
    members = np.array([0, 1, 3])
    mean, deviation = likelihood_of(evidence).shifts_of(members)
    v = np.array([problem.noise_variance(c) for c in C])
    H, prior = C[:, [1, 3]], problem.shift_spread[[1, 3]]
    precision = (H / v[:, None]).T @ H + np.diag(prior**-2.0)
    right = H.T @ ((y - 2.0 * C[:, 0]) / v) + problem.shift[[1, 3]] / prior**2
    assert_allclose(mean, [2.0, *np.linalg.solve(precision, right)])
    assert_allclose(deviation, [0.0, *np.sqrt(np.linalg.inv(precision).diagonal())], atol=1e-12)


def test_drawn_shifts_follow_that_posterior() -> None:
    problem = Problem(families.toeplitz(K, 0.5), shift=UnknownShift(2.0), n_anomalies=3, budget=2.0)
    C, y = readings(3)
    y /= 3.0  # nothing settled
    evidence = SufficientStatistics(problem)
    for c, reading in zip(C, y, strict=True):
        evidence.add(c, float(reading))
    likelihood = likelihood_of(evidence)
    sets = np.tile([4, 1, 3], (20_000, 1))
    rest, filling = likelihood.draw_shifts(sets, np.zeros(len(sets), dtype=np.intp), np.random.default_rng(0))
    mean, deviation = likelihood.shifts_of(np.array([1, 3]))
    assert_allclose(rest.mean(axis=0), mean, atol=5 * deviation.max() / np.sqrt(len(sets)))
    assert_allclose(rest.std(axis=0), deviation, rtol=0.03)
    assert np.abs(filling[:, K]).max() == 0.0


def known_unknown_contaminated() -> dict[str, Likelihood]:
    known = Problem(families.toeplitz(K, 0.5), shift=2.0, n_anomalies=(0, 3), budget=2.0, mean=0.5)
    unknown = known.replace(shift=MIXED)
    return {
        "known": likelihood_of(SufficientStatistics(known)),
        "unknown": likelihood_of(SufficientStatistics(unknown)),
        "contaminated": robust_likelihood(known, 0.1),
    }


@pytest.mark.parametrize("matrix", [True, False], ids=["M as a matrix", "M as its readings"])
@pytest.mark.parametrize("name", ["known", "unknown", "contaminated"])
def test_gains_among_a_shortlist_are_columns_of_all_gains(
    name: str, matrix: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not matrix:
        monkeypatch.setattr(statistics, "_MATRIX", 0)
    likelihood = known_unknown_contaminated()[name]
    assert likelihood.quadratic == (name == "known")
    assert likelihood.evidence.has_matrix == matrix
    for c, reading in zip(*readings(5), strict=True):
        likelihood.evidence.add(c, float(reading))
    sets = SetPrior(K, 0, 3).all_sets()
    slots = np.random.default_rng(0).integers(3, size=len(sets))
    everything = likelihood.gains(sets, slots)
    shortlist = np.array([4, 0, K])
    assert_allclose(likelihood.gains(sets, slots, shortlist), everything[:, shortlist], atol=1e-9)
    by_row = np.random.default_rng(1).integers(K + 1, size=(len(sets), 2))
    expected = np.take_along_axis(everything, by_row, axis=1)
    assert_allclose(likelihood.gains(sets, slots, by_row), expected, atol=1e-9)
    assert likelihood.gains(sets, slots, shortlist[:0]).shape == (len(sets), 0)
