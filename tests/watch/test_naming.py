"""Onset, set and sizes: the evidence against quadrature and densities, and easy cases named right."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from eccaht.watch.naming import Members, Sums, Windows, bar, best_gains, best_set, name_streams
from tests.watch.worlds import inverse, quiet, toeplitz

SIZE = 8
NOISE = toeplitz(SIZE, 0.7) * np.outer(np.arange(1.0, 9.0), np.arange(1.0, 9.0))
PRECISION = inverse(NOISE)
UNITS = np.arange(1.0, 9.0)


def test_evidence_is_the_ratio_of_densities() -> None:
    """Shifts N(m, (0.3 m)^2) make the windows since the onset jointly Gaussian, with a common part."""
    rows = quiet(NOISE, 4)
    rows[3, 1] = np.nan
    members = Members((2, 5), (1.0, -2.0))
    mean, cover = np.zeros(SIZE), np.zeros((SIZE, SIZE))
    for k, m in zip(*members, strict=True):
        mean[k], cover[k, k] = m * UNITS[k], (0.3 * m * UNITS[k]) ** 2
    expected = []
    for onset in range(4):
        there = ~np.isnan(rows[onset:].ravel())
        length = 4 - onset
        plain = np.kron(np.eye(length), NOISE)[np.ix_(there, there)]
        moved = plain + np.kron(np.ones((length, length)), cover)[np.ix_(there, there)]
        x = rows[onset:].ravel()[there]
        expected.append(
            multivariate_normal(np.tile(mean, length)[there], moved).logpdf(x)
            - multivariate_normal(np.zeros(len(x)), plain).logpdf(x)
        )
    np.testing.assert_allclose(Windows(rows, NOISE, PRECISION).evidence(members), expected, rtol=1e-8)


def test_gains_of_a_further_stream_add_up_to_the_evidence_of_the_set() -> None:
    windows = Windows(quiet(NOISE, 5), NOISE, PRECISION)
    sums = windows.since(2)
    few, more = Members((2,), (1.0,)), Members((2, 3), (1.0, -2.0))
    field, curvature = sums.given(few)
    spread, m = 0.6, -2.0
    x = np.linspace(-20.0, 20.0, 40001)
    integral = np.trapezoid(np.exp(field[3] * x - 0.5 * curvature[3] * x**2) * norm(m, spread).pdf(x), x)
    added = windows.evidence(more)[2] - windows.evidence(few)[2]
    assert np.log(integral) == pytest.approx(added, abs=1e-6)


def test_the_best_size_has_the_sign_of_the_field() -> None:
    gains, means = best_gains(np.array([30.0, -30.0, 0.0]), np.full(3, 10.0), None)
    assert means[0] == -means[1] > 2.0
    assert gains[0] == gains[1] > 0.0 > gains[2]


def test_a_set_that_no_single_change_improves() -> None:
    rng = np.random.default_rng(3)
    b, M = rng.standard_normal(SIZE) * 12.0, 10.0 * inverse(toeplitz(SIZE, 0.5))
    sums = Sums(b, M)
    found = best_set(sums, 1.0, Members((), ()))
    gains = best_gains(*sums.given(found), 1.0)[0]
    outside = np.setdiff1d(np.arange(SIZE), found.streams)
    assert (gains[outside] <= bar(len(found.streams), SIZE)).all()


@pytest.mark.parametrize(("moved", "sizes"), [((3,), (2.0,)), ((1, 2, 6), (2.0, 2.0, -2.0))])
def test_steps_are_named_with_onset_and_sizes(moved: tuple[int, ...], sizes: tuple[float, ...]) -> None:
    rows = quiet(NOISE, 60, seed=1)
    rows[40:, list(moved)] += np.array(sizes) * UNITS[list(moved)]
    rows[50, 0] = np.nan
    named = name_streams(Windows(rows, NOISE, PRECISION))
    assert named.members.tolist() == list(moved)
    assert abs(named.onset.best - 40) <= 1
    assert named.onset.first <= named.onset.best <= named.onset.last
    np.testing.assert_allclose(named.sizes, np.array(sizes) * UNITS[list(moved)], rtol=0.4)
    assert (named.beliefs[list(moved)] > 0.9).all()
    assert (np.delete(named.beliefs, moved) < 0.5).all()


def test_only_the_last_windows_say_who_is_in_the_set() -> None:
    rows = quiet(NOISE, 60, seed=1)
    rows[10:40, 1] += 3.0 * UNITS[1]
    rows[40:, 5] += 3.0 * UNITS[5]
    windows = Windows(rows, NOISE, PRECISION)
    assert name_streams(windows, onset=10, recent=20).members.tolist() == [5]
