"""How long windows remember each other, against processes whose memory is known."""

from __future__ import annotations

import numpy as np
import pytest

from eccaht.base.randomness import rng_for
from eccaht.plants.diagnose.view import Autocorrelations, actual_error, memory
from tests.plants.diagnose.worlds import ar1


def memory_of_ar1(phi: float, size: int = 3, lags: int = 60) -> Autocorrelations:
    """From exact autocorrelations."""
    rho = np.repeat(phi ** np.arange(lags + 1)[:, None], size, axis=1)
    return memory(rho, n_windows=10**12)


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6, 0.8])
def test_the_integrated_time_of_a_first_order_process_is_known(phi: float) -> None:
    measured = memory_of_ar1(phi)
    np.testing.assert_allclose(measured.time, (1 + phi) / (1 - phi), rtol=1e-3)
    np.testing.assert_allclose(measured.time_of_products, (1 + phi**2) / (1 - phi**2), rtol=1e-3)
    assert (measured.plateau < 1e-4).all()


def test_the_variance_of_a_mean_is_that_of_summed_covariances() -> None:
    phi, m = 0.7, 9
    apart = np.abs(np.subtract.outer(np.arange(m), np.arange(m)))
    np.testing.assert_allclose(memory_of_ar1(phi).variance_of_mean(m), (phi**apart).mean(), rtol=1e-6)


def test_what_never_dies_out_is_slow_and_does_not_count_as_memory() -> None:
    share, phi = 0.4, 0.5
    rho = share + (1 - share) * phi ** np.arange(61.0)[:, None]
    measured = memory(rho, 10**12)
    np.testing.assert_allclose(measured.plateau, share, rtol=1e-3)
    np.testing.assert_allclose(measured.time, 3.0, rtol=0.01)


def test_alternating_windows_are_never_better_than_independent_ones() -> None:
    measured = memory_of_ar1(-0.5)
    assert (measured.time == 1.0).all()
    assert (measured.variance_of_mean(4) == 0.25).all()


def test_a_history_too_short_for_lags_has_no_memory() -> None:
    assert (memory(np.ones((1, 2)), 3).time == 1.0).all()


@pytest.mark.parametrize(("phi", "noise"), [(0.0, 1.0), (0.5, 1.0), (0.0, 2.0)])
def test_the_actual_error_rate_is_as_predicted(phi: float, noise: float) -> None:
    """The evidence of a wrong hypothesis is a random walk; count how often it ever passes log(1/alpha)."""
    alpha, information, walks, steps = 0.05, 0.01, 4000, 3000
    z = ar1(rng_for(1, "walks").standard_normal((steps + 200, walks)), phi)[:steps]
    walk = np.cumsum(-information + np.sqrt(2 * information * noise) * z, axis=0)
    counted = (walk.max(axis=0) >= np.log(1 / alpha)).mean()
    predicted = actual_error(noise * (1 + phi) / (1 - phi), alpha)
    assert (
        predicted * 0.8 < counted < predicted * 1.1
    )  # a walk in steps passes a little less often than a continuous one
