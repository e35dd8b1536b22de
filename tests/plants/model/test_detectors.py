"""Thresholds pass at the rate that is asked for, and clusters are counted once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.base.arrays import Array
from eccaht.plants.model.fitting import peaks_of
from eccaht.plants.model.residuals import DETECTORS, LONG, SHARES, SHORT, Peaks, running_mean, values_of


def rarities(seed: int, windows: int, sensors: int = 5) -> tuple[Array, Array, Array]:
    """Independent windows: every rarity is exponential, as -log of a share is; drifts are means over LONG windows."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((windows, sensors))
    drift = np.sqrt(LONG) * running_mean(z, LONG)
    return rng.exponential(size=(windows, sensors)), drift**2 / 2.0, rng.exponential(size=windows)


def passes(peaks: Peaks, every: float, seed: int, windows: int) -> Array:
    """How often each detector begins to pass its threshold in new windows."""
    e, drift, distance = rarities(seed, windows)
    values = values_of(e, running_mean(e), drift, distance, running_mean(distance[:, None])[:, 0])
    above = values > peaks.limits(every)[0]
    begins = np.array([(above[t] & ~above[max(0, t - 2 * LONG) : t].any(axis=0)) for t in range(1, windows)])
    return np.asarray(begins.sum(axis=0))


@pytest.mark.parametrize("every", [100.0, 20_000.0])
def test_thresholds_pass_at_the_rate_asked_for(every: float) -> None:
    history, new = 20_000, 200_000
    peaks = peaks_of(*rarities(0, history))
    expected = new / (every * SHARES)
    counts = passes(peaks, every, 1, new)
    if expected > 20:
        assert ((counts > 0.5 * expected) & (counts < 1.5 * expected)).all()
    else:  # beyond what the history has shown
        assert counts.sum() <= 3 * len(DETECTORS) * expected
        assert not peaks.seen(every)


def test_rarer_alarms_need_higher_values_without_bound() -> None:
    peaks = peaks_of(*rarities(2, 3000))
    limits = np.array([peaks.limits(every)[0] for every in np.geomspace(10, 1e12, 40)])
    assert (np.diff(limits, axis=0) >= -1e-12).all()
    assert (limits[-1] > limits[0] + 3.0).all()


def test_a_cluster_counts_once() -> None:
    e = np.full((300, 1), 0.1)
    e[100:106], e[200] = 9.0, 5.0
    peaks = peaks_of(e, np.zeros((300, 1)), np.zeros(300))
    assert_allclose(peaks.heights[0, :3], [9.0, 5.0, 0.1])


def test_running_means_are_those_of_the_last_rows() -> None:
    x = np.random.default_rng(3).standard_normal((20, 2))
    mean = running_mean(x)
    assert_allclose(mean[10], x[11 - SHORT : 11].mean(axis=0))
    assert_allclose(mean[1], x[:2].sum(axis=0) / SHORT)


@pytest.mark.parametrize(
    ("heights", "windows"),
    [
        (np.ones((4, 2)), 5.0),
        (np.ones((5, 0)), 5.0),
        (np.ones(5), 5.0),
        (np.tile([1.0, 2.0], (5, 1)), 5.0),
        (np.full((5, 2), np.nan), 5.0),
        (np.full((5, 2), -1.0), 5.0),
        (np.ones((5, 2)), 0.0),
        (np.ones((5, 2)), np.nan),
        (np.ones((5, 2)), np.ones(2)),
    ],
)
def test_what_are_no_peaks_is_refused(heights: Array, windows: float) -> None:
    with pytest.raises(ValueError, match="its peaks"):
        Peaks(heights, windows)
