"""Quiet windows are drawn as the problem describes them, and thresholds hold for heavy tails and for estimates."""

import itertools

import numpy as np
import pytest
from scipy.stats import f, kstest, t

from eccaht.base.arrays import Array
from eccaht.streams.watch import thresholds
from eccaht.streams.watch.detector import StepDetector
from eccaht.streams.watch.thresholds import GAUSSIAN, Calibration, SimulatedNoise, calibrated, quiet_scores
from tests.streams.watch.worlds import inverse, toeplitz

SIZE, LONGEST = 6, 20
NOISE = toeplitz(SIZE, 0.5)
PRECISION = inverse(NOISE)
ROOT = np.sqrt(PRECISION.diagonal())
CORRELATION = PRECISION / np.outer(ROOT, ROOT)


def scores(noise: SimulatedNoise, windows: int = 40, runs: int = 4000) -> Array:
    drawn = quiet_scores(CORRELATION, noise, runs, np.random.default_rng(0))
    return np.concatenate(list(itertools.islice(drawn, windows))).astype(float)


@pytest.mark.parametrize("noise", [GAUSSIAN, SimulatedNoise(8.0), SimulatedNoise(8.0, apart=True)])
def test_scores_have_the_covariance_of_the_problem(noise: SimulatedNoise) -> None:
    np.testing.assert_allclose(np.cov(scores(noise).T), CORRELATION, atol=0.03)


def test_tails_are_those_of_t() -> None:
    """Of whole windows: d2 / K, scaled by nu / (nu - 2), is F; of each stream apart: it is t on its own."""
    nu, inverse_root = 5.0, inverse(np.linalg.cholesky(CORRELATION))
    rows = scores(SimulatedNoise(nu), windows=5) @ inverse_root.T
    assert kstest((rows**2).mean(axis=1) * nu / (nu - 2.0), f(SIZE, nu).cdf).pvalue > 1e-3
    alone = next(quiet_scores(np.eye(2), SimulatedNoise(nu, apart=True), 20_000, np.random.default_rng(1)))
    assert kstest(alone[:, 0] * np.sqrt(nu / (nu - 2.0)), t(nu).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(np.abs(alone).T)[0, 1]) < 0.05  # heavy in one stream says nothing of the other


def test_scores_of_an_estimate_vary_as_in_a_watch_that_estimates() -> None:
    """Against the direct way: estimate from windows, invert, and take the scores of fresh windows."""
    m, rng, direct = 40, np.random.default_rng(2), []
    for _ in range(1500):
        history = rng.multivariate_normal(np.zeros(SIZE), NOISE, size=m)
        Q = inverse(np.cov(history.T))
        fresh = rng.multivariate_normal(np.zeros(SIZE), NOISE, size=20) - history.mean(axis=0)
        direct.append((fresh @ Q / np.sqrt(Q.diagonal())).var(axis=0))
    drawn = scores(SimulatedNoise(estimated_from=m), windows=20, runs=1500).reshape(20, 1500, SIZE)
    np.testing.assert_allclose(drawn.var(axis=0).mean(axis=0), np.mean(direct, axis=0), rtol=0.05)
    assert drawn.var(axis=0).mean() > 1.2  # about (1 - K/m)^-2, less the error of the mean that a run shares


def test_long_histories_share_draws_and_say_what_a_known_covariance_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "_MOST_ESTIMATED", 20_000)
    monkeypatch.setattr(thresholds, "_DRAWN", 1e6)
    drawn = scores(SimulatedNoise(estimated_from=10**9), windows=10, runs=400)
    np.testing.assert_allclose(np.cov(drawn.T), CORRELATION, atol=0.06)


def test_a_threshold_for_heavy_tails_is_higher_and_is_kept_in_a_file() -> None:
    values = np.full((3, 1), 12.0)
    plain, heavy, estimated = (
        calibrated(PRECISION, 0, noise, windows=8000, longest=LONGEST)
        for noise in (GAUSSIAN, SimulatedNoise(5.0), SimulatedNoise(estimated_from=60))
    )
    assert heavy.log_time(values) < plain.log_time(values) - 1.0
    assert estimated.log_time(values) < plain.log_time(values) - 0.5
    assert np.isfinite(heavy.log_time(np.zeros((3, 1)))).all()  # a window that is silent throughout
    assert Calibration.from_numbers(heavy.numbers(), SimulatedNoise(5.0)) == heavy
    assert Calibration.from_numbers(estimated.numbers(), SimulatedNoise(estimated_from=60)) == estimated
    with pytest.raises(ValueError, match="calibration"):
        Calibration.from_numbers(heavy.numbers())


def test_without_options_the_calibration_is_that_of_earlier_versions() -> None:
    combined = calibrated(np.eye(3), 0, windows=4000).numbers()[-1]
    np.testing.assert_allclose(combined, [6.1984627, 0.0011304595, 1.1129652, 4.0], rtol=1e-3)


def mean_time(
    noise: SimulatedNoise, given: SimulatedNoise, *, estimates: int = 1, runs: int = 40, count: int = 1000
) -> float:
    """Windows to a false alarm where 100 are asked for, of this noise, by a threshold for the given one.

    The simulation is short, so that the two standard errors on the safe side are up to 60 % of the time.
    """
    rng, alarms, covariance, mean = np.random.default_rng(7), 0, NOISE, np.zeros(SIZE)
    for _ in range(estimates):
        if noise.estimated_from is not None:
            history = _draw(rng, noise.estimated_from, noise)
            covariance, mean = np.cov(history.T), history.mean(axis=0)
        precision = inverse(covariance)
        calibration = calibrated(precision, 0, given, windows=40_000, longest=LONGEST)
        detector = StepDetector(precision, plants=runs, longest=LONGEST)
        for _ in range(count):
            over = calibration.log_time(detector.update(_draw(rng, runs, noise) - mean)) >= np.log(100.0)
            alarms += int(over.sum())
            detector.reset(over)
    return estimates * runs * count / alarms


def _draw(rng: np.random.Generator, count: int, noise: SimulatedNoise) -> Array:
    rows = rng.multivariate_normal(np.zeros(SIZE), NOISE, size=count)
    if noise.degrees_of_freedom is not None:
        nu = noise.degrees_of_freedom
        rows *= np.sqrt((nu - 2.0) / rng.chisquare(nu, size=(count, 1)))
    return rows


def test_with_degrees_of_freedom_the_rate_is_kept_under_heavy_tails() -> None:
    heavy = SimulatedNoise(5.0)
    assert mean_time(heavy, GAUSSIAN, count=300) < 50.0
    assert 95.0 < mean_time(heavy, heavy) < 300.0


@pytest.mark.slow
@pytest.mark.parametrize("noise", [SimulatedNoise(estimated_from=60), SimulatedNoise(5.0, 200)])
def test_with_an_estimated_covariance_the_rate_is_kept(noise: SimulatedNoise) -> None:
    assert mean_time(noise, GAUSSIAN, estimates=10, count=300) < 60.0
    assert 95.0 < mean_time(noise, noise, estimates=20) < 300.0
