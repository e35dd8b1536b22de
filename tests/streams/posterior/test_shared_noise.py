"""Readings of one moment: exact, against whole vectors, enumeration and a density."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from eccaht import Problem, UnknownShift, families, make_policy
from eccaht.base.arrays import Array
from eccaht.streams.posterior import SufficientStatistics, likelihood_of, statistics as limits

K = 8
SHIFT = np.linspace(2.0, 3.0, K)
PROBLEM = Problem(families.toeplitz(K, 0.7), shift=SHIFT, n_anomalies=2, budget=3.0, mean=0.5, readout_noise=0.3)
ROWS = np.random.default_rng(1).standard_normal((4, K)) / 4
READINGS = np.random.default_rng(2).standard_normal(4) + 1.0


def density(problem: Problem, C: Array, y: Array, members: tuple[int, ...]) -> float:
    mean = C @ problem.mean + C[:, list(members)] @ problem.shift[list(members)]
    noise = C @ problem.covariance.dense() @ C.T + problem.readout_noise**2 * np.eye(len(C))
    return float(multivariate_normal(mean, noise).logpdf(y))


def test_the_likelihood_of_every_set_is_that_of_the_joint_density() -> None:
    evidence = SufficientStatistics(PROBLEM)
    evidence.add_together(ROWS, READINGS)
    sets = np.array(list(combinations(range(K), 2)))
    expected = [density(PROBLEM, ROWS, READINGS, tuple(pair)) for pair in sets.tolist()]
    found = likelihood_of(evidence).log_likelihood(sets)
    assert np.allclose(found - found[0], np.array(expected) - expected[0], rtol=1e-9, atol=1e-9)
    assert evidence.n_readings == 4


def test_unknown_shifts_are_integrated_out_exactly() -> None:
    """The marginal density has the covariance of the noise and of the shifts."""
    problem = PROBLEM.replace(shift=UnknownShift(2.0))
    evidence = SufficientStatistics(problem)
    evidence.add_together(ROWS, READINGS)
    sets = np.array(list(combinations(range(K), 2)))
    noise = ROWS @ problem.covariance.dense() @ ROWS.T + problem.readout_noise**2 * np.eye(4)
    expected = []
    for pair in sets.tolist():
        chosen = ROWS[:, pair]
        mean = ROWS @ problem.mean + chosen @ problem.shift[pair]
        spread = chosen @ np.diag(problem.shift_spread[pair] ** 2) @ chosen.T
        expected.append(float(multivariate_normal(mean, noise + spread).logpdf(READINGS)))
    found = likelihood_of(evidence).log_likelihood(sets)
    assert np.allclose(found - found[0], np.array(expected) - expected[0], rtol=1e-8, atol=1e-8)


def test_scores_are_ratios_of_one_stream_against_none() -> None:
    policy = make_policy("ecc-aht", PROBLEM)
    before = policy.scores.copy()
    policy.tell_many(ROWS, READINGS)
    nothing = density(PROBLEM, ROWS, READINGS, ())
    expected = [density(PROBLEM, ROWS, READINGS, (k,)) - nothing for k in range(K)]
    assert np.allclose(policy.scores - before, expected, rtol=1e-9, atol=1e-9)


def test_measurements_kept_as_rows_agree_with_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = SufficientStatistics(PROBLEM)
    monkeypatch.setattr(limits, "_MATRIX", 4)
    rows = SufficientStatistics(PROBLEM)
    assert not rows.has_matrix
    sets = np.array(list(combinations(range(K), 2)))
    for each in (evidence, rows):
        each.add_together(ROWS, READINGS)
    assert np.allclose(rows.log_likelihood(sets), evidence.log_likelihood(sets), rtol=1e-10, atol=1e-10)


def test_what_follows_from_other_readings_is_refused_by_its_number() -> None:
    quiet = PROBLEM.replace(readout_noise=0.0)
    policy = make_policy("joint", quiet)
    before = policy.scores.copy()
    dependent = np.vstack([ROWS[:2], ROWS[0] + ROWS[1]])
    with pytest.raises(ValueError, match="measurement 2 follows"):
        policy.tell_many(dependent, READINGS[:3])
    assert policy.n_readings == 0
    assert np.array_equal(policy.scores, before)
    make_policy("joint", PROBLEM).tell_many(dependent, READINGS[:3])  # readout noise makes each its own


def test_what_does_not_fit_is_refused() -> None:
    policy = make_policy("joint", PROBLEM)
    with pytest.raises(ValueError, match="4 measurements need as many readings"):
        policy.tell_many(ROWS, READINGS[:3])
    with pytest.raises(ValueError, match="reading must be finite"):
        policy.tell_many(ROWS, [1.0, np.nan, 1.0, 1.0])
    with pytest.raises(ValueError, match="need as many readings"):
        policy.tell_many(np.empty((0, K)), [])
    robust = make_policy("joint", PROBLEM, outliers=0.05)
    assert not robust.can.shared_noise
    with pytest.raises(ValueError, match="takes no readings that share noise"):
        robust.tell_many(ROWS, READINGS)
    assert policy.n_readings == robust.n_readings == 0
