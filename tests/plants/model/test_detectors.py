"""Thresholds pass at the rate that is asked for, and clusters are counted once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.base.arrays import Array
from eccaht.plants import Arrays, calibrate
from eccaht.plants.incident.alarms import Engine
from eccaht.plants.model import detectors
from eccaht.plants.model.detectors import (
    ALARM_DETECTORS,
    DEPARTURE,
    DISTANCE,
    DRIFT,
    RESIDUAL,
    AlarmDetector,
    Peaks,
    Quantity,
    Residuals,
    clusters,
    running_mean,
    values_of,
)
from eccaht.plants.model.model import parse_model
from eccaht.plants.tuning import TUNING


def values(seed: int, windows: int, sensors: int = 5) -> Array:
    """Independent windows: every rarity is exponential, as -log of a share is; drifts are long means."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((windows, sensors))
    drift = np.sqrt(TUNING.long_windows) * running_mean(z, TUNING.long_windows)
    e, distance, departure = (rng.exponential(size=(windows, size)) for size in (sensors, 1, 1))
    return values_of({RESIDUAL: e, DRIFT: drift**2 / 2.0, DISTANCE: distance, DEPARTURE: departure})


def passes(peaks: Peaks, every: float, seed: int, windows: int) -> int:
    """How often a detector begins to pass its threshold in new windows."""
    above = np.asarray((values(seed, windows) > peaks.limits(every)[0]).any(axis=1))
    return sum(above[t] and not above[max(0, t - 2 * TUNING.long_windows) : t].any() for t in range(1, windows))


def test_thresholds_pass_at_the_rate_asked_for() -> None:
    history, new = 20_000, 200_000
    peaks = Peaks.of(values(0, history))
    assert 0.5 < passes(peaks, 500.0, 1, new) / (new / 500.0) < 1.5


def test_thresholds_beyond_the_history_pass_at_the_rate_asked_for_on_average() -> None:
    """One in three histories: 200 short histories, each with 20 times as many new windows."""
    length, found = 400, 0
    for seed in range(100):
        peaks = Peaks.of(values(seed, length))
        found += passes(peaks, 3.0 * length, 1000 + seed, 20 * length)
    expected = 100 * 20 / 3.0
    assert 0.5 * expected < found < 2.0 * expected


def test_rarer_alarms_need_higher_values_without_bound() -> None:
    peaks = Peaks.of(values(2, 3000))
    limits = np.array([peaks.limits(every)[0] for every in np.geomspace(10, 1e12, 40)])
    assert (np.diff(limits, axis=0) >= -1e-12).all()
    assert (limits[-1] > limits[0] + 3.0).all()


def test_a_cluster_counts_once() -> None:
    e = np.full((300, 1), 0.1)
    e[100:106], e[200] = 9.0, 5.0
    assert_allclose(clusters(e[:, 0], 10)[:3], [9.0, 5.0, 0.1])


def test_running_means_are_those_of_the_last_rows() -> None:
    x = np.random.default_rng(3).standard_normal((20, 2))
    mean = running_mean(x)
    assert_allclose(mean[10], x[11 - TUNING.short_windows : 11].mean(axis=0))
    assert_allclose(mean[1], x[:2].sum(axis=0) / TUNING.short_windows)


@pytest.mark.parametrize(("detectors_", "heights"), [(4, np.ones(2)), (5, np.ones(0)), (5, np.array([1.0, 2.0]))])
def test_what_are_no_peaks_is_refused(detectors_: int, heights: Array) -> None:
    with pytest.raises(ValueError, match="peaks"):
        Peaks(np.zeros(detectors_), np.ones(detectors_), heights, 5.0)


def squares(shown: Residuals) -> Array:
    """T2 of the innovations."""
    return np.asarray((shown.innovation**2).sum(axis=1, keepdims=True))


def test_a_detector_is_added_by_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """T2 of four windows: fitted, kept in the model's file, and by itself raising an alarm when all sensors move."""
    own = AlarmDetector("T2 of 4", Quantity(squares, by_sensor=False, windows=4))
    monkeypatch.setattr(detectors, "ALARM_DETECTORS", (*ALARM_DETECTORS, own))
    rng = np.random.default_rng(1)
    quiet = rng.standard_normal((1500, 6))
    model = calibrate(Arrays(quiet[:1000], None, tuple("abcdef"), label="the rows"), window="1row")
    normal = parse_model(model.to_bytes(), "model").normal
    assert normal is not None
    assert len(normal.peaks.usual) == 6
    engine = Engine(normal, every=3000.0)
    engine.limits[:5] = np.inf
    windows = (quiet[1000:] - model.center) / model.scale
    windows[400:] += 2.0
    began = [t for t, x in enumerate(windows) if engine.step(x[None, :]).began[0]]
    assert len(began) == 1
    assert 400 <= began[0] < 404
